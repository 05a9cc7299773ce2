import ArgumentParser
import AsyncHTTPClient
import FoundationEssentials
import NIOCore
import NIOHTTP1
import Synchronization

/// Changes the state of rooms over the API at an even pace. Each request is one transition, which is on the server's disk with its event
/// when the answer arrives.
struct Transitions: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Change the state of rooms over the API at a steady rate and report how long the answers take.")

    @Option(help: "The API: http://127.0.0.1:PORT.")
    var api: String
    @Option(help: "File with an API token of role ops or admin.")
    var tokenFile: String
    @Option(help: "Rooms, which take turns.")
    var rooms = 1_000
    @Option(help: "What the rooms' ids begin with. Two loads at once need rooms of their own.")
    var prefix = "load"
    @Option(help: "Transitions a second.")
    var rate = 1_000
    @Option(help: "Seconds.")
    var seconds = 60.0
    @Option(help: "Connections.")
    var connections = 32
    @Option(help: "Write the figures to this file.")
    var json: String?

    func validate() throws {
        guard self.api.hasPrefix("http://127.0.0.1:") else { throw ValidationError("--api must be http://127.0.0.1:PORT") }
        guard (1...100_000).contains(self.rooms), (1...20_000).contains(self.rate), (1...600).contains(self.seconds),
            (1...256).contains(self.connections)
        else { throw ValidationError("a number is out of range") }
    }

    struct Report: Codable {
        var wantedPerSecond: Int
        var reachedPerSecond = 0.0
        var transitions = 0
        var failed = 0
        var firstFailure: String?
        var answerP50Ms: Double?
        var answerP99Ms: Double?
        var answerMaxMs: Double?
    }

    private struct Tally: Sendable {
        var times = Histogram()
        var failed = 0
        var firstFailure: String?
    }

    private final class SharedTally: Sendable {
        let value = Mutex(Tally())
    }

    func run() async throws {
        let token = try String(contentsOfFile: self.tokenFile, encoding: .utf8).filter { !$0.isWhitespace }
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = self.connections
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        do {
            try await self.load(client, token)
        } catch {
            try await client.shutdown()
            throw error
        }
        try await client.shutdown()
    }

    private func load(_ client: HTTPClient, _ token: String) async throws {
        let caller = Caller(client: client, base: self.api, token: token)
        let ids = (0..<self.rooms).map { "\(self.prefix)-\($0)" }
        try await Self.spread(ids, over: self.connections) { _, id in
            let answer = try await caller.post("/api/v1/rooms", #"{"roomId":"\#(id)","policy":{"neverStarted":3600}}"#)
            guard answer.status == 201 || answer.status == 409 else { throw APIFailure("POST /rooms: \(answer.status) \(answer.body)") }
        }
        print("\(self.rooms) rooms made; \(self.rate) transitions a second for \(self.seconds) s")
        let start = ContinuousClock.now
        let count = Int(Double(self.rate) * self.seconds)
        let tally = SharedTally()
        let turns = Turns()
        let (rate, end) = (self.rate, start + .milliseconds(Int(self.seconds * 1_000)))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<self.connections {
                group.addTask {
                    while true {
                        let index = turns.next()
                        // A server that does not keep up is not asked for longer.
                        guard index < count, .now < end else { return }
                        let due = start + .microseconds(index * 1_000_000 / rate)
                        if due > .now { try await Task.sleep(until: due, clock: .continuous) }
                        let (turn, room) = index.quotientAndRemainder(dividingBy: ids.count)
                        let sent = ContinuousClock.now
                        let answer =
                            turn % 2 == 0
                            ? try await caller.post("/api/v1/rooms/\(ids[room])/forbid", #"{"seconds":3600,"reason":"load"}"#)
                            : try await caller.post("/api/v1/rooms/\(ids[room])/resume", nil)
                        let took = (ContinuousClock.now - sent).components
                        let microseconds = UInt64(took.seconds) * 1_000_000 + UInt64(took.attoseconds / 1_000_000_000_000)
                        tally.value.withLock { tally in
                            tally.times.record(microseconds: microseconds)
                            if answer.status != 200 {
                                tally.failed += 1
                                tally.firstFailure = tally.firstFailure ?? "\(answer.status) \(answer.body)"
                            }
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let took = (ContinuousClock.now - start).components
        let final = tally.value.withLock { $0 }
        let report = Report(
            wantedPerSecond: self.rate,
            reachedPerSecond: (Double(final.times.total) / (Double(took.seconds) + Double(took.attoseconds) / 1e18) * 10).rounded() / 10,
            transitions: final.times.total - final.failed, failed: final.failed, firstFailure: final.firstFailure,
            answerP50Ms: final.times.milliseconds(at: 0.5), answerP99Ms: final.times.milliseconds(at: 0.99),
            answerMaxMs: final.times.milliseconds(at: 1))
        print(
            """
            \(report.transitions) transitions, \(report.reachedPerSecond) a second; \(report.failed) failed \(report.firstFailure ?? "")
            answers: p50 \(report.answerP50Ms ?? 0) ms, p99 \(report.answerP99Ms ?? 0) ms, worst \(report.answerMaxMs ?? 0) ms
            """)
        if let json = self.json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            try encoder.encode(report).write(to: URL(filePath: json))
        }
        if report.failed > 0 { throw ExitCode(1) }
    }

    /// Does the work for all items, `width` at a time.
    static func spread<Item: Sendable>(
        _ items: [Item], over width: Int, _ work: @escaping @Sendable (Int, Item) async throws -> Void
    ) async throws {
        let turns = Turns()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<width {
                group.addTask {
                    while true {
                        let index = turns.next()
                        guard index < items.count else { return }
                        try await work(worker, items[index])
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}

/// Hands out the next index. Any thread.
private final class Turns: Sendable {
    private let last = Atomic<Int>(0)
    func next() -> Int { self.last.add(1, ordering: .relaxed).oldValue }
}

private struct Caller: Sendable {
    let client: HTTPClient
    let base: String
    let token: String

    func post(_ path: String, _ body: String?) async throws -> (status: Int, body: String) {
        var request = HTTPClientRequest(url: self.base + path)
        request.method = .POST
        request.headers.add(name: "Authorization", value: "Bearer \(self.token)")
        if let body {
            request.headers.add(name: "Content-Type", value: "application/json")
            request.body = .bytes(ByteBuffer(string: body))
        }
        let response = try await self.client.execute(request, timeout: .seconds(30))
        let answer = try await response.body.collect(upTo: 1 << 20)
        return (Int(response.status.code), response.status.code < 300 ? "" : String(buffer: answer))
    }
}

struct APIFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
