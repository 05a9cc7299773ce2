import EarshotServer
import Foundation
import Logging
import ServerConfiguration
import ServiceLifecycle
import Support

/// A real server on system-chosen ports, for one test.
struct TestServer: Sendable {
    let addresses: BoundAddresses
    let server: Server
    let lines: LogLines
    /// The token of its first start, with all rights.
    let token: String
    /// Removed with the server, unless the test provided it.
    let dataDirectory: String

    /// "rtmp://127.0.0.1:PORT"
    var rtmp: String { "rtmp://127.0.0.1:\(self.addresses.rtmp.port)" }
    var rtmps: String { "rtmps://127.0.0.1:\(self.addresses.rtmps?.port ?? 0)" }
    var http: String { "http://127.0.0.1:\(self.addresses.http.port)" }

    /// Runs a server with its own data directory, and stops it whatever the body does.
    static func run<Result: Sendable>(
        _ configure: (inout ServerConfig) -> Void = { _ in }, _ body: @Sendable (TestServer) async throws -> Result
    ) async throws -> Result {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-data-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: directory) }
        return try await Self.run(data: directory, configure, body)
    }

    /// Runs a server on this data directory, which stays.
    static func run<Result: Sendable>(
        data directory: String, _ configure: (inout ServerConfig) -> Void = { _ in }, _ body: @Sendable (TestServer) async throws -> Result
    ) async throws -> Result {
        var config = ServerConfig()
        config.data.directory = directory
        config.rtmp.listen = HostPort(host: "127.0.0.1", port: 0)
        config.http.listen = HostPort(host: "127.0.0.1", port: 0)
        config.https.listen = HostPort(host: "127.0.0.1", port: 0)
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

    /// `data` of an API answer.
    func api(_ path: String) async throws -> JSON {
        try await self.call("GET", path).json()["data"]
    }

    /// An API call with the admin token, or another one ("" sends none). `body` is an object in JSON.
    func call(
        _ method: String, _ path: String, _ body: String? = nil, token: String? = nil, headers: [String: String] = [:]
    ) async throws -> HTTPAnswer {
        let token = token ?? self.token
        return try await HTTPAnswer.call(
            method, "\(self.http)/api/v1/\(path)", body: body.map { Data($0.utf8) }, token: token.isEmpty ? nil : token, headers: headers)
    }

    /// Waits until the API's answer satisfies the condition; throws after the limit.
    func wait(
        _ path: String, within seconds: Double = 60, until condition: @Sendable (JSON) -> Bool
    ) async throws {
        try await eventually("\(path) to change", within: seconds) { condition(try await self.api(path)) }
    }
}

/// Decoded JSON, read leniently: tests fail on a wrong value, not on a missing key.
struct JSON: @unchecked Sendable {
    // Foundation's JSON values are immutable once parsed.
    let value: Any?
    init(_ value: Any?) { self.value = value }
    subscript(key: String) -> JSON { JSON((self.value as? [String: Any])?[key]) }
    subscript(index: Int) -> JSON {
        guard let list = self.value as? [Any], list.indices.contains(index) else { return JSON(nil) }
        return JSON(list[index])
    }
    var count: Int { (self.value as? [Any])?.count ?? 0 }
    var string: String? { self.value as? String }
    var int: Int? { (self.value as? NSNumber)?.intValue }
    var double: Double? { (self.value as? NSNumber)?.doubleValue }
    var bool: Bool? { (self.value as? NSNumber)?.boolValue }
    var isNull: Bool { self.value is NSNull }
    var names: Set<String> { Set((self.value as? [String: Any] ?? [:]).keys) }
    var list: [JSON] { (self.value as? [Any])?.map(JSON.init) ?? [] }
}

/// The log lines of a server.
final class LogLines: @unchecked Sendable {
    private let lock = NSLock()
    private var lines: [String] = []
    var all: [String] { self.lock.withLock { self.lines } }
    func append(_ line: String) { self.lock.withLock { self.lines.append(line) } }
    func contains(_ parts: String...) -> Bool { self.contains(parts) }
    private func contains(_ parts: [String]) -> Bool { self.all.contains { line in parts.allSatisfy(line.contains) } }

    /// Waits up to a minute for such a line: a client may see an effect before the line is logged.
    func comes(_ parts: String...) async -> Bool {
        (try? await eventually("the line") { self.contains(parts) }) != nil
    }
}

struct CollectingLogHandler: LogHandler {
    let lines: LogLines
    var logLevel = Logger.Level.info
    var metadata: Logger.Metadata = [:]

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { self.metadata[key] }
        set { self.metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = self.metadata.merging(event.metadata ?? [:]) { $1 }
        let fields = all.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }.joined(separator: " ")
        self.lines.append("\(event.level) \(event.message) \(fields)")
    }
}
