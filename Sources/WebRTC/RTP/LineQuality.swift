/// How a viewer's line does, by what its reports say: loss, round trips, and how long packets stand in queues on the way (RFC 3550 §6.4.1,
/// draft-holmer-rmcat-transport-wide-cc-extensions-01). A value; the time is an input.
///
/// A line's own length is the least delay of the last minute or two: what stands longer than that counts as length.
package struct LineQuality: Sendable, Equatable {
    package enum Verdict: String, Sendable, CaseIterable {
        /// Nothing was reported yet.
        case unknown
        case good
        /// More is lost than repeats make good for long.
        case lossy
        /// Packets pile up before the narrowest place on the way: the stream has more bits than the line takes.
        case congested
    }

    /// The share of packets that is lost, 0 to 1.
    package private(set) var loss = 0.0
    package private(set) var jitterMs = 0.0
    package private(set) var roundTripMs: Double?
    /// How long packets stand on the way; nil where the client does not say when they come.
    package private(set) var queuedMs: Double?

    /// When the newest report came, and the newest that says when packets came.
    private var notedMs: Int64?
    private var arrivalsMs: Int64 = .min / 2
    private var recent = Share()
    private var before = Share()
    private var leastRecent = Double.infinity
    private var leastBefore = Double.infinity
    private var leastSinceMs: Int64 = .min / 2
    private var sent = SentTimes()

    private struct Share: Equatable {
        var packets = 0
        var lost = 0
        var sinceMs: Int64 = .min / 2
    }

    private static let lossyShare = 0.05
    private static let congestedMs = 150.0
    private static let overwhelmedMs = 400.0
    private static let overwhelmedShare = 0.2
    /// Long enough for a voice's fifty packets a second to say something.
    private static let shareMs: Int64 = 5_000
    private static let leastMs: Int64 = 60_000
    /// A report is of no use for longer.
    private static let oldMs: Int64 = 10_000
    /// The part of a new value in the average.
    private static let weight = 1.0 / 16

    package init() {}

    package func verdict(nowMs: Int64) -> Verdict {
        guard let notedMs = self.notedMs, nowMs - notedMs < Self.oldMs else { return .unknown }
        if let queuedMs = self.queuedMs, queuedMs > Self.congestedMs { return .congested }
        return self.loss > Self.lossyShare ? .lossy : .good
    }

    /// Whether the line takes so little that a viewer is better off with less: queues of seconds, or losses that repeats only add to. Nil: nothing is
    /// reported.
    package func isOverwhelmed(nowMs: Int64) -> Bool? {
        guard let notedMs = self.notedMs, nowMs - notedMs < Self.oldMs else { return nil }
        return self.queuedMs ?? 0 > Self.overwhelmedMs || self.loss > Self.overwhelmedShare
    }

    /// Forgets how the line did with what it was given so far; it is given another amount now.
    package mutating func beginAnew() {
        (self.recent, self.before, self.loss, self.queuedMs, self.notedMs) = (Share(), Share(), 0, nil, nil)
    }

    /// The number of the next packet, of all tracks together.
    package var nextNumber: UInt16 { self.sent.next }

    /// A packet goes out with ``nextNumber``.
    package mutating func sentPacket(nowMs: Int64) { self.sent.append(nowMs: nowMs) }

    /// A packet goes out once more under its number, since the client lacks it. Whether it comes then says nothing of its first way.
    mutating func repeatedPacket(_ number: UInt16) {
        guard self.sent.note(number, hasCome: true) == .unreported else { return }
        self.recent.packets += 1
        self.recent.lost += 1
    }

    /// A receiver report. `clockRate`: of its track, Hz. `roundTripMs`: nil if it does not tell.
    mutating func note(_ report: ControlPacket.ReceptionReport, clockRate: Double, roundTripMs: Double?, nowMs: Int64) {
        self.notedMs = nowMs
        self.jitterMs = Double(report.jitter) * 1_000 / clockRate
        if let roundTripMs { self.roundTripMs = roundTripMs }
        // Where each packet is accounted for, that says more.
        guard nowMs - self.arrivalsMs >= Self.oldMs else { return }
        self.queuedMs = nil
        self.loss = Double(report.fractionLost) / 256
    }

    /// When packets came.
    mutating func note(_ arrivals: ControlPacket.Arrivals, nowMs: Int64) {
        self.turn(nowMs: nowMs)
        for (offset, arrivedUs) in arrivals.timesUs.enumerated() {
            let number = arrivals.first &+ UInt16(truncatingIfNeeded: offset)
            guard let sentMs = self.sent.time(of: number, nowMs: nowMs) else { continue }
            // A packet that is late is reported twice: as one that is missing, then as one that came.
            switch (self.sent.note(number, hasCome: arrivedUs != nil), arrivedUs) {
            case (.unreported, _): self.recent.packets += 1
            case (.missing, .some):
                if self.recent.lost > 0 { self.recent.lost -= 1 } else { self.before.lost = max(0, self.before.lost - 1) }
            case (.missing, nil), (.arrived, _): continue
            }
            guard let arrivedUs else {
                self.recent.lost += 1
                continue
            }
            // On two clocks: only differences of such values mean something.
            let delayMs = Double(arrivedUs) / 1_000 - Double(sentMs)
            self.leastRecent = min(self.leastRecent, delayMs)
            let queued = delayMs - min(self.leastRecent, self.leastBefore)
            self.queuedMs = self.queuedMs.map { $0 + (queued - $0) * Self.weight } ?? queued
            (self.notedMs, self.arrivalsMs) = (nowMs, nowMs)
        }
        let packets = self.recent.packets + self.before.packets
        if packets > 0 { self.loss = Double(self.recent.lost + self.before.lost) / Double(packets) }
    }

    private mutating func turn(nowMs: Int64) {
        if nowMs - self.recent.sinceMs >= Self.shareMs {
            self.before = nowMs - self.recent.sinceMs < 2 * Self.shareMs ? self.recent : Share()
            self.recent = Share(sinceMs: nowMs)
        }
        if nowMs - self.leastSinceMs >= Self.leastMs {
            self.leastBefore = self.leastRecent
            self.leastRecent = .infinity
            self.leastSinceMs = nowMs
        }
    }
}

/// When the newest packets went out, by their transport-wide number, and what has been said of them. A value.
struct SentTimes: Sendable, Equatable {
    enum State: UInt8, Sendable {
        case unreported, missing, arrived
    }

    private(set) var next: UInt16 = 1
    /// Milliseconds, of which 16 bits are kept: a minute.
    private var times: [UInt16] = []
    private var states: [State] = []
    private var count = 0

    /// More than a client leaves unreported, except of a joiner's burst.
    private static let kept = 1_024

    mutating func append(nowMs: Int64) {
        if self.times.isEmpty {
            self.times = Array(repeating: 0, count: Self.kept)
            self.states = Array(repeating: .unreported, count: Self.kept)
        }
        let place = Int(self.next) % Self.kept
        self.times[place] = UInt16(truncatingIfNeeded: nowMs)
        self.states[place] = .unreported
        self.next &+= 1
        self.count = min(Self.kept, self.count + 1)
    }

    /// Nil for a number that was not sent lately.
    func time(of number: UInt16, nowMs: Int64) -> Int64? {
        guard self.isKept(number) else { return nil }
        let ageMs = UInt16(truncatingIfNeeded: nowMs) &- self.times[Int(number) % Self.kept]
        return nowMs - Int64(ageMs)
    }

    /// Notes what is said of a packet that is kept. Returns what was said before.
    mutating func note(_ number: UInt16, hasCome: Bool) -> State {
        guard self.isKept(number) else { return .arrived }
        let place = Int(number) % Self.kept
        let before = self.states[place]
        if before != .arrived { self.states[place] = hasCome ? .arrived : .missing }
        return before
    }

    private func isKept(_ number: UInt16) -> Bool { Int(self.next &- 1 &- number) < self.count }
}
