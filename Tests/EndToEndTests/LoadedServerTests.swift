import Foundation
import NIOCore
import RTMP
import ServerTestSupport
import TestSupport
import Testing

/// A server process under load: each viewer's bytes are right, and nothing is left when all have gone.
///
/// scripts/test.sh runs these alone, so that they disturb nothing.
/// Long forms: `EARSHOT_CYCLES=10000`, `EARSHOT_CHURN_SECONDS=600`, `EARSHOT_NAMES=10000`.
@Suite(.serialized) struct LoadedServerTests {
    private static func setting(_ name: String, _ short: Int) -> Int {
        ProcessInfo.processInfo.environment[name].flatMap(Int.init) ?? short
    }

    /// Viewers of two streams come and go, so that each descriptor is soon another viewer's.
    /// None may get a byte of the other stream.
    @Test(.timeLimit(.minutes(15))) func descriptorsThatAreReused() async throws {
        let cycles = Self.setting("EARSHOT_CYCLES", 2_000)
        // No viewer is slow enough to skip anything, however slow the machine is.
        try await Self.run("relay: {skipBehind: 20s, maxBehind: 30s}") { server in
            func load(_ cycles: Int) async throws -> JSON {
                try await server.load(["--cycles", "\(cycles)", "--seconds", "\(30 + cycles / 20)", "--viewers", "60", "--life-ms", "250"])
            }
            let settled = try await server.settled { _ = try await load(cycles / 4) }
            let after = try await server.settled(settled.allows) {
                let totals = try await load(cycles)
                #expect(totals["gone"].int ?? 0 >= cycles && totals["played"].int ?? 0 > cycles / 2, "\(totals)")
            }
            #expect(after.descriptors <= settled.descriptors)
            #expect(after.bytes - settled.bytes < EarshotProcess.Left.growthLimit, "grew by \((after.bytes - settled.bytes) >> 10) KiB")
        }
    }

    /// Viewers that also stop and resume reading; some are disconnected for it.
    @Test(.timeLimit(.minutes(30))) func viewersThatStall() async throws {
        let seconds = Self.setting("EARSHOT_CHURN_SECONDS", 20)
        try await Self.run("relay: {skipBehind: 500ms, maxBehind: 2s}") { server in
            func load(_ seconds: Int, seed: Int) async throws -> JSON {
                try await server.load([
                    "--seconds", "\(seconds)", "--viewers", "60", "--life-ms", "4000", "--stalling", "40", "--seed", "\(seed)",
                ])
            }
            let settled = try await server.settled { _ = try await load(max(8, seconds / 10), seed: 1) }
            let after = try await server.settled(settled.allows) {
                let totals = try await load(seconds, seed: 2)
                #expect(totals["stalls"].int ?? 0 > seconds && totals["cut"].int ?? 0 > 0, "\(totals)")
            }
            #expect(after.descriptors <= settled.descriptors)
            #expect(after.bytes - settled.bytes < EarshotProcess.Left.growthLimit, "grew by \((after.bytes - settled.bytes) >> 10) KiB")
        }
    }

    /// Names that are published and played once, and never again.
    @Test(.timeLimit(.minutes(30))) func distinctNames() async throws {
        let count = Self.setting("EARSHOT_NAMES", 2_000)
        try await Self.run("") { server in
            let half = try await server.settled { try await server.useNames(0..<count / 2) }
            let whole = try await server.settled(half.allows) { try await server.useNames(count / 2..<count) }
            #expect(whole.descriptors <= half.descriptors, "\(whole.open) after \(half.open)")
            #expect(whole.open["earshot.db"] ?? 0 <= 6, "\(whole.open)")
            #expect(whole.bytes - half.bytes < EarshotProcess.Left.growthLimit, "grew by \((whole.bytes - half.bytes) >> 10) KiB")
        }
    }

    /// `settings`: more lines of YAML. Short periods end rooms soon.
    private static func run(_ settings: String, _ body: (EarshotProcess) async throws -> Void) async throws {
        try await Fixture.withDirectory { directory in
            let config = directory.appendingPathComponent("earshot.yaml")
            try """
            \(settings)
            rooms: {policy: {grace: 1s, cleanStop: 500ms, retention: 1s}}
            api: {rateLimit: 100000}
            limits: {publishesPerAddress: 100000, roomsPerAddress: 100000}
            log: {level: warning}
            """.write(to: config, atomically: true, encoding: .utf8)
            try await EarshotProcess.serve(data: directory, ["--config", config.path], body)
        }
    }
}

extension EarshotProcess {
    fileprivate struct Left {
        /// Allowed growth over what a smaller load left, in bytes.
        static let growthLimit = 6 << 20

        let bytes: Int
        /// Open descriptors by target.
        let open: [String: Int]
        /// Excludes the store's: it opens another reader when several read at once, and keeps it; five at most.
        var descriptors: Int { self.open.filter { !$0.key.hasPrefix("earshot.db") }.values.reduce(0, +) }

        func allows(_ later: Left) -> Bool {
            later.descriptors <= self.descriptors && later.bytes - self.bytes < Self.growthLimit
        }
    }

    private func api(_ path: String) async throws -> JSON {
        // A separate process, whose connection ends with it and does not count as left over.
        let curl = try await ClientProcess.run(
            ["curl", "-sS", "--fail-with-body", "-H", "Authorization: Bearer \(self.token)", "\(self.http)/api/v1/\(path)"], within: 60)
        guard curl.status == 0 else { throw TimedOut(description: "\(path): \(curl.text) \(curl.errors)") }
        return JSON(try JSONSerialization.jsonObject(with: curl.output))["data"]
    }

    /// Runs the load generator; fails on a wrong byte.
    fileprivate func load(_ arguments: [String]) async throws -> JSON {
        let binary = URL(fileURLWithPath: try Self.binary()).deletingLastPathComponent().appendingPathComponent("earshot-load").path
        let outcome = try await ClientProcess.run([binary, "churn", "--url", "\(self.rtmp)/live"] + arguments, within: 1_500)
        #expect(outcome.status == 0, "\(outcome.text)\(outcome.errors)")
        return JSON(try JSONSerialization.jsonObject(with: outcome.output))
    }

    /// Runs the body, and waits until the server knows nothing of it any more. Returns what the process still holds,
    /// once `mayHold` allows it: memory and descriptors are released later.
    fileprivate func settled(_ mayHold: (Left) -> Bool = { _ in true }, _ body: () async throws -> Void) async throws -> Left {
        try await body()
        try await eventually("all sessions and streams to end") {
            let sessions = try await self.api("sessions")["total"].int
            let streams = try await self.api("streams")["total"].int
            let rooms = try await self.api("rooms")["total"].int
            return sessions == 0 && streams == 0 && rooms == 0
        }
        let check = try await self.api("selfcheck")
        #expect(check["ok"].bool == true, "\(check)")
        func left() throws -> Left { Left(bytes: try self.process.residentBytes(), open: try self.process.openFiles()) }
        try? await eventually("it to be given back") { mayHold(try left()) }
        return try left()
    }

    /// Publishes and plays each name for a moment.
    fileprivate func useNames(_ numbers: Range<Int>) async throws {
        let port = try Int(self.rtmp.split(separator: ":").last.map(String.init) ?? "").orThrow()
        try await withThrowingTaskGroup(of: Void.self) { group in
            var rest = numbers.makeIterator()
            for _ in 0..<12 { if let number = rest.next() { group.addTask { try await Self.useName(number, port) } } }
            while try await group.next() != nil {
                if let number = rest.next() { group.addTask { try await Self.useName(number, port) } }
            }
        }
    }

    private static func useName(_ number: Int, _ port: Int) async throws {
        let early = number % 2 == 0 ? try await RawClient.playing(port, "name\(number)") : nil
        let publisher = try await RawClient.publishing(port, "name\(number)")
        publisher.send(.video, SyntheticTag.videoHeader)
        publisher.send(.video, SyntheticTag.video(number, isKeyframe: true, bytes: 4_000))
        publisher.send(.audio, SyntheticTag.audio(number, bytes: 100))
        var viewer = early
        if viewer == nil { viewer = try await RawClient.playing(port, "name\(number)") }
        let player = try viewer.orThrow()
        try await eventually("what was published as name\(number)") { player.media().count >= 3 }
        #expect(player.media().compactMap { SyntheticTag.number($0.message) } == [number, number])
        // In any order, and not always orderly.
        if number % 3 == 0 { try await publisher.reset() } else { await publisher.close() }
        if number % 5 == 0 { try await player.reset() } else { await player.close() }
    }
}
