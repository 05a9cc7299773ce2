internal import NIOCore

/// The part of an Enhanced RTMP header that audio and video share: ModEx packets, the Multitrack byte, the FourCC.
///
///     video  | 1 | frame type UB[3] | packet type UB[4] |      audio  | 9 UB[4] | packet type UB[4] |
///     ModEx  | size-1 UI8 [, 255: size-1 UI16] | data | ModEx type UB[4] | next packet type UB[4] |     any number of times
///     Multi  | AvMultitrackType UB[4] | packet type UB[4] |                                              when Multitrack
///     FourCC | UI32 |                                                                                   unless per track
///
/// Source: Enhanced RTMP v2, "ExAudioTagHeader" and "ExVideoTagHeader" tables.
struct EnhancedHeader {
    /// The packet types in which audio and video differ.
    enum Media {
        case audio
        case video(isCommandFrame: Bool)

        /// `AudioPacketType.Multitrack` is 5, `VideoPacketType.Multitrack` is 6.
        var multitrackPacketType: UInt8 {
            switch self {
            case .audio: 5
            case .video: 6
            }
        }

        /// Whether this version of the specification gives the packet type a body. Multitrack and ModEx are headers.
        func hasBody(_ packetType: UInt8) -> Bool {
            switch self {
            case .audio: packetType <= AudioPacketType.sequenceEnd || packetType == AudioPacketType.multichannelConfig
            case .video: packetType <= VideoPacketType.mpeg2TSSequenceStart
            }
        }
    }

    /// Maximum ModEx packets in one message; the specification defines one kind and gives no bound.
    static let maxModEx = 16
    static let modExPacketType: UInt8 = 7

    /// The packet type of the body, after ModEx and Multitrack.
    var packetType: UInt8
    /// Raw AvMultitrackType; nil when the message is not Multitrack.
    var multitrackType: UInt8?
    /// nil if each track has its own, and in commands and opaque messages.
    var fourCC: FourCC?
    var timestampOffsetNanos: UInt32 = 0
    var isCommand = false
    /// Whether the packet or multitrack type is unknown. Nothing after it can be read, and it is relayed unchanged.
    var isOpaque = false
    /// Offset of the body, or of the first track's header. In bytes from the payload's first readable byte.
    var offset: Int = 0

    /// Reads the header of `payload`, which must be enhanced and not empty.
    init(_ payload: ByteBuffer, media: Media) throws(MediaError) {
        var bytes = payload
        self.packetType = try bytes.readField(UInt8.self, "enhanced tag header") & 0x0F
        try self.readModEx(from: &bytes)
        switch media {
        // "if videoPacketType != Metadata && videoFrameType == Command: videoCommand = UI8 … no payload"
        case .video(isCommandFrame: true) where self.packetType != VideoPacketType.metadata:
            _ = try bytes.readField(UInt8.self, "video command")
            self.isCommand = true
        default:
            try self.readCodec(from: &bytes, media: media)
        }
        self.offset = payload.readableBytes &- bytes.readableBytes
    }

    private mutating func readModEx(from bytes: inout ByteBuffer) throws(MediaError) {
        var count = 0
        while self.packetType == Self.modExPacketType {
            count &+= 1
            guard count <= Self.maxModEx else { throw .overLimit(field: "ModEx packets", found: count, max: Self.maxModEx) }
            var size = Int(try bytes.readField(UInt8.self, "ModEx size")) &+ 1
            if size == 256 { size = Int(try bytes.readField(UInt16.self, "ModEx size (16 bits)")) &+ 1 }
            guard bytes.readableBytes > size else {
                throw .truncated(field: "ModEx data and next packet type", needed: size &+ 1, available: bytes.readableBytes)
            }
            // "modExData MUST be at least 3 bytes, storing values up to 999,999 ns."
            let value = size >= 3 ? bytes.uint24(at: bytes.readerIndex) : nil
            bytes.moveReaderIndex(forwardBy: size)
            let types = try bytes.readField(UInt8.self, "ModEx type")
            self.packetType = types & 0x0F
            if types >> 4 == 0 {
                guard let value else { throw .truncated(field: "TimestampOffsetNano", needed: 3, available: size) }
                guard value <= 999_999 else {
                    throw .invalid(field: "TimestampOffsetNano", found: Int(value), expected: "0…999999")
                }
                self.timestampOffsetNanos = value
            }
        }
    }

    private mutating func readCodec(from bytes: inout ByteBuffer, media: Media) throws(MediaError) {
        if self.packetType == media.multitrackPacketType {
            let types = try bytes.readField(UInt8.self, "multitrack type")
            self.multitrackType = types >> 4
            self.packetType = types & 0x0F
            // "This fetch MUST not result in a VideoPacketType.Multitrack"
            guard self.packetType != media.multitrackPacketType else {
                throw .invalid(field: "packet type inside Multitrack", found: Int(self.packetType), expected: "anything but Multitrack")
            }
            guard types >> 4 <= MultitrackType.manyTracksManyCodecs else {
                self.isOpaque = true
                return
            }
        }
        guard media.hasBody(self.packetType) else {
            self.isOpaque = true
            return
        }
        if self.multitrackType != MultitrackType.manyTracksManyCodecs { self.fourCC = try bytes.readFourCC() }
    }
}

/// `AvMultitrackType` of Enhanced RTMP v2.
enum MultitrackType {
    static let oneTrack: UInt8 = 0
    static let manyTracks: UInt8 = 1
    static let manyTracksManyCodecs: UInt8 = 2
}

extension ByteBuffer {
    /// Reads a big-endian integer; throws with the field's name if it is cut short.
    @inline(__always)
    mutating func readField<T: FixedWidthInteger>(_: T.Type, _ field: String) throws(MediaError) -> T {
        guard let value = self.readInteger(as: T.self) else {
            throw .truncated(field: field, needed: T.bitWidth / 8, available: self.readableBytes)
        }
        return value
    }

    mutating func readFourCC() throws(MediaError) -> FourCC {
        FourCC(rawValue: try self.readField(UInt32.self, "FourCC"))
    }

    /// Returns the big-endian UI24 at a readable index, without moving the reader.
    func uint24(at index: Int) -> UInt32? {
        // One read where a byte follows, as it almost always does.
        if let word = self.getInteger(at: index, as: UInt32.self) { return word >> 8 }
        guard let high = self.getInteger(at: index, as: UInt8.self), let low = self.getInteger(at: index &+ 1, as: UInt16.self) else {
            return nil
        }
        return UInt32(high) << 16 | UInt32(low)
    }

    mutating func readUInt24(_ field: String) throws(MediaError) -> UInt32 {
        guard let value = self.uint24(at: self.readerIndex) else {
            throw .truncated(field: field, needed: 3, available: self.readableBytes)
        }
        self.moveReaderIndex(forwardBy: 3)
        return value
    }

    /// Reads a big-endian SI24: FLV's composition time, in milliseconds.
    mutating func readInt24(_ field: String) throws(MediaError) -> Int32 {
        Int32(bitPattern: try self.readUInt24(field) << 8) >> 8
    }
}
