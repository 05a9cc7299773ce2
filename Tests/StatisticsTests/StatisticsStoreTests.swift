import Foundation
import GRDB
import Relay
import Rooms
import ServerTestSupport
import Streaming
import Support
import TestSupport
import Testing

@testable import Statistics

/// The rows kept, for how long, and which of them survive a restart.
@Suite struct StatisticsStoreTests {
    @Test func minutesAddUp() async throws {
        let test = try TestStatistics()
        await test.statistics.start()
        for second in stride(from: 10, through: 130, by: 10) {
            test.pass(10_000)
            await test.sample(viewers: 2, bytesIn: UInt64(second) * 100, bytesOut: UInt64(second) * 200)
        }
        let minutes = try await test.series()
        #expect(minutes.map(\.atMs) == [0, 60_000, 120_000].map { TestStatistics.start + $0 })
        #expect(minutes.map(\.figures.bytesIn) == [5_000, 6_000, 2_000])
        #expect(minutes.map(\.figures.bytesOut) == [10_000, 12_000, 4_000])
        #expect(minutes.map(\.figures.peak) == [2, 2, 2])
        // The first sample found the viewers: before it, nothing is known of them.
        #expect(minutes.map(\.figures.viewerMs) == [80_000, 120_000, 40_000])
        #expect(try await test.series(nil).map(\.figures.bytesOut) == [10_000, 12_000, 4_000])
        let window = StatisticsWindow(fromMs: TestStatistics.start, toMs: test.ms, stepMs: 60_000)
        let connections = try await test.store.connections(window)
        #expect(connections.map(\.subject) == ["rtmp"] && connections.map(\.figures.peak) == [3])
        await test.remove()
    }

    /// Minutes become ten minutes after a day, and those are deleted after a month.
    @Test func oldFiguresBecomeCoarserAndGo() async throws {
        let test = try TestStatistics()
        await test.statistics.start()
        var bytes: UInt64 = 0
        // Two hours, one sample a minute.
        for _ in 0..<120 {
            test.pass(60_000)
            bytes += 1_000
            await test.sample(viewers: 1, bytesIn: bytes, bytesOut: 0)
        }
        #expect(try await test.series().count == 120)
        #expect(try await test.store.coarseUntilMs() == nil)
        // An hour and a half of these minutes are now older than a day.
        test.pass(86_400_000 - 30 * 60_000)
        await test.statistics.write()
        let boundary = try #require(try await test.store.coarseUntilMs())
        #expect(boundary == TestStatistics.start + 90 * 60_000)
        let all = try await test.series()
        #expect(all.count == 9 + 31, "nine rows of ten minutes; minutes from 90 to 120")
        #expect(all.reduce(0) { $0 + $1.figures.bytesIn } == 120_000)
        let tens = try await test.series(step: 600_000)
        #expect(tens.map(\.figures.bytesIn) == [9_000] + Array(repeating: 10_000, count: 11) + [1_000])
        test.pass(31 * 86_400_000)
        await test.statistics.write()
        #expect(try await test.series().isEmpty)
        await test.remove()
    }

    /// Averages are over the seconds of the push, whatever the step; the longest keyframe interval stays the longest.
    @Test func arrivalsAddUp() async throws {
        let test = try TestStatistics()
        await test.statistics.start()
        for minute in 0..<20 {
            test.pass(60_000)
            var arrival = StreamHistory.Sum()
            arrival.seconds = minute < 10 ? 60 : 30
            arrival.framesPerSecond = minute < 10 ? 60 * 25 : 30 * 10
            arrival.arrivalJitterMs = Double(arrival.seconds * 4)
            arrival.longestKeyframeIntervalMs = minute == 3 ? 8_000 : 2_000
            test.statistics.beginSample()
            test.statistics.endSample(["live/a": .init(bytesIn: UInt64(minute), arrival: arrival)], connections: [:], midpointAgeMs: 30_000)
            await test.statistics.write()
        }
        func check(_ what: Comment) async throws {
            let tens = try await test.series(step: 600_000)
            #expect(tens.map(\.figures.arrival.seconds) == [600, 300], what)
            #expect(tens.map(\.figures.arrival.framesPerSecond) == [15_000, 3_000], what)
            #expect(tens.map(\.figures.arrival.arrivalJitterMs) == [2_400, 1_200], what)
            #expect(tens.map(\.figures.arrival.longestKeyframeIntervalMs) == [8_000, 2_000], what)
        }
        try await check("as minutes")
        test.pass(2 * 86_400_000)
        await test.statistics.write()
        #expect(try await test.store.coarseUntilMs() == TestStatistics.start + 20 * 60_000)
        try await check("as tens of minutes")
        await test.remove()
    }

    @Test func theOldestGoFirst() async throws {
        let test = try TestStatistics { $0.maxRows = 100 }
        await test.statistics.start()
        for minute in 0..<150 {
            test.pass(60_000)
            test.play(session: UInt64(minute))
            test.push(session: UInt64(minute))
            await test.sample(viewers: 1, bytesIn: UInt64(minute + 1) * 1_000, bytesOut: 0)
        }
        var filter = FinishedFilter()
        filter.limit = 1_000
        let plays = try await test.store.plays(filter)
        #expect(plays.count == 100 && plays.first?.value.session.session == 149 && plays.last?.value.session.session == 50)
        #expect(try await test.store.pushes(filter).count == 100)
        #expect(test.store.surplusRows == 100, "50 plays and 50 pushes")
        // Three subjects a minute: those minutes that are too many became ten minutes; none is lost.
        let rows = try await test.store.read { db in
            (try db.number("SELECT count(*) FROM minutes") ?? 0, try db.number("SELECT count(*) FROM tens") ?? 0)
        }
        #expect(rows.0 <= 100 && rows.0 > 60 && rows.1 > 0, "\(rows)")
        let total = try await test.series(step: 600_000).reduce(0) { $0 + $1.figures.bytesIn }
        #expect(total == 300_000, "what has ended, and what is there")
        await test.remove()
    }

    @Test func finishedSessionsAreFoundByWhatTheyWere() async throws {
        let test = try TestStatistics()
        await test.statistics.start()
        test.statistics.published("live/a", room: .init(stored: "r7"))
        for session in 1...30 {
            test.pass(1_000)
            test.play(session % 3 == 0 ? "live/b" : "live/a", session: UInt64(session), reason: session % 5 == 0 ? .tooSlow : .clientClosed)
        }
        test.push()
        await test.statistics.write()
        var filter = FinishedFilter()
        filter.stream = "live/a"
        let ofStream = try await test.store.plays(filter)
        #expect(ofStream.count == 20 && ofStream.allSatisfy { $0.value.session.room == "r7" })
        #expect(ofStream.first?.value.endedMs == TestStatistics.start + 29_000)
        #expect(ofStream.first?.value.beganMs == TestStatistics.start + 24_000)
        filter.reason = CloseReason.tooSlow.rawValue
        #expect(try await test.store.plays(filter).map(\.value.session.session) == [25, 20, 10, 5])
        filter.user = "u20"
        #expect(try await test.store.plays(filter).count == 1)
        filter = FinishedFilter()
        filter.fromMs = TestStatistics.start + 10_000
        filter.toMs = TestStatistics.start + 20_000
        #expect(try await test.store.plays(filter).count == 10)
        // Pages by number.
        filter = FinishedFilter()
        filter.limit = 12
        var seen: [UInt64] = []
        while true {
            let page = try await test.store.plays(filter)
            seen += page.map(\.value.session.session)
            guard page.count == 12 else { break }
            filter.before = page.last?.id
        }
        #expect(seen == Array((1...30).reversed()))
        let push = try #require(try await test.store.pushes(FinishedFilter()).first).value
        #expect(push.session.media.width == 1280 && push.session.media.audioCodec == nil && push.session.source == .rtmps)
        #expect(push.session.end == .connectionLost && push.endedMs - push.beganMs == 9_000)
        await test.remove()
    }

    /// Names that only look alike are another's; a prefix of the app does not do, nor one of the name within it.
    @Test(
        arguments: [
            (["live"], [], ["live/acme-1", "live/zulu", "live/acme/x"]), ([], ["acme-"], ["live/acme-1", "lively/acme-2"]),
            (["live", "x_"], ["acme-", "zu"], ["live/acme-1", "live/zulu"]), (["liv"], [], []), ([], ["%"], []), (["live"], ["_cme"], []),
            ([], ["ACME"], []),
        ] as [([String], [String], [String])])
    func aScopeSeesItsOwn(_ apps: [String], _ rooms: [String], _ expected: [String]) async throws {
        let test = try TestStatistics()
        await test.statistics.start()
        let all = ["live/acme-1", "live/acme/x", "live/zulu", "lively/acme-2"]
        for path in all {
            test.play(path)
            test.push(path)
            test.pass(10_000)
            await test.sample(path, viewers: 1, bytesIn: 100, bytesOut: 100)
        }
        var filter = FinishedFilter()
        filter.scope = TokenScope(apps: apps, rooms: rooms)
        #expect(try await test.store.plays(filter).map(\.value.session.path).sorted() == expected.sorted())
        #expect(try await test.store.pushes(filter).map(\.value.session.path).sorted() == expected.sorted())
        let window = StatisticsWindow(fromMs: 0, toMs: 4_000_000_000_000, stepMs: 60_000)
        let found = try await test.store.streams(window, of: filter.scope, by: .bytesOut, offset: 0, limit: 10)
        #expect(found.total == expected.count && found.list.map(\.subject).sorted() == expected.sorted())
        filter.scope = .all
        filter.stream = "live/zulu"
        #expect(try await test.store.plays(filter).count == 1)
        #expect(try await test.store.streams(window, by: .plays, offset: 0, limit: 10).total == all.count)
        await test.remove()
    }

    @Test func aRestartGoesOn() async throws {
        let test = try TestStatistics()
        await test.statistics.start()
        test.pass(10_000)
        await test.sample(viewers: 1, bytesIn: 500, bytesOut: 700)
        test.play()
        await test.statistics.stop()
        let second = try TestStatistics(directory: test.directory, at: test.ms + 10_000)
        await second.statistics.start()
        second.play()
        await second.sample(viewers: 2, bytesIn: 30, bytesOut: 40)
        let minute = try await second.series()
        // The play's bytes are of the first minute, too; within one minute both runs add up.
        #expect(minute.count == 1 && minute.first?.figures.bytesIn == 530 && minute.first?.figures.bytesOut == 700 + 1_000 + 40)
        #expect(try await second.store.plays(FinishedFilter()).map(\.id) == [2, 1])
        #expect(second.lines.all.isEmpty && second.statistics.lost == 0, "\(second.lines.all)")
        await second.remove()
    }
}
