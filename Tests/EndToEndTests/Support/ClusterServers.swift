import EarshotServer
import Foundation
import PostgresTestSupport
import ServerConfiguration
import TestSupport

/// Whole servers that share a database, each as a node of its own, in this process.
enum ClusterServers {
    private static let key = "a-key-of-the-cluster-for-tests-of-nodes"

    /// Runs the nodes `a` and `b`.
    static func run(
        _ configure: @Sendable (inout ServerConfig) -> Void = { _ in }, _ body: @Sendable (TestServer, TestServer) async throws -> Void
    ) async throws {
        try await TestServer.run({
            $0.cluster.name = "a"
            $0.cluster.key = Self.key
            configure(&$0)
        }) { a in
            try await Self.join("b", a, configure) { b in try await body(a, b) }
        }
    }

    /// Runs one more node beside this one.
    static func join(
        _ name: String, _ other: TestServer, _ configure: @Sendable (inout ServerConfig) -> Void = { _ in },
        _ body: @Sendable (TestServer) async throws -> Void
    ) async throws {
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent(name).path
            try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
            defer { TestPostgres.remove(data) }
            // The first node has made the token, which is good at all.
            try other.token.write(toFile: data + "/admin-token", atomically: true, encoding: .utf8)
            let url = other.server.parts.config.database.url
            try await TestServer.run(
                data: data,
                {
                    $0.database.url = url
                    $0.cluster.name = name
                    $0.cluster.key = Self.key
                    configure(&$0)
                }, body)
        }
    }
}
