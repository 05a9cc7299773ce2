import APITestSupport
import EarshotServer
import Foundation
import Logging
import PostgresTestSupport
import RTMPTestSupport
import RoomRegistry
import ServerConfiguration
import ServerTestSupport
import ServiceLifecycle
import Support
import TestSupport

/// A real server on system-chosen ports, for one test.
struct TestServer: LiveServer, AddressedServer {
    let addresses: BoundAddresses
    let server: Server
    let lines: LogLines
    /// The token of its first start, with all rights.
    let token: String
    /// Removed with the server, unless the test provided it.
    let dataDirectory: String

    var parts: ServerParts { self.server.parts }
    var rooms: RoomRegistry { self.server.parts.rooms }
    var rtmps: String { "rtmps://127.0.0.1:\(self.addresses.rtmps?.port ?? 0)" }

    /// Runs a server with its own data directory, and stops it whatever the body does.
    static func run<Result: Sendable>(
        _ configure: (inout ServerConfig) -> Void = { _ in }, _ body: @Sendable (TestServer) async throws -> Result
    ) async throws -> Result {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-data-\(UUID().uuidString)").path
        defer {
            TestPostgres.remove(directory)
            try? FileManager.default.removeItem(atPath: directory)
        }
        let result = try await Self.serve(data: directory, configure, body)
        try EventCheck.checkNewest(in: directory)
        return result
    }

    /// Runs a server on this data directory, which stays.
    static func run<Result: Sendable>(
        data directory: String, _ configure: (inout ServerConfig) -> Void = { _ in }, _ body: @Sendable (TestServer) async throws -> Result
    ) async throws -> Result {
        try await Self.serve(data: directory, configure) { server in
            let result = try await body(server)
            try await EventCheck.checkNewest(of: server.server.parts.rooms)
            return result
        }
    }

    private static func serve<Result: Sendable>(
        data directory: String, _ configure: (inout ServerConfig) -> Void, _ body: @Sendable (TestServer) async throws -> Result
    ) async throws -> Result {
        var config = try TestConfiguration.make(in: directory)
        configure(&config)
        let lines = LogLines()
        var log = Logger(label: "earshot", factory: { _ in CollectingLogHandler(lines: lines) })
        log.logLevel = config.log.level
        let server = try Server(config: config, log: log)
        let addresses = try await server.bind()
        let token = try TokenFile.read(config.data.directory)
        var quiet = Logger(label: "group", factory: { _ in SwiftLogNoOpLogHandler() })
        quiet.logLevel = .critical
        let group = ServiceGroup(configuration: .init(services: server.services, logger: quiet))
        return try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            let outcome: Swift.Result<Result, any Error>
            do {
                let running = TestServer(
                    addresses: addresses, server: server, lines: lines, token: token, dataDirectory: config.data.directory)
                outcome = .success(try await body(running))
            } catch {
                outcome = .failure(error)
            }
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
            return try outcome.get()
        }
    }
}

extension TalkRoom where Server == TestServer {
    /// Starts a server with a camera in the room while the body runs. `camera` returns the name to push to, with its credential.
    static func run(
        _ configure: (inout ServerConfig) -> Void = { _ in },
        camera: @Sendable (TestServer) async throws -> String = { _ in "r1" }, _ body: @Sendable (TalkRoom) async throws -> Void
    ) async throws {
        try await TestServer.run({
            Self.patient(&$0)
            configure(&$0)
        }) { server in
            try await Self.live(on: server, camera: camera, body)
        }
    }
}
