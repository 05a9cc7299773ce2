import Testing

@testable import WebRTC

@Suite struct ControlPacketTests {
    /// RFC 3550 §6.4.2, RFC 4585 §6.2.1 and §6.3.1, RFC 5104 §4.3.1.1, by hand.
    @Test func compoundPackets() {
        var bytes: [UInt8] = [0x81, 201, 0, 7, 0, 0, 0, 1]
        bytes += [0, 0, 0, 11, 64, 0xFF, 0xFF, 0xFE, 0, 1, 0, 5, 0, 0, 0, 90, 1, 2, 3, 4, 0, 1, 0, 0]
        bytes += [0x81, 205, 0, 3, 0, 0, 0, 1, 0, 0, 0, 11, 0xFF, 0xFF, 0x80, 0x01]
        bytes += [0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 11]
        bytes += [0x84, 206, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 12, 1, 0, 0, 0]
        bytes += [0x81, 203, 0, 1, 0, 0, 0, 1]
        #expect(
            ControlPacket.parse(bytes) == [
                .report(
                    ControlPacket.ReceptionReport(
                        source: 11, fractionLost: 64, lost: -2, highestSequence: 0x1_0005, jitter: 90, lastReport: 0x0102_0304,
                        sinceLastReport: 0x1_0000)),
                .missing(source: 11, [0xFFFF, 0, 15]), .keyframeWanted(source: 11), .keyframeWanted(source: 12), .goodbye,
            ])
    }

    /// draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1, by hand: a run, a vector of bits, one of pairs; small, large and negative differences.
    @Test func arrivals() {
        // The run is of two that came. The bits are for fourteen, of which three are meant: one that came, and two that did not.
        var bytes: [UInt8] = [0x8F, 205, 0, 0, 0, 0, 0, 1, 0, 0, 0, 11, 0xFF, 0xFE, 0, 5, 0, 0, 2, 9] + [0x20, 2, 0xA0, 0] + [0, 4, 8]
        let times: [Int64?] = [128_000, 129_000, 131_000, nil, nil]
        #expect(ControlPacket.parse(Self.padded(bytes)) == [.arrivals(ControlPacket.Arrivals(first: 0xFFFE, timesUs: times))])
        // Of as many as there are bits, the last one came too.
        (bytes[15], bytes[23]) = (16, 1)
        let all = times + Array(repeating: nil, count: 10) + [131_000]
        #expect(ControlPacket.parse(Self.padded(bytes)) == [.arrivals(ControlPacket.Arrivals(first: 0xFFFE, timesUs: all))])

        let pairs: [UInt8] = [0x8F, 205, 0, 0, 0, 0, 0, 1, 0, 0, 0, 11, 0, 7, 0, 3, 0, 0, 1, 0] + [0xD8, 0] + [40, 0xFF, 0xFC]
        #expect(ControlPacket.parse(Self.padded(pairs)) == [.arrivals(ControlPacket.Arrivals(first: 7, timesUs: [74_000, 73_000, nil]))])
    }

    /// Counts and runs that would be endless, or of which the differences are missing.
    @Test func endlessArrivals() {
        let head: [UInt8] = [0x8F, 205, 0, 0, 0, 0, 0, 1, 0, 0, 0, 11, 0, 7]
        #expect(ControlPacket.parse(Self.padded(head + [0xFF, 0xFF, 0, 0, 0, 0, 0x3F, 0xFF])).isEmpty)
        #expect(ControlPacket.parse(Self.padded(head + [0, 9, 0, 0, 0, 0, 0, 0, 0, 0])).isEmpty)
        #expect(ControlPacket.parse(Self.padded(head + [0, 9, 0, 0, 0, 0, 0x20, 9])).isEmpty)
        let none = ControlPacket.parse(Self.padded(head + [4, 0, 0, 0, 0, 0, 0x1F, 0xFF]))
        #expect(none == [.arrivals(ControlPacket.Arrivals(first: 7, timesUs: Array(repeating: nil, count: 1_024)))])
        // One of a thousand and one is no browser's, nor are five in one packet.
        #expect(ControlPacket.parse(Self.padded(head + [4, 1, 0, 0, 0, 0, 0x1F, 0xFF])).isEmpty)
        let one = Self.padded(head + [4, 0, 0, 0, 0, 0, 0x1F, 0xFF])
        #expect(ControlPacket.parse(Array(repeating: one, count: 9).flatMap { $0 }).count == 4)
        for count in 0..<20 { #expect(ControlPacket.parse(Self.padded(Array((head + [0, 1, 0, 0, 0, 0]).prefix(count)))).isEmpty) }
    }

    private static func padded(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        while bytes.count % 4 != 0 || bytes.count < 4 { bytes.append(0) }
        bytes[3] = UInt8(bytes.count / 4 - 1)
        return bytes
    }

    /// No cut and no length traps, and nothing is made up of what is not there.
    @Test func cutPackets() {
        let bytes: [UInt8] = [0x9F, 201, 0, 7] + [UInt8](repeating: 3, count: 28)
        for count in 0...bytes.count { #expect(ControlPacket.parse(Array(bytes.prefix(count))).count <= 1) }
        #expect(ControlPacket.parse([0x81, 205, 0xFF, 0xFF, 0, 0, 0, 1]).isEmpty)
        #expect(ControlPacket.parse([0x81, 205, 0, 0]).isEmpty && ControlPacket.parse([0x81, 206, 0, 1, 0, 0, 0, 1]).isEmpty)
        #expect(ControlPacket.parse([0x84, 206, 0, 0]).isEmpty && ControlPacket.parse([0x41, 201, 0, 0]).isEmpty)
    }

    /// What one packet may ask for is bounded.
    @Test func manyNumbers() {
        var bytes: [UInt8] = [0x81, 205, 0x10, 0x02] + [0, 0, 0, 1, 0, 0, 0, 11]
        for number in 0..<UInt16(0x1000) { bytes += [UInt8(number >> 8), UInt8(number & 255), 0xFF, 0xFF] }
        guard case .missing(_, let numbers)? = ControlPacket.parse(bytes).first else { return #expect(Bool(false)) }
        #expect(numbers.count < 600)
    }

    @Test func senderReports() {
        let report = SenderReport(source: 0x0A0B_0C0D, ntp: 0x0102_0304_0506_0708, rtpTime: 0x1112_1314, packets: 5, octets: 6)
        let bytes = SenderReport.compound([report], name: "me")
        #expect(
            bytes == [
                0x80, 200, 0, 6, 0x0A, 0x0B, 0x0C, 0x0D, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0, 0, 0, 5, 0, 0, 0, 6,
                0x81, 202, 0, 3, 0x0A, 0x0B, 0x0C, 0x0D, 1, 2, 0x6D, 0x65, 0, 0, 0, 0,
            ])
    }
}
