/// A decrypted RTP packet (RFC 3550 §5.1). A value.
package struct RTPPacket: Sendable, Equatable {
    package let payloadType: UInt8
    package let isMarked: Bool
    /// 2¹⁶ × roll-overs + sequence number.
    package let index: UInt64
    /// In units of the track's clock.
    package let time: UInt32
    package let source: UInt32
    package let payload: ArraySlice<UInt8>

    private static let fixedBytes = 12

    package init(payloadType: UInt8, isMarked: Bool, index: UInt64, time: UInt32, source: UInt32, payload: ArraySlice<UInt8>) {
        self.payloadType = payloadType
        self.isMarked = isMarked
        self.index = index
        self.time = time
        self.source = source
        self.payload = payload
    }

    /// `header`: of ``headerBytes(_:)``. Nil for a packet whose padding is longer than it.
    init?(_ packet: [UInt8], header: Int, index: UInt64) {
        guard header >= Self.fixedBytes, packet.count >= header else { return nil }
        var end = packet.count
        if packet[0] & 0x20 != 0 {
            guard let padding = packet.last, padding > 0, header + Int(padding) <= end else { return nil }
            end -= Int(padding)
        }
        self.init(
            payloadType: packet[1] & 0x7F, isMarked: packet[1] & 0x80 != 0, index: index, time: Self.integer32(packet, 4),
            source: Self.integer32(packet, 8), payload: packet[header..<end])
    }

    /// Bytes of a packet's header with sources and extension, which stay clear; nil for what is no RTP packet.
    static func headerBytes(_ packet: UnsafeRawBufferPointer) -> Int? {
        guard packet.count >= Self.fixedBytes, packet[0] >> 6 == 2 else { return nil }
        var count = Self.fixedBytes + 4 * Int(packet[0] & 0x0F)
        if packet[0] & 0x10 != 0 {
            guard packet.count >= count + 4 else { return nil }
            count += 4 + 4 * Int(packet.loadUnaligned(fromByteOffset: count + 2, as: UInt16.self).bigEndian)
        }
        return packet.count >= count ? count : nil
    }

    /// The value of the header extension with this number, if it is one of one-byte headers (RFC 8285 §4.2) and has two bytes.
    static func number(_ id: UInt8, in packet: UnsafeRawBufferPointer) -> UInt16? {
        let start = Self.fixedBytes + 4 * Int(packet[0] & 0x0F)
        guard packet[0] & 0x10 != 0, packet.count >= start + 4,
            packet.loadUnaligned(fromByteOffset: start, as: UInt16.self).bigEndian == 0xBEDE
        else { return nil }
        let end = min(packet.count, start + 4 + 4 * Int(packet.loadUnaligned(fromByteOffset: start + 2, as: UInt16.self).bigEndian))
        var at = start + 4
        while at < end {
            let head = packet[at]
            if head == 0 {
                at += 1
                continue
            }
            // 15 ends the list.
            guard head >> 4 != 15 else { return nil }
            let length = Int(head & 0x0F) + 1
            guard at + 1 + length <= end else { return nil }
            if head >> 4 == id, length == 2 { return packet.loadUnaligned(fromByteOffset: at + 1, as: UInt16.self).bigEndian }
            at += 1 + length
        }
        return nil
    }

    private static func integer32(_ bytes: [UInt8], _ at: Int) -> UInt32 {
        bytes[at..<(at + 4)].reduce(0) { $0 << 8 | UInt32($1) }
    }
}
