import ServerTestSupport
import Support
import Synchronization
import Testing

@testable import Streaming

/// Which ends of connections have a line.
@Suite struct CloseLogTests {
    private final class Told: Sendable {
        let all = Mutex<[String]>([])
    }

    @Test func publishersNeverAndFloodsTogether() {
        let told = Told()
        let closes = CloseLog { reason, host, count in
            told.all.withLock { $0.append("\(reason.rawValue) \(host.map { "\($0) " } ?? "")\(count)") }
        }
        let passed = (0..<53).count { _ in closes.pass(.serverShutdown, from: "a", nowMs: 1_000) }
        #expect(passed == CountedLines<CloseReason>.mostLines)
        for _ in 0..<100 { #expect(closes.pass(.serverShutdown, isPublisher: true, from: "a", nowMs: 1_000)) }
        #expect(closes.pass(.tooSlow, from: "a", nowMs: 1_000), "another reason has its own")
        closes.report(nowMs: 2_000)
        closes.report(nowMs: 2_000)
        #expect(told.all.withLock { $0 } == ["server_shutdown 33"])
        // The next second has lines again, and its suppressed ones are reported, too.
        #expect((0..<21).count { _ in closes.pass(.serverShutdown, from: "a", nowMs: 2_000) } == 20)
        closes.report(nowMs: 3_000)
        #expect(told.all.withLock { $0.last } == "server_shutdown 1")
    }

    /// A guesser has twenty lines and a sum; another client's single refusal beside it has its own.
    @Test func refusalsByAddress() {
        let told = Told()
        let closes = CloseLog { reason, host, count in
            told.all.withLock { $0.append("\(reason.rawValue) \(host.map { "\($0)" } ?? "many") \(count)") }
        }
        #expect((0..<100).count { _ in closes.pass(.credentialWrong, from: "192.0.2.1", nowMs: 1_000) } == 20)
        #expect(closes.pass(.forbidden, from: "192.0.2.2", nowMs: 1_000))
        closes.report(nowMs: 10_999)
        #expect(told.all.withLock { $0 }.isEmpty, "its ten seconds are not over")
        closes.report(nowMs: 11_000)
        closes.report(nowMs: 11_000)
        #expect(told.all.withLock { $0 } == ["credential_wrong 192.0.2.1 80"])
        #expect(closes.pass(.credentialWrong, from: "192.0.2.1", nowMs: 11_000))
        // Many addresses at once: twenty lines, and one sum at the server's end.
        #expect((0..<5_000).count { closes.pass(.noRoom, from: "host\($0)", nowMs: 20_000) } == 20)
        closes.report(nowMs: nil)
        #expect(told.all.withLock { $0.dropFirst() } == ["no_room many 4980"])
    }
}
