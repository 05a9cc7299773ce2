import Support
import Testing

@testable import RTMPServer
@testable import Streaming

/// The stages of a connection's life, and what is to be done at its end.
@Suite struct ConnectionLifecycleTests {
    private static let flood = ConnectionLifecycle.End(reason: .inboundFlood, detail: "much")

    // #expect takes no mutating call.
    private static func note(_ life: inout ConnectionLifecycle, _ reason: CloseReason, _ detail: String?, isFirst: Bool) {
        let wasFirst = life.note(reason, detail)
        #expect(wasFirst == isFirst)
    }

    private static func ended(_ life: inout ConnectionLifecycle, _ expected: [ConnectionLifecycle.Action]) {
        let actions = life.ended()
        #expect(actions == expected)
    }

    private static func reading(_ gate: inout InputGate, _ expected: Bool?) {
        let change = gate.changeOfReading()
        #expect(change == expected)
    }

    @Test func aPlaceIsGivenBackOnce() {
        var life = ConnectionLifecycle.opening
        life.admitted()
        #expect(!life.isEnding && !life.isGone)
        Self.note(&life, .inboundFlood, "much", isFirst: true)
        #expect(life.isEnding && !life.isGone && life.end == Self.flood)
        life.channelClosed()
        #expect(life.isEnding && life.isGone)
        Self.ended(&life, [.giveBackPlace, .log(Self.flood)])
        Self.ended(&life, [])
        life.channelClosed()
        Self.ended(&life, [])
        #expect(life.isGone)
    }

    @Test func aRefusedOneHasNone() {
        var life = ConnectionLifecycle.opening
        Self.note(&life, .tooManyConnections, nil, isFirst: true)
        life.admitted()
        life.channelClosed()
        Self.ended(&life, [.log(.init(reason: .tooManyConnections, detail: nil))])
    }

    @Test func theFirstReasonStands() {
        var life = ConnectionLifecycle.open
        Self.note(&life, .inboundFlood, "much", isFirst: true)
        Self.note(&life, .connectionLost, "later", isFirst: false)
        life.channelClosed()
        Self.note(&life, .connectionLost, "later", isFirst: false)
        #expect(life.end == Self.flood)
    }

    @Test func whoClosesWithoutReasonIsTheClient() {
        var life = ConnectionLifecycle.open
        life.channelClosed()
        #expect(!life.isEnding)
        Self.ended(&life, [.giveBackPlace, .log(.init(reason: .clientClosed, detail: nil))])
    }

    /// While the peer's last messages are still read, the reason may yet be found.
    @Test func aReasonIsFoundAfterTheChannelClosed() {
        var life = ConnectionLifecycle.open
        life.channelClosed()
        Self.note(&life, .inboundFlood, "much", isFirst: true)
        #expect(life.isGone && life.isEnding)
        Self.ended(&life, [.giveBackPlace, .log(Self.flood)])
        Self.note(&life, .connectionLost, nil, isFirst: false)
    }

    @Test func readingStopsForAFullBufferAndForTheTurnsEnd() {
        var gate = InputGate()
        Self.reading(&gate, nil)
        gate.isDeciding = true
        Self.reading(&gate, nil)
        gate.isFull = true
        Self.reading(&gate, false)
        gate.isYielding = true
        Self.reading(&gate, nil)
        gate.isFull = false
        Self.reading(&gate, nil)
        gate.isYielding = false
        Self.reading(&gate, true)
    }
}
