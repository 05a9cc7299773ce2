import Foundation
import Logging
import Rooms
import ServerTestSupport
import Streaming
import Support
import Synchronization
import TestSupport

@testable import Statistics

/// Statistics in a folder of their own, by clocks that the test sets.
final class TestStatistics: Sendable {
    /// Milliseconds since 1970: the beginning of a day.
    static let start: Int64 = 1_795_651_200_000

    let directory: String
    let lines = LogLines()
    let statistics: Statistics
    private let nowMs: TestClock

    final class TestClock: Sendable {
        private let value: Mutex<Int64>
        init(_ ms: Int64) { self.value = Mutex(ms) }
        var ms: Int64 { self.value.withLock { $0 } }
        func set(_ ms: Int64) { self.value.withLock { $0 = ms } }
        func pass(_ ms: Int64) { self.value.withLock { $0 += ms } }
    }

    init(directory: String? = nil, at ms: Int64 = TestStatistics.start, _ change: (inout StatisticsSettings) -> Void = { _ in }) throws {
        let own = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-stats-\(UUID().uuidString)").path
        self.directory = directory ?? own
        try FileManager.default.createDirectory(atPath: self.directory, withIntermediateDirectories: true)
        let clock = TestClock(ms)
        self.nowMs = clock
        var settings = StatisticsSettings()
        change(&settings)
        let lines = self.lines
        let log = Logger(label: "test", factory: { _ in CollectingLogHandler(lines: lines) })
        self.statistics = Statistics(
            directory: self.directory, settings: settings, clock: .init(wallMs: { clock.ms }, steadyMs: { clock.ms }), log: log)
    }

    var store: StatisticsStore { self.statistics.store }
    var file: String { "\(self.directory)/\(StatisticsStore.fileName)" }
    var ms: Int64 { self.nowMs.ms }

    func pass(_ ms: Int64) { self.nowMs.pass(ms) }

    /// Ends the statistics and removes the folder.
    func remove() async {
        await self.statistics.stop()
        try? FileManager.default.removeItem(atPath: self.directory)
    }

    /// A sample of one stream, and the write after it.
    func sample(_ path: String = "live/a", viewers: Int, bytesIn: UInt64, bytesOut: UInt64) async {
        self.statistics.beginSample()
        self.statistics.endSample([path: .init(viewers: viewers, bytesIn: bytesIn, bytesOut: bytesOut)], connections: ["rtmp": viewers + 1])
        await self.statistics.write()
    }

    /// All that there is of a stream, or of all.
    func series(_ path: String? = "live/a", step: Int64 = 60_000) async throws -> [StatisticsPoint] {
        let window = StatisticsWindow(fromMs: 0, toMs: 4_000_000_000_000, stepMs: step)
        return try await self.store.series(path.map { .stream($0) } ?? .everything, window)
    }

    func play(_ path: String = "live/a", session: UInt64 = 1, bytes: UInt64 = 1_000, reason: CloseReason = .clientClosed) {
        self.statistics.playEnded(
            FinishedPlay(
                path: path, room: nil, session: session, user: "u\(session)", address: "192.0.2.1", transport: .rtmp, client: "=cmd()",
                durationMs: 5_000, bytes: bytes, reason: reason, skippedFrames: 3, longestBehindMs: 70), viewers: 0)
    }

    func push(_ path: String = "live/a", session: UInt64 = 1, bytes: UInt64 = 1_000) {
        var push = FinishedPush(
            path: path, room: "r1", session: session, user: nil, address: "192.0.2.2", source: .rtmps, client: "OBS", durationMs: 9_000,
            bytes: bytes, end: .connectionLost)
        push.media.videoCodec = "H.264"
        push.media.width = 1280
        push.media.height = 720
        self.statistics.pushEnded(push)
    }
}
