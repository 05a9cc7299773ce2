import Access
package import Foundation
import HTTPServer
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOEmbedded
import PostgresTestSupport
package import RoomRegistry
package import ServerConfiguration
package import ServerTestSupport
import ServiceLifecycle
import Streaming
package import Support
import TestSupport

@testable package import EarshotServer

/// A whole server that opens no port, for one test: requests go to its router, as those of a client on this machine.
package struct UnboundServer: RunningServer {
    package let server: Server
    package let lines: LogLines
    package let token: String
    /// Removed with the server, unless the test provided it.
    package let dataDirectory: String
    private let client: any Channel
    private let log: Logger

    /// Where it believes to listen, for the URLs that it makes.
    package static let addresses = BoundAddresses(
        rtmp: HostPort(host: "127.0.0.1", port: 19_350), rtmps: nil, http: HostPort(host: "127.0.0.1", port: 18_080))
    package var rooms: RoomRegistry { self.server.parts.rooms }
    package var rtmp: String { "rtmp://127.0.0.1:\(Self.addresses.rtmp.port)" }
    package var http: String { "http://127.0.0.1:\(Self.addresses.http.port)" }

    /// Runs a server with its own data directory, and stops it whatever the body does.
    package static func run<Result: Sendable>(
        _ configure: (inout ServerConfig) -> Void = { _ in }, _ body: @Sendable (UnboundServer) async throws -> Result
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
    package static func run<Result: Sendable>(
        data directory: String, _ configure: (inout ServerConfig) -> Void = { _ in },
        _ body: @Sendable (UnboundServer) async throws -> Result
    ) async throws -> Result {
        try await Self.serve(data: directory, configure) { server in
            let result = try await body(server)
            try await EventCheck.checkNewest(of: server.rooms)
            return result
        }
    }

    private static func serve<Result: Sendable>(
        data directory: String, _ configure: (inout ServerConfig) -> Void, _ body: @Sendable (UnboundServer) async throws -> Result
    ) async throws -> Result {
        var config = try TestConfiguration.make(in: directory)
        configure(&config)
        let lines = LogLines()
        var log = Logger(label: "earshot", factory: { _ in CollectingLogHandler(lines: lines) })
        log.logLevel = config.log.level
        let server = try Server(config: config, log: log)
        try await server.start()
        server.parts.connections.isBound(to: Self.addresses)
        let client = NIOAsyncTestingChannel()
        client.remoteAddress = try SocketAddress(ipAddress: "127.0.0.1", port: 50_000)
        let running = UnboundServer(
            server: server, lines: lines, token: try TokenFile.read(directory), dataDirectory: directory, client: client, log: log)
        return try await running.serve(body)
    }

    /// Runs the server's services while the body runs.
    private func serve<Result: Sendable>(_ body: @Sendable (UnboundServer) async throws -> Result) async throws -> Result {
        var quiet = Logger(label: "group", factory: { _ in SwiftLogNoOpLogHandler() })
        quiet.logLevel = .critical
        let group = ServiceGroup(configuration: .init(services: self.server.servicesBehindPorts, logger: quiet))
        return try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            let outcome: Swift.Result<Result, any Error>
            do {
                outcome = .success(try await body(self))
            } catch {
                outcome = .failure(error)
            }
            await self.end()
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
            return try outcome.get()
        }
    }

    /// Ends what clients are connected to, as a server does before its services stop.
    private func end() async {
        await self.server.parts.streams.drain()
        // They close a turn later, and report the ends of their pushes.
        try? await eventually("the connections to end") {
            try await self.server.parts.streams.collect { $0.sessionSnapshots() }.isEmpty
        }
        self.server.parts.stop()
        await self.server.parts.rules.finishReports(within: .seconds(1))
        try? await self.client.close()
    }

    package func exchange(_ method: String, _ path: String, _ body: Data?, _ headers: [String: String]) async throws -> HTTPAnswer {
        // A client's library adds these.
        var fields: HTTPFields = [.acceptEncoding: "gzip, deflate"]
        if let body { fields[.contentLength] = "\(body.count)" }
        for (name, value) in headers { fields[try HTTPField.Name(name).orThrow()] = value }
        let head = HTTPRequest(
            method: try HTTPRequest.Method(method).orThrow(), scheme: "http",
            authority: headers["Host"] ?? "127.0.0.1:\(Self.addresses.http.port)", path: path, headerFields: fields)
        var log = self.log
        log[metadataKey: "hb.request.id"] = .stringConvertible(RequestID())
        return try await HTTPAnswer(
            self.server.responder.respond(
                to: Request(head: head, body: RequestBody(buffer: ByteBuffer(bytes: body ?? Data()))),
                context: APIContext(source: .init(channel: self.client, logger: log))))
    }
}
