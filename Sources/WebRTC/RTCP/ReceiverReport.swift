/// What a receiver says: how tracks arrive, what is missing, that it needs a keyframe, when packets came.
extension ControlPacket {
    /// A receiver report and the name of its source (RFC 3550 §6.4.2, §6.5).
    static func receiverReport(_ blocks: [ReceptionReport], from source: UInt32, name: String) -> [UInt8] {
        var bytes: [UInt8] = [0x80 | UInt8(truncatingIfNeeded: blocks.count), 201]
        bytes.append16(UInt16(truncatingIfNeeded: 1 + 6 * blocks.count))
        bytes.append32(source)
        for block in blocks {
            bytes.append32(block.source)
            bytes.append32(UInt32(block.fractionLost) << 24 | UInt32(bitPattern: block.lost) & 0xFF_FFFF)
            bytes.append32(block.highestSequence)
            bytes.append32(block.jitter)
            bytes.append32(block.lastReport)
            bytes.append32(block.sinceLastReport)
        }
        return bytes + SenderReport.names([source], name)
    }

    /// RFC 4585 §6.2.1. `missing`: sequence numbers in order.
    static func ask(for missing: [UInt16], of media: UInt32, from source: UInt32) -> [UInt8] {
        var entries: [UInt8] = []
        var index = 0
        while index < missing.count {
            let first = missing[index]
            var more: UInt16 = 0
            index += 1
            while index < missing.count, (1...16).contains(missing[index] &- first) {
                more |= 1 << (missing[index] &- first &- 1)
                index += 1
            }
            entries.append16(first)
            entries.append16(more)
        }
        var bytes: [UInt8] = [0x80 | 1, 205]
        bytes.append16(UInt16(truncatingIfNeeded: 2 + entries.count / 4))
        bytes.append32(source)
        bytes.append32(media)
        return bytes + entries
    }

    /// RFC 4585 §6.3.1.
    static func askForKeyframe(of media: UInt32, from source: UInt32) -> [UInt8] {
        var bytes: [UInt8] = [0x80 | 1, 206, 0, 2]
        bytes.append32(source)
        bytes.append32(media)
        return bytes
    }
}

/// How a track arrives, for receiver reports (RFC 3550 §6.4.1, appendix A.3 and A.8). A value.
struct ArrivalStatistics: Sendable {
    private let rate: Int64
    private var source: UInt32 = 0
    private var first: UInt64?
    private(set) var highest: UInt64?
    private var received: UInt64 = 0
    private var reported: (expected: UInt64, received: UInt64) = (0, 0)
    private var jitter = 0.0
    private var transit: Int64?
    private var lastReport: (middle: UInt32, atMs: Int64)?

    /// `rate`: of the track's clock, Hz.
    init(rate: Int64) { self.rate = rate }

    mutating func note(_ packet: RTPPacket, nowMs: Int64) {
        self.source = packet.source
        self.received += 1
        if self.first == nil { self.first = packet.index }
        self.highest = max(self.highest ?? packet.index, packet.index)
        let transit = nowMs * self.rate / 1_000 - Int64(packet.time)
        if let before = self.transit {
            let difference = Int64(Int32(truncatingIfNeeded: transit - before))
            self.jitter += (Double(abs(difference)) - self.jitter) / 16
        }
        self.transit = transit
    }

    mutating func note(_ report: SenderReport, nowMs: Int64) {
        self.lastReport = (UInt32(truncatingIfNeeded: report.ntp >> 16), nowMs)
    }

    mutating func popReport(nowMs: Int64) -> ControlPacket.ReceptionReport? {
        guard let first = self.first, let highest = self.highest else { return nil }
        let expected = highest - first + 1
        let lately = (expected: expected - self.reported.expected, received: self.received - self.reported.received)
        self.reported = (expected, self.received)
        let lost = lately.expected > lately.received ? lately.expected - lately.received : 0
        let since = self.lastReport.map { UInt32(clamping: (nowMs - $0.atMs) * 65_536 / 1_000) } ?? 0
        return ControlPacket.ReceptionReport(
            source: self.source, fractionLost: lately.expected == 0 ? 0 : UInt8(min(255, lost * 256 / lately.expected)),
            lost: Int32(clamping: min(0x7F_FFFF, max(-0x80_0000, Int64(clamping: expected) - Int64(clamping: self.received)))),
            highestSequence: UInt32(truncatingIfNeeded: highest), jitter: UInt32(clamping: Int64(self.jitter)),
            lastReport: self.lastReport?.middle ?? 0, sinceLastReport: since)
    }
}

/// When packets came, by their transport-wide numbers, for a sender that judges its line by that (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1).
/// A value.
struct ArrivalLog: Sendable {
    private var highest: Int64?
    private var times: [Int64: Int64] = [:]
    /// The first number that the next report has.
    private var next: Int64?
    private var reportNumber: UInt8 = 0
    private var reportedMs: Int64 = .min / 2

    private static let intervalMs: Int64 = 50
    /// Packets of one report.
    private static let most: Int64 = 512

    mutating func note(_ number: UInt16, nowMs: Int64) {
        let index = self.highest.map { $0 + Int64(Int16(truncatingIfNeeded: Int64(number) - $0)) } ?? Int64(number)
        self.highest = max(self.highest ?? index, index)
        guard index >= self.next ?? index, self.times[index] == nil else { return }
        if self.next == nil { self.next = index }
        self.times[index] = nowMs
        // A leap of the numbers begins anew.
        if let next = self.next, index - next >= Self.most {
            self.times = [index: nowMs]
            self.next = index
        }
    }

    /// Clear bytes of the report that is due; empty if there is none.
    mutating func popReport(from source: UInt32, of media: UInt32, nowMs: Int64) -> [UInt8] {
        guard nowMs - self.reportedMs >= Self.intervalMs, let first = self.next, let last = self.times.keys.max() else { return [] }
        self.reportedMs = nowMs
        // The reference time has 24 bits of 64 ms.
        let base = (self.times.values.min() ?? nowMs) / 64
        var statuses: [UInt8] = []
        var deltas: [UInt8] = []
        var atMs = base * 64
        for index in first...last {
            guard let cameMs = self.times[index] else {
                statuses.append(0)
                continue
            }
            let delta = (cameMs - atMs) * 4
            atMs = cameMs
            if (0...255).contains(delta) {
                statuses.append(1)
                deltas.append(UInt8(delta))
            } else {
                statuses.append(2)
                deltas.append16(UInt16(bitPattern: Int16(clamping: delta)))
            }
        }
        var body: [UInt8] = []
        body.append32(source)
        body.append32(media)
        body.append16(UInt16(truncatingIfNeeded: first))
        body.append16(UInt16(statuses.count))
        body.append32(UInt32(truncatingIfNeeded: base & 0xFF_FFFF) << 8 | UInt32(self.reportNumber))
        self.reportNumber &+= 1
        // Vectors of seven statuses, two bits each.
        for start in stride(from: 0, to: statuses.count, by: 7) {
            var chunk: UInt16 = 0b11 << 14
            for (place, status) in statuses[start..<min(start + 7, statuses.count)].enumerated() {
                chunk |= UInt16(status) << (12 - 2 * place)
            }
            body.append16(chunk)
        }
        body += deltas
        let padding = (4 - body.count % 4) % 4
        if padding > 0 { body += [UInt8](repeating: 0, count: padding - 1) + [UInt8(padding)] }
        self.times = [:]
        self.next = last + 1
        var bytes: [UInt8] = [0x80 | (padding > 0 ? 0x20 : 0) | 15, 205]
        bytes.append16(UInt16(truncatingIfNeeded: body.count / 4))
        return bytes + body
    }
}
