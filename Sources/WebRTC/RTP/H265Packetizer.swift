package import NIOCore

/// H.265 (RFC 7798, without decoding order numbers): single units, aggregates of parameter sets, fragments. A value.
package struct H265Packetizer: VideoPacketizer {
    /// NAL unit types of H.265 Table 7-1 and RFC 7798 §4.4.
    private enum Unit {
        /// Of pictures with which a decoder may begin.
        static let random: ClosedRange<UInt8> = 16...23
        static let videoSet: UInt8 = 32
        static let sequenceSet: UInt8 = 33
        static let pictureSet: UInt8 = 34
        static let aggregate: UInt8 = 48
        static let fragment: UInt8 = 49
    }

    /// The sets of the sequence header.
    package struct Sets: Sendable {
        package var video: [ByteBuffer]
        package var sequence: [ByteBuffer]
        package var picture: [ByteBuffer]

        package init(video: [ByteBuffer], sequence: [ByteBuffer], picture: [ByteBuffer]) {
            self.video = video
            self.sequence = sequence
            self.picture = picture
        }
    }

    private var sets: Sets
    private let number: UInt8

    /// Bytes of a unit's header.
    private static let header = 2

    /// `profile`: general_profile_idc of the sequence header.
    package init(_ sets: Sets, profile: UInt8) {
        self.sets = sets
        self.number = profile
    }

    package var profile: VideoProfile { .h265(self.number) }

    /// As with H.264, delimiters and supplemental information stay behind, and a keyframe has the sets before it.
    package mutating func bundle(_ units: [ByteBuffer], time: Int64, isKeyframe: Bool) -> ByteBuffer? {
        var slices: [ByteBuffer] = []
        var sets = Sets(video: [], sequence: [], picture: [])
        var isKeyframe = isKeyframe
        for unit in units.prefix(Payload.mostUnits) {
            guard let type = Self.type(unit) else { continue }
            switch type {
            case Unit.videoSet: sets.video.append(unit)
            case Unit.sequenceSet: sets.sequence.append(unit)
            case Unit.pictureSet: sets.picture.append(unit)
            case 0..<Unit.videoSet:
                if Unit.random.contains(type) { isKeyframe = true }
                slices.append(unit)
            default: break
            }
        }
        if !sets.video.isEmpty { self.sets.video = sets.video }
        if !sets.sequence.isEmpty { self.sets.sequence = sets.sequence }
        if !sets.picture.isEmpty { self.sets.picture = sets.picture }
        guard !slices.isEmpty else { return nil }
        var writer = PacketBundle.Writer(
            .video, time: time, isKeyframe: isKeyframe, profile: self.profile,
            capacity: Payload.capacity(slices.reduce(0) { $0 + $1.readableBytes }))
        if isKeyframe { self.addSets(to: &writer) }
        for slice in slices { Self.add(slice, to: &writer) }
        return writer.finish()
    }

    /// §4.4.2: the aggregate has the lowest layer and temporal id of its units; parameter sets have layer 0 and temporal id 0.
    private func addSets(to writer: inout PacketBundle.Writer) {
        let sets = self.sets.video + self.sets.sequence + self.sets.picture
        let size = sets.reduce(Self.header) { $0 + 2 + $1.readableBytes }
        guard sets.count > 1, size <= Payload.longest else {
            for set in sets { Self.add(set, to: &writer) }
            return
        }
        writer.addAggregate([Unit.aggregate << 1, 1], of: sets)
    }

    private static func add(_ unit: ByteBuffer, to writer: inout PacketBundle.Writer) {
        guard unit.readableBytes > Payload.longest else { return writer.add(unit) }
        guard let first = unit.getInteger(at: unit.readerIndex, as: UInt8.self),
            let second = unit.getInteger(at: unit.readerIndex + 1, as: UInt8.self)
        else { return }
        writer.addPieces(of: unit.dropped(Self.header), prefixBytes: 3) { isFirst, isLast in
            // §4.4.3: the unit's header with another type, then the fragment's.
            [first & 0x81 | Unit.fragment << 1, second, (isFirst ? 0x80 : 0) | (isLast ? 0x40 : 0) | first >> 1 & 0x3F]
        }
    }

    /// Nil for what is too short to be a unit.
    private static func type(_ unit: ByteBuffer) -> UInt8? {
        guard unit.readableBytes > Self.header, let first = unit.getInteger(at: unit.readerIndex, as: UInt8.self) else { return nil }
        return first >> 1 & 0x3F
    }

    /// Whether later pictures may be made from this one. `layers`: how many temporal layers the stream has. A picture of the highest one whose type says so
    /// is made use of by none (H.265 §7.4.2.2: even types up to 14).
    package static func isReference(_ units: [ByteBuffer], layers: Int) -> Bool {
        for unit in units.prefix(Payload.mostUnits) {
            guard let type = Self.type(unit), type < Unit.videoSet, let second = unit.getInteger(at: unit.readerIndex + 1, as: UInt8.self)
            else { continue }
            return type > 14 || type & 1 == 1 || Int(second & 7) < layers
        }
        return true
    }
}
