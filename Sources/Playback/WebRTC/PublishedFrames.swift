import Media
import NIOCore
import WebRTC

/// What a publisher by WebRTC sends, as frames of RTMP: pictures of H.264 with lengths instead of start codes and their parameter sets in a header
/// (ISO/IEC 14496-15), Opus as Enhanced RTMP has it. A value.
struct PublishedFrames {
    private var hasSoundHeader = false
    /// The newest parameter sets, and the header that was made of the last ones.
    private var sets: [ByteBuffer] = []
    private var header: ByteBuffer?

    /// FLV 10.1 §E.4.3.1: a keyframe or another picture, of AVC; then the kind of message and no offset.
    private static let keyframe: [UInt8] = [0x17, 1, 0, 0, 0]
    private static let picture: [UInt8] = [0x27, 1, 0, 0, 0]
    private static let pictureHeader: [UInt8] = [0x17, 0, 0, 0, 0]
    /// Enhanced RTMP v2, "Enhanced Audio": the codec's header, and its packets.
    private static let soundHeader: [UInt8] = [0x90] + [UInt8]("Opus".utf8)
    private static let sound: [UInt8] = [0x91] + [UInt8]("Opus".utf8)
    /// RFC 7845 §5.1: version 1, two channels, nothing to skip, 48 kHz, no gain, one stream.
    private static let head: [UInt8] = [UInt8]("OpusHead".utf8) + [1, 2, 0, 0, 0x80, 0xBB, 0, 0, 0, 0, 0]

    /// ITU-T H.264 table 7-1: sets are in the header; delimiters and fillers say nothing that a message does not.
    private static let needless: Set<UInt8> = [7, 8, 9, 10, 11, 12]
    private static let mostSets = 64

    mutating func frames(_ output: MediaReceiver.Output) throws(MediaError) -> [Frame] {
        switch output {
        case .picture(let units, let isKeyframe, let ms):
            var frames: [Frame] = []
            if let header = self.changedHeader(units) {
                var payload = ByteBuffer(bytes: Self.pictureHeader)
                payload.writeImmutableBuffer(header)
                frames.append(try Frame(kind: .video, timestamp: ms, payload: payload))
            }
            let slices = units.filter { !Self.needless.contains(($0.first ?? 0) & 0x1F) }
            guard !slices.isEmpty else { return frames }
            var payload = ByteBuffer()
            payload.reserveCapacity(slices.reduce(8) { $0 + $1.count + 4 })
            payload.writeBytes(isKeyframe ? Self.keyframe : Self.picture)
            for unit in slices {
                payload.writeInteger(UInt32(unit.count))
                payload.writeBytes(unit)
            }
            return frames + [try Frame(kind: .video, timestamp: ms, payload: payload)]
        case .sound(let packet, let ms):
            var frames: [Frame] = []
            if !self.hasSoundHeader {
                self.hasSoundHeader = true
                frames.append(try Frame(kind: .audio, timestamp: ms, payload: ByteBuffer(bytes: Self.soundHeader + Self.head)))
            }
            frames.append(try Frame(kind: .audio, timestamp: ms, payload: ByteBuffer(bytes: Self.sound + packet)))
            return frames
        }
    }

    /// The header of these parameter sets, if they are others than those before. They come with each keyframe, in a picture's first packets.
    private mutating func changedHeader(_ units: [[UInt8]]) -> ByteBuffer? {
        let sets = units.filter { [7, 8].contains(($0.first ?? 0) & 0x1F) }.map { ByteBuffer(bytes: $0) }
        guard !sets.isEmpty, sets.count <= Self.mostSets else { return nil }
        // A picture may have one kind of them alone: the other stays.
        let kinds = Set(sets.map(Self.type))
        self.sets = self.sets.filter { !kinds.contains(Self.type($0)) } + sets
        guard let header = AVCConfiguration.record(of: self.sets), header != self.header else { return nil }
        self.header = header
        return header
    }

    private static func type(_ unit: ByteBuffer) -> UInt8 { (unit.getInteger(at: unit.readerIndex, as: UInt8.self) ?? 0) & 0x1F }
}
