import APITestSupport
import RTMPTestSupport
import ServerConfiguration

/// A room that talks, on a server without ports.
typealias MemoryRoom = TalkRoom<UnboundServer>

extension TalkRoom where Server == UnboundServer {
    /// Starts a server with a camera in the room while the body runs. `camera` returns the name to push to, with its credential.
    static func run(
        _ configure: (inout ServerConfig) -> Void = { _ in },
        camera: @Sendable (UnboundServer) async throws -> String = { _ in "r1" }, _ body: @Sendable (MemoryRoom) async throws -> Void
    ) async throws {
        try await UnboundServer.run({
            Self.patient(&$0)
            configure(&$0)
        }) { server in
            try await Self.live(on: server, camera: camera, body)
        }
    }
}
