import RTMPTestSupport
import ServerConfiguration
import ServerTestSupport
import Testing

/// Suites of hostile clients, serialized: each measures time, and in parallel they would delay each other.
@Suite(.serialized) enum Hostile {}

extension TestServer {
    /// Runs a server and a canary while the body misbehaves.
    static func withCanary(
        _ configure: (inout ServerConfig) -> Void = { _ in }, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: @escaping @Sendable (TestServer) async throws -> Void
    ) async throws {
        try await TestServer.run(configure) { try await $0.withCanary(sourceLocation: sourceLocation, body) }
    }
}
