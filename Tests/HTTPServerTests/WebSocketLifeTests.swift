import Testing

@testable import HTTPServer

/// Pings, silence and the closing handshake, by a clock that the test sets.
@Suite struct WebSocketLifeTests {
    @Test func pingsWhileThePeerAnswers() {
        var life = WebSocketLife(nowMs: 0)
        var pings: [Int64] = []
        for now in stride(from: Int64(0), through: 120_000, by: 100) {
            switch life.due(nowMs: now) {
            case .ping:
                pings.append(now)
                life.received(nowMs: now + 50)
            case .nothing: break
            case .dead, .cut: Issue.record("at \(now)")
            }
        }
        #expect(pings == (1...8).map { $0 * 15_000 })
    }

    /// The actions due at each of these times.
    private func due(_ life: inout WebSocketLife, _ times: Int64...) -> [WebSocketLife.Due] { times.map { life.due(nowMs: $0) } }

    @Test func aSilentPeerIsDead() {
        var life = WebSocketLife(nowMs: 0)
        let silent = self.due(&life, 14_999, 15_000, 15_001, 30_000, 44_999, 45_000)
        #expect(silent == [.nothing, .ping, .nothing, .ping, .nothing, .dead])
        // A peer that reads again has time until the next ping is answered.
        life.extend(nowMs: 45_000)
        let late = self.due(&life, 45_000, 74_999, 75_000)
        #expect(late == [.ping, .ping, .dead])
        life.received(nowMs: 75_000)
        life.extend(nowMs: 76_000)
        let after = self.due(&life, 119_999, 120_000)
        #expect(after == [.ping, .dead], "extending never shortens")
    }

    /// RFC 6455 §7.1: one close frame each, and the server closes first.
    @Test func theClosingHandshake() {
        var ours = WebSocketLife(nowMs: 0)
        #expect(ours.isOpen && ours.isListening)
        let begun = [ours.beginClose(nowMs: 1_000, listens: true), ours.beginClose(nowMs: 1_001, listens: true)]
        #expect(begun == [true, false], "one close frame")
        #expect(!ours.isOpen && ours.isListening)
        let waits = self.due(&ours, 2_999, 3_000)
        #expect(waits == [.nothing, .cut])
        let answers = ours.peerCloses(nowMs: 2_000)
        #expect(!answers, "the answer to ours is not answered")
        let closes = self.due(&ours, 3_999, 4_000)
        #expect(!ours.isListening && closes == [.nothing, .cut])
        var theirs = WebSocketLife(nowMs: 0)
        let answered = [theirs.peerCloses(nowMs: 10), theirs.beginClose(nowMs: 11, listens: true)]
        #expect(answered == [true, false])
    }

    @Test func afterAFaultNothingIsRead() {
        var broken = WebSocketLife(nowMs: 0)
        let begun = broken.beginClose(nowMs: 0, listens: false)
        #expect(begun && !broken.isListening)
        broken.end()
        let answered = broken.peerCloses(nowMs: 0)
        let due = self.due(&broken, 1_000_000)
        #expect(due == [.nothing] && !answered && !broken.isOpen)
    }
}
