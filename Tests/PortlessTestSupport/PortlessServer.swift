import APITestSupport
import Foundation
import HTTPServer
import Logging
import NIOCore
import PostgresTestSupport
import RTMPServer
import RTMPTestSupport
package import RoomRegistry
import Rooms
package import ServerConfiguration
package import ServerTestSupport
import ServiceLifecycle
import Streaming
package import Support
import Synchronization
import TestSupport

@testable package import EarshotServer

/// A whole server without its ports, for one test: its clients reach it through the ``MemoryNetwork``. Everything behind the sockets is the real one,
/// with a store of its own; it ends without the time that a real one leaves its clients to read their last bytes.
package struct PortlessServer: LiveServer, AddressedServer {
    /// Of the ``MemoryNetwork``.
    package let addresses: BoundAddresses
    package let server: Server
    package let lines: LogLines
    package let token: String
    /// Removed with the server, unless the test provided it.
    package let dataDirectory: String
    private let clock: PassingClock

    package var parts: ServerParts { self.server.parts }
    package var rooms: RoomRegistry { self.server.parts.rooms }

    /// Lets room time go on at once.
    package func pass(_ ms: Int64) { self.clock.pass(ms) }

    /// Runs a server with its own data directory, and stops it whatever the body does.
    package static func run<Result: Sendable>(
        _ configure: (inout ServerConfig) -> Void = { _ in }, _ body: @Sendable (PortlessServer) async throws -> Result
    ) async throws -> Result {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-data-\(UUID().uuidString)").path
        defer {
            TestPostgres.remove(directory)
            try? FileManager.default.removeItem(atPath: directory)
        }
        return try await Self.run(data: directory, configure, body)
    }

    /// Runs a server on this data directory, which stays.
    package static func run<Result: Sendable>(
        data directory: String, _ configure: (inout ServerConfig) -> Void = { _ in },
        _ body: @Sendable (PortlessServer) async throws -> Result
    ) async throws -> Result {
        var config = try TestConfiguration.make(in: directory)
        configure(&config)
        let lines = LogLines()
        var log = Logger(label: "earshot", factory: { _ in CollectingLogHandler(lines: lines) })
        log.logLevel = config.log.level
        let clock = PassingClock()
        let server = try Server(config: config, log: log, clock: clock.room(holdMs: config.rooms.clockHoldMs))
        try await server.start()
        let addresses = Self.listen(server)
        defer { for address in [addresses.rtmp, addresses.http, addresses.https] { MemoryNetwork.leave(address?.port ?? 0) } }
        server.parts.connections.isBound(to: addresses)
        let running = PortlessServer(
            addresses: addresses, server: server, lines: lines, token: try TokenFile.read(directory), dataDirectory: directory,
            clock: clock)
        return try await running.serve {
            let result = try await body(running)
            try await EventCheck.checkNewest(of: server.parts.rooms)
            return result
        }
    }

    /// Runs a server with a self-signed certificate, and so with HTTPS.
    package static func runSecure<Result: Sendable>(
        _ configure: @Sendable (inout ServerConfig) -> Void = { _ in }, _ body: @Sendable (PortlessServer) async throws -> Result
    ) async throws -> Result {
        try await Fixture.withDirectory { directory in
            let files = try await Certificate.make("localhost", in: directory)
            return try await Self.run({ config in
                config.rtmps.listen = HostPort(host: "127.0.0.1", port: 0)
                config.https.listen = HostPort(host: "127.0.0.1", port: 0)
                (config.rtmps.certificate, config.rtmps.key) = (files.certificate, files.key)
                configure(&config)
            }) { try await body($0) }
        }
    }

    private static func listen(_ server: Server) -> BoundAddresses {
        func address(_ accept: @escaping MemoryNetwork.Accept) -> HostPort {
            HostPort(host: "127.0.0.1", port: MemoryNetwork.listen(accept))
        }
        let (rtmp, http) = (server.parts.rtmp, server.http[0])
        return BoundAddresses(
            rtmp: address { channel in
                channel.eventLoop.makeCompletedFuture { try RTMPListener.prepare(channel, rtmp) }
            }, rtmps: nil, http: address { http.serve($0) },
            https: server.http.dropFirst().first.map { https in address { https.serve($0) } })
    }

    /// Runs the server's services during the body.
    private func serve<Result: Sendable>(_ body: @Sendable () async throws -> Result) async throws -> Result {
        var quiet = Logger(label: "group", factory: { _ in SwiftLogNoOpLogHandler() })
        quiet.logLevel = .critical
        let group = ServiceGroup(configuration: .init(services: self.server.servicesBehindPorts, logger: quiet))
        return try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            let outcome: Swift.Result<Result, any Error>
            do {
                outcome = .success(try await body())
            } catch {
                outcome = .failure(error)
            }
            await self.server.parts.streams.drain()
            self.server.parts.stop()
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
            return try outcome.get()
        }
    }
}

/// This machine's clocks, and what tests let pass besides. Any thread.
private final class PassingClock: Sendable {
    private let passedMs = Atomic<Int64>(0)

    func pass(_ ms: Int64) { self.passedMs.add(ms, ordering: .relaxed) }

    /// Room time by these clocks.
    func room(holdMs: Int64) -> RoomClock {
        let system = RoomClock()
        return RoomClock(
            .init(
                steadyMs: { system.steadyMs + self.passedMs.load(ordering: .relaxed) },
                wallMs: { WallClock.ms + self.passedMs.load(ordering: .relaxed) }, bootID: nil), holdMs: holdMs)
    }
}
