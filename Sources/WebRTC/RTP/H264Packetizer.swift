package import NIOCore

/// Cuts coded pictures of H.264 into RTP payloads (RFC 6184, packetization mode 1): single units, aggregates of parameter sets (STAP-A), fragments
/// (FU-A). A value.
package struct H264Packetizer {
    /// NAL unit types of H.264 Table 7-1 and RFC 6184 §5.2.
    private enum Unit {
        static let slice: UInt8 = 1
        static let idr: UInt8 = 5
        static let sei: UInt8 = 6
        static let sequenceSet: UInt8 = 7
        static let pictureSet: UInt8 = 8
        static let delimiter: UInt8 = 9
        static let aggregate: UInt8 = 24
        static let fragment: UInt8 = 28
    }

    /// Bytes of a payload: 1,200 of a datagram without RTP's header, a repeat's number and the tag.
    package static let longestPayload = 1_200 - 24 - 2 - 16
    private static let mostUnits = 4_096

    package var sequenceSets: [ByteBuffer]
    package var pictureSets: [ByteBuffer]

    /// The sets of the sequence header.
    package init(sequenceSets: [ByteBuffer], pictureSets: [ByteBuffer]) {
        self.sequenceSets = sequenceSets
        self.pictureSets = pictureSets
    }

    /// The profile of the sets in force.
    package var profile: H264Profile {
        guard let set = self.sequenceSets.first, let idc = set.getInteger(at: set.readerIndex + 1, as: UInt8.self),
            let constraints = set.getInteger(at: set.readerIndex + 2, as: UInt8.self)
        else { return H264Profile(idc: 66, constraints: 0) }
        return H264Profile(idc: idc, constraints: constraints)
    }

    /// Cuts a picture. `units`: NAL units without lengths and start codes. `time`: presentation, in 90,000ths of a second. `isKeyframe`: a decoder may
    /// begin here, though no unit is of an IDR picture. Nil for a picture without slices. Delimiters and supplemental information stay behind: some decoders fail over them. A keyframe has the sets before it, those in the
    /// picture itself if it has some.
    package mutating func bundle(_ units: [ByteBuffer], time: Int64, isKeyframe: Bool = false) -> ByteBuffer? {
        var slices: [ByteBuffer] = []
        var sets: (sequence: [ByteBuffer], picture: [ByteBuffer]) = ([], [])
        var isKeyframe = isKeyframe
        for unit in units.prefix(Self.mostUnits) {
            guard let header = unit.getInteger(at: unit.readerIndex, as: UInt8.self) else { continue }
            switch header & 0x1F {
            case Unit.sequenceSet: sets.sequence.append(unit)
            case Unit.pictureSet: sets.picture.append(unit)
            case Unit.idr:
                isKeyframe = true
                slices.append(unit)
            case 1...4: slices.append(unit)
            default: break
            }
        }
        if !sets.sequence.isEmpty { self.sequenceSets = sets.sequence }
        if !sets.picture.isEmpty { self.pictureSets = sets.picture }
        guard !slices.isEmpty else { return nil }
        let size = slices.reduce(0) { $0 + $1.readableBytes }
        var writer = PacketBundle.Writer(
            .video, time: time, isKeyframe: isKeyframe, profile: self.profile, capacity: size + size / 64 + 512)
        if isKeyframe { self.addSets(to: &writer) }
        for slice in slices { Self.add(slice, to: &writer) }
        return writer.finish()
    }

    /// One aggregate if it fits a packet, as it nearly always does (§5.7.1); else each by itself.
    private func addSets(to writer: inout PacketBundle.Writer) {
        let sets = self.sequenceSets + self.pictureSets
        let size = sets.reduce(1) { $0 + 2 + $1.readableBytes }
        guard sets.count > 1, size <= Self.longestPayload else {
            for set in sets { Self.add(set, to: &writer) }
            return
        }
        var rest = ByteBuffer()
        // The highest importance of the units in it.
        var importance: UInt8 = 0
        for set in sets {
            importance = max(importance, (set.getInteger(at: set.readerIndex, as: UInt8.self) ?? 0) & 0x60)
            rest.writeInteger(UInt16(truncatingIfNeeded: set.readableBytes))
            rest.writeImmutableBuffer(set)
        }
        writer.add([importance | Unit.aggregate], rest)
    }

    /// Fragments of the same size, but for the last: then the kernel can cut them from one piece.
    private static func add(_ unit: ByteBuffer, to writer: inout PacketBundle.Writer) {
        guard unit.readableBytes > Self.longestPayload else { return writer.add([], unit) }
        guard let header = unit.getInteger(at: unit.readerIndex, as: UInt8.self) else { return }
        let body = unit.readableBytes - 1
        let room = Self.longestPayload - 2
        let pieces = (body + room - 1) / room
        let size = (body + pieces - 1) / pieces
        var offset = 0
        while offset < body {
            let count = min(size, body - offset)
            guard let piece = unit.getSlice(at: unit.readerIndex + 1 + offset, length: count) else { return }
            let start: UInt8 = offset == 0 ? 0x80 : 0
            offset += count
            let end: UInt8 = offset == body ? 0x40 : 0
            // §5.8: indicator, header.
            writer.add([header & 0xE0 | Unit.fragment, start | end | header & 0x1F], piece)
        }
    }

    /// How a coded picture stands to the order in which pictures are decoded.
    package enum Order: Sendable, Equatable {
        /// It is shown when it is decoded.
        case plain
        /// It has a slice of type B, which is shown before one that was decoded earlier. `isReference`: later pictures are made from it.
        case early(isReference: Bool)
    }

    /// Reads a picture's slices. `units` as for ``bundle(_:time:)``.
    package static func order(of units: [ByteBuffer]) -> Order {
        for unit in units.prefix(Self.mostUnits) {
            guard let header = unit.getInteger(at: unit.readerIndex, as: UInt8.self), header & 0x1F == Unit.slice else { continue }
            // §7.3.3: first_mb_in_slice, slice_type; 1 and 6 are B. §7.4.1: nal_ref_idc.
            var bits = SliceBits(unit)
            guard bits.exponentialGolomb() != nil, let type = bits.exponentialGolomb() else { return .plain }
            return type % 5 == 1 ? .early(isReference: header & 0x60 != 0) : .plain
        }
        return .plain
    }
}

/// The first bits of a slice, without the bytes that prevent start codes.
private struct SliceBits {
    private var bits: UInt64 = 0
    private var left = 0

    init(_ unit: ByteBuffer) {
        var zeros = 0
        for byte in unit.readableBytesView.dropFirst().prefix(12) where self.left < 64 {
            if zeros >= 2, byte == 3 {
                zeros = 0
                continue
            }
            zeros = byte == 0 ? zeros + 1 : 0
            self.bits |= UInt64(byte) << UInt64(56 - self.left)
            self.left += 8
        }
    }

    /// H.264 §9.1; nil if it is longer than any slice has it.
    mutating func exponentialGolomb() -> UInt32? {
        let zeros = self.bits.leadingZeroBitCount
        guard zeros <= 20, 2 * zeros + 1 <= self.left else { return nil }
        let value = UInt32(truncatingIfNeeded: (self.bits >> UInt64(63 - 2 * zeros)) - 1)
        self.bits <<= UInt64(2 * zeros + 1)
        self.left -= 2 * zeros + 1
        return value
    }
}
