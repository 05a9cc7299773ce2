import Support
import Synchronization
import Testing

@testable import Delivery

/// Which ends of connections have a line.
@Suite struct CloseLogTests {
    private final class Told: Sendable {
        let all = Mutex<[String]>([])
    }

    @Test func publishersNeverAndFloodsTogether() {
        let told = Told()
        let closes = CloseLog { reason, count in told.all.withLock { $0.append("\(reason.rawValue) \(count)") } }
        let passed = (0..<53).count { _ in closes.pass(.serverShutdown, nowMs: 1_000) }
        #expect(passed == CloseLog.linesPerSecond)
        for _ in 0..<100 { #expect(closes.pass(.serverShutdown, isPublisher: true, nowMs: 1_000)) }
        #expect(closes.pass(.tooSlow, nowMs: 1_000), "another reason has its own")
        closes.report()
        closes.report()
        #expect(told.all.withLock { $0 } == ["server_shutdown 33"])
        // The next second has lines again, and what it holds back is told as well.
        #expect((0..<21).count { _ in closes.pass(.serverShutdown, nowMs: 2_000) } == 20)
        closes.report()
        #expect(told.all.withLock { $0.last } == "server_shutdown 1")
    }
}
