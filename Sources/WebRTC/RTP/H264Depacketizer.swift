/// Puts NAL units together from RTP payloads (RFC 6184 §5.6 to §5.8), of packets in order. A value.
package struct H264Depacketizer: Sendable {
    private var fragment: [UInt8] = []

    /// Longest unit that is put together.
    private static let longest = 4 << 20

    package init() {}

    /// Bytes of a unit that is not complete.
    var heldBytes: Int { self.fragment.count }

    /// The units that are complete with this payload; none for what cannot be read.
    package mutating func append(_ payload: ArraySlice<UInt8>) -> [[UInt8]] {
        guard let first = payload.first else { return [] }
        switch first & 0x1F {
        case 1...23: return [Array(payload)]
        case 24: return Self.aggregated(payload.dropFirst())
        case 28:
            guard payload.count > 2 else { return [] }
            let header = payload[payload.startIndex + 1]
            if header & 0x80 != 0 { self.fragment = [first & 0xE0 | header & 0x1F] }
            guard !self.fragment.isEmpty, self.fragment.count + payload.count <= Self.longest else {
                self.fragment = []
                return []
            }
            self.fragment += payload.dropFirst(2)
            guard header & 0x40 != 0 else { return [] }
            defer { self.fragment = [] }
            return [self.fragment]
        default: return []
        }
    }

    private static func aggregated(_ payload: ArraySlice<UInt8>) -> [[UInt8]] {
        var units: [[UInt8]] = []
        var rest = payload
        while rest.count > 2 {
            let length = Int(rest[rest.startIndex]) << 8 | Int(rest[rest.startIndex + 1])
            guard length > 0, rest.count >= 2 + length else { break }
            units.append(Array(rest.dropFirst(2).prefix(length)))
            rest = rest.dropFirst(2 + length)
        }
        return units
    }
}
