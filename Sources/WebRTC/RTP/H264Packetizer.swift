package import NIOCore

/// H.264 (RFC 6184, packetization mode 1): single units, aggregates of parameter sets (STAP-A), fragments (FU-A). A value.
package struct H264Packetizer: VideoPacketizer {
    /// NAL unit types of H.264 Table 7-1 and RFC 6184 §5.2.
    private enum Unit {
        static let slice: UInt8 = 1
        static let idr: UInt8 = 5
        static let sequenceSet: UInt8 = 7
        static let pictureSet: UInt8 = 8
        static let aggregate: UInt8 = 24
        static let fragment: UInt8 = 28
    }

    private var sequenceSets: [ByteBuffer]
    private var pictureSets: [ByteBuffer]

    /// The sets of the sequence header, if there is one.
    package init(sequenceSets: [ByteBuffer] = [], pictureSets: [ByteBuffer] = []) {
        self.sequenceSets = sequenceSets
        self.pictureSets = pictureSets
    }

    /// The profile of the sets in force.
    package var profile: VideoProfile {
        guard let set = self.sequenceSets.first, let idc = set.getInteger(at: set.readerIndex + 1, as: UInt8.self),
            let constraints = set.getInteger(at: set.readerIndex + 2, as: UInt8.self)
        else { return .h264(H264Profile(idc: 66, constraints: 0)) }
        return .h264(H264Profile(idc: idc, constraints: constraints))
    }

    /// An IDR picture is a keyframe whatever is said, and a picture may be one that is not IDR. Delimiters and supplemental information stay behind: some
    /// decoders fail over them. A keyframe has the sets before it, those in the picture itself if it has some.
    package mutating func bundle(_ units: [ByteBuffer], time: Int64, isKeyframe: Bool = false) -> ByteBuffer? {
        var slices: [ByteBuffer] = []
        var sets: (sequence: [ByteBuffer], picture: [ByteBuffer]) = ([], [])
        var isKeyframe = isKeyframe
        for unit in units.prefix(Payload.mostUnits) {
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
        var writer = PacketBundle.Writer(
            .video, time: time, isKeyframe: isKeyframe, profile: self.profile,
            capacity: Payload.capacity(slices.reduce(0) { $0 + $1.readableBytes }))
        if isKeyframe { self.addSets(to: &writer) }
        for slice in slices { Self.add(slice, to: &writer) }
        return writer.finish()
    }

    /// One aggregate if it fits a packet, as it nearly always does (§5.7.1); else each by itself.
    private func addSets(to writer: inout PacketBundle.Writer) {
        let sets = self.sequenceSets + self.pictureSets
        let size = sets.reduce(1) { $0 + 2 + $1.readableBytes }
        guard sets.count > 1, size <= Payload.longest else {
            for set in sets { Self.add(set, to: &writer) }
            return
        }
        // The highest importance of the units in it.
        let importance = sets.reduce(UInt8(0)) { max($0, ($1.getInteger(at: $1.readerIndex, as: UInt8.self) ?? 0) & 0x60) }
        writer.addAggregate([importance | Unit.aggregate], of: sets)
    }

    private static func add(_ unit: ByteBuffer, to writer: inout PacketBundle.Writer) {
        guard unit.readableBytes > Payload.longest else { return writer.add(unit) }
        guard let header = unit.getInteger(at: unit.readerIndex, as: UInt8.self) else { return }
        writer.addPieces(of: unit.dropped(1), prefixBytes: 2) { isFirst, isLast in
            // §5.8: indicator, header.
            [header & 0xE0 | Unit.fragment, (isFirst ? 0x80 : 0) | (isLast ? 0x40 : 0) | header & 0x1F]
        }
    }

    /// Reads a picture's slices: one with a slice of type B is shown early. `units` as for ``bundle(_:time:isKeyframe:)``.
    package static func order(of units: [ByteBuffer]) -> PictureOrder {
        for unit in units.prefix(Payload.mostUnits) {
            guard let header = unit.getInteger(at: unit.readerIndex, as: UInt8.self), header & 0x1F == Unit.slice else { continue }
            // §7.3.3: first_mb_in_slice, slice_type; 1 and 6 are B. §7.4.1: nal_ref_idc.
            var bits = SliceBits(unit)
            guard bits.exponentialGolomb() != nil, let type = bits.exponentialGolomb() else { return .plain }
            return type % 5 == 1 ? .early(isReference: header & 0x60 != 0) : .plain
        }
        return .plain
    }
}

extension ByteBuffer {
    /// Without its first bytes.
    func dropped(_ count: Int) -> ByteBuffer {
        var rest = self
        rest.moveReaderIndex(forwardBy: min(count, rest.readableBytes))
        return rest
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
