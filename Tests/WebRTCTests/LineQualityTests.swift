import Testing

@testable import WebRTC

@Suite struct LineQualityTests {
    private static func sent(_ count: Int, eachMs: Int64 = 10, from startMs: Int64 = 1_000_000) -> LineQuality {
        var line = LineQuality()
        for number in 0..<count { line.sentPacket(nowMs: startMs + Int64(number) * eachMs) }
        return line
    }

    /// Reports twenty packets at a time, with this delay on a clock that is an hour off.
    private static func run(_ packets: Int, loses: (Int) -> Bool = { _ in false }, delayMs: (Int) -> Int64) -> LineQuality {
        var line = LineQuality()
        for start in stride(from: 0, to: packets, by: 20) {
            let first = line.nextNumber
            let times: [Int64?] = (start..<(start + 20)).map { number in
                line.sentPacket(nowMs: Int64(number) * 10)
                return loses(number) ? nil : (Int64(number) * 10 + delayMs(number) + 3_600_000) * 1_000
            }
            line.note(ControlPacket.Arrivals(first: first, timesUs: times), nowMs: Int64(start + 20) * 10)
        }
        return line
    }

    @Test func nothingIsKnownAtFirst() {
        #expect(LineQuality().verdict(nowMs: 0) == .unknown && Self.sent(100).verdict(nowMs: 1_000_000) == .unknown)
    }

    @Test func aGoodLine() {
        let line = Self.run(2_000, loses: { $0 % 50 == 0 }, delayMs: { 40 + Int64($0 % 7) })
        #expect(line.verdict(nowMs: 20_000) == .good && abs(line.loss - 0.02) < 0.005 && (line.queuedMs ?? 100) < 7)
    }

    @Test func lossIsOfTheLastSeconds() {
        #expect(Self.run(2_000, loses: { $0 % 10 == 0 }, delayMs: { _ in 40 }).verdict(nowMs: 20_000) == .lossy)
        #expect(Self.run(2_000, loses: { $0 < 1_000 && $0 % 3 == 0 }, delayMs: { _ in 40 }).verdict(nowMs: 20_000) == .good)
    }

    /// What is late is no loss, and what is reported twice counts once.
    @Test func lateIsNotLost() {
        var line = Self.sent(100, from: 0)
        line.note(ControlPacket.Arrivals(first: 1, timesUs: Array(repeating: nil, count: 50)), nowMs: 1_000)
        #expect(line.loss == 1)
        for _ in 0..<2 {
            line.note(ControlPacket.Arrivals(first: 1, timesUs: (0..<100).map { $0 < 90 ? $0 * 10_000 : nil }), nowMs: 1_100)
            #expect(line.loss == 0.1)
        }
        line.note(ControlPacket.Arrivals(first: 1, timesUs: Array(repeating: nil, count: 100)), nowMs: 1_200)
        #expect(line.loss == 0.1)
    }

    /// A queue that fills is seen; the line's own length is none.
    @Test func aQueueIsNoDistance() {
        #expect(Self.run(2_000, delayMs: { _ in 600 }).verdict(nowMs: 20_000) == .good)
        let filling = Self.run(2_000, delayMs: { $0 < 1_000 ? 40 : 40 + min(400, Int64($0 - 1_000)) })
        #expect(filling.verdict(nowMs: 20_000) == .congested && (350...400).contains(filling.queuedMs ?? 0))
        // It is old ten seconds later.
        #expect(filling.verdict(nowMs: 29_999) == .congested && filling.verdict(nowMs: 30_000) == .unknown)
        // Once it is empty again, it is good again; and two minutes on another way are no queue.
        #expect(Self.run(3_000, delayMs: { (500..<1_500).contains($0) ? 400 : 40 }).verdict(nowMs: 30_000) == .good)
        #expect(Self.run(6_000, delayMs: { $0 < 500 ? 40 : 400 }).verdict(nowMs: 60_000) == .congested)
        #expect(Self.run(14_000, delayMs: { $0 < 500 ? 40 : 400 }).verdict(nowMs: 140_000) == .good)
    }

    /// Reports of packets that never went out, or long ago, count for nothing.
    @Test func madeUpNumbers() {
        var line = Self.sent(10)
        line.note(ControlPacket.Arrivals(first: 5_000, timesUs: [0, nil, 7]), nowMs: 1_000_100)
        line.note(ControlPacket.Arrivals(first: 11, timesUs: Array(repeating: nil, count: 1_024)), nowMs: 1_000_100)
        #expect(line.verdict(nowMs: 1_000_100) == .unknown && line.loss == 0 && line.queuedMs == nil)
    }

    /// Numbers begin anew at 2¹⁶, and so does the kept part of the time.
    @Test func roundTheCorner() {
        var times = SentTimes()
        for number in 0..<70_000 { times.append(nowMs: Int64(number) * 3) }
        let newest = times.next &- 1
        #expect(times.time(of: newest, nowMs: 210_000) == 69_999 * 3 && times.time(of: newest &- 1_023, nowMs: 210_000) == 68_976 * 3)
        #expect(times.time(of: newest &- 1_024, nowMs: 210_000) == nil && times.time(of: times.next, nowMs: 210_000) == nil)
    }

    /// Without reports of single packets, the receiver's summary has to do.
    @Test func receiverReports() {
        var line = Self.sent(10)
        let report = ControlPacket.ReceptionReport(
            source: 1, fractionLost: 64, lost: 5, highestSequence: 10, jitter: 900, lastReport: 0, sinceLastReport: 0)
        line.note(report, clockRate: 90_000, roundTripMs: 30, nowMs: 1_000_200)
        #expect(
            line.verdict(nowMs: 1_000_300) == .lossy && line.loss == 0.25 && line.jitterMs == 10 && line.roundTripMs == 30
                && line.queuedMs == nil)
    }
}
