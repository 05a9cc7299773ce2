/// Puts a track's packets in order, says which are missing, and gives up on those that do not come in time. A value; the time is an input.
package struct JitterBuffer: Sendable {
    package enum Output: Sendable, Equatable {
        case packet(RTPPacket)
        /// So many packets are lost for good.
        case gap(Int)
    }

    /// A packet that has not come, though later ones have.
    private struct Missing {
        let sinceMs: Int64
        var askedMs: Int64?
        var tries = 0
    }

    /// The next packet that goes out; nil before the first.
    private var next: UInt64?
    private var highest: UInt64 = 0
    private var held: [UInt64: RTPPacket] = [:]
    private var missing: [UInt64: Missing] = [:]
    private let waitMs: Int64
    private let most: Int

    /// Packets overtake each other by some milliseconds, which is no loss.
    private static let overtakenMs: Int64 = 10
    private static let askAgainMs: Int64 = 60
    private static let mostTries = 5
    /// Numbers of one question.
    private static let mostAsked = 128

    /// `waitMs`: how long a packet is waited for. `most`: packets that are kept, and the largest step of numbers that is taken for a loss.
    package init(waitMs: Int64, most: Int) {
        self.waitMs = waitMs
        self.most = most
    }

    /// Bytes held.
    package var heldBytes: Int { self.held.values.reduce(0) { $0 + $1.payload.count } }

    /// Takes a packet in. Returns false for one that is too late, or came before.
    package mutating func append(_ packet: RTPPacket, nowMs: Int64) -> Bool {
        guard let next = self.next else {
            self.next = packet.index
            self.highest = packet.index
            self.held[packet.index] = packet
            return true
        }
        self.missing[packet.index] = nil
        guard packet.index >= next, self.held[packet.index] == nil else { return false }
        if packet.index > self.highest {
            // Where more is lost, or what came lies further apart, that is no loss but a new beginning.
            if packet.index - self.highest + UInt64(self.missing.count) <= UInt64(self.most) {
                for index in (self.highest + 1)..<packet.index { self.missing[index] = Missing(sinceMs: nowMs) }
            } else {
                self.missing = [:]
            }
            self.highest = packet.index
        }
        self.held[packet.index] = packet
        return true
    }

    /// The next thing in order; nil while it has to be waited for.
    package mutating func pop(nowMs: Int64) -> Output? {
        guard let next = self.next, !self.held.isEmpty else { return nil }
        if let packet = self.held.removeValue(forKey: next) {
            self.next = next + 1
            return .packet(packet)
        }
        if let missing = self.missing[next], nowMs - missing.sinceMs < self.waitMs, self.held.count < self.most { return nil }
        guard let first = self.held.keys.min() else { return nil }
        if !self.missing.isEmpty { self.missing = self.missing.filter { $0.key > first } }
        self.next = first
        return .gap(Int(clamping: first - next))
    }

    /// The numbers of the packets to ask for now.
    package mutating func ask(nowMs: Int64) -> [UInt16] {
        guard !self.missing.isEmpty else { return [] }
        var asked: [UInt64] = []
        for (index, one) in self.missing {
            let isDue = one.askedMs.map { nowMs - $0 >= Self.askAgainMs } ?? (nowMs - one.sinceMs >= Self.overtakenMs)
            guard isDue, one.tries < Self.mostTries else { continue }
            asked.append(index)
        }
        asked = Array(asked.sorted().prefix(Self.mostAsked))
        for index in asked {
            self.missing[index]?.askedMs = nowMs
            self.missing[index]?.tries += 1
        }
        return asked.map { UInt16(truncatingIfNeeded: $0) }
    }
}
