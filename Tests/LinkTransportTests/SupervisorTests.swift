import Testing

@testable import LinkTransport

/// The times at which a link is tried again.
@Suite struct SupervisorTests {
    private static let lost = LinkError.closed(while: "here")

    @Test func waitsGrowAndEnd() {
        var policy = ReconnectPolicy()
        policy.firstMs = 1_000
        policy.maxMs = 60_000
        #expect(
            (1...9).map { policy.delayMs(failures: $0, random: 0) } == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000])
        #expect(policy.delayMs(failures: 1, random: 0.999_999) == 750)
        #expect(policy.delayMs(failures: 1_000_000, random: 0.5) == 52_500)
        policy.firstMs = 0
        #expect(policy.delayMs(failures: 50, random: 0) == 0)
        policy.firstMs = -5
        policy.maxMs = -7
        policy.factor = -1
        policy.jitter = 9
        #expect(policy.delayMs(failures: 3, random: 0.5) == 0)
    }

    @Test func stableRunBeginsAnew() {
        var policy = ReconnectPolicy()
        policy.stableMs = 30_000
        var machine = SupervisorMachine(policy)
        #expect(machine.ended(Self.lost, nowMs: 0, random: 0) == .wait(1_000))
        machine.running(nowMs: 1_000)
        #expect(machine.ended(Self.lost, nowMs: 30_999, random: 0) == .wait(2_000))
        machine.connecting()
        machine.running(nowMs: 40_000)
        #expect(machine.ended(Self.lost, nowMs: 70_000, random: 0) == .wait(1_000))
        machine.connecting()
        // An attempt that never ran is not stable, however long it took.
        #expect(machine.ended(Self.lost, nowMs: 700_000, random: 0) == .wait(2_000))
    }

    @Test func triesAreCounted() {
        var policy = ReconnectPolicy()
        policy.maxAttempts = 2
        var machine = SupervisorMachine(policy)
        #expect(machine.ended(Self.lost, nowMs: 0, random: 0) == .wait(1_000))
        #expect(machine.ended(Self.lost, nowMs: 0, random: 0) == .fail(permanent: false))
    }

    @Test func whatCannotHelpIsNotTriedAgain() {
        var machine = SupervisorMachine(ReconnectPolicy())
        #expect(machine.ended(.redirected(to: "x"), nowMs: 0, random: 0) == .fail(permanent: true))
        #expect(machine.ended(.cancelled, nowMs: 0, random: 0) == .stop)
    }
}
