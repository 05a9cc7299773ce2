import Rooms
import ServerConfiguration
import Support
import TestSupport

extension TestServer {
    /// Runs a server with a self-signed certificate, and so with HTTPS.
    static func runSecure<Result: Sendable>(
        _ configure: @Sendable (inout ServerConfig) -> Void = { _ in }, _ body: @Sendable (TestServer) async throws -> Result
    ) async throws -> Result {
        try await Fixture.withDirectory { directory in
            let files = try await Certificate.make("localhost", in: directory)
            return try await TestServer.run({ config in
                config.rtmps.listen = HostPort(host: "127.0.0.1", port: 0)
                (config.rtmps.certificate, config.rtmps.key) = (files.certificate, files.key)
                config.rooms.policy.cleanStopMs = 500
                configure(&config)
            }) { try await body($0) }
        }
    }
}
