package import NIOCore

/// One track of a media message: its id, its codec and the position of its body.
///
/// A plain value. In a message that is not Multitrack the whole body is track 0.
package struct MediaTrack: Sendable, Hashable {
    package var id: UInt8
    /// nil for legacy tags.
    package var fourCC: FourCC?
    /// The track's body, in bytes from the payload's first readable byte. In enhanced messages it is as on the wire: CodedFrames of AVC,
    /// HEVC and VVC start with a composition time of 3 bytes. In legacy ones it starts after the whole header.
    package var body: Range<Int>
}

/// Walks the tracks of one audio or video message without allocating.
///
///     OneTrack              | FourCC | track id UI8 | body … to the end
///     ManyTracks            | FourCC | ( track id UI8 | size UI24 | body )…
///     ManyTracksManyCodecs  | ( FourCC | track id UI8 | size UI24 | body )…
///
/// Source: Enhanced RTMP v2, "ExAudioTagBody" and "ExVideoTagBody" tables.
package struct TrackIterator: Sendable {
    /// Maximum tracks in one message; the specification allows 256.
    package static let maxTracks = 64

    private var bytes: ByteBuffer
    private let total: Int
    private let multitrackType: UInt8?
    private let fourCC: FourCC?
    private var count = 0
    private var isDone = false

    /// Reads the message's header. Empty messages, commands, script data and opaque messages have no tracks.
    package init(_ kind: Frame.Kind, _ payload: ByteBuffer) throws(MediaError) {
        guard let first = payload.getInteger(at: payload.readerIndex, as: UInt8.self), kind != .data else {
            self.init(nothingIn: payload)
            return
        }
        let header: EnhancedHeader
        if kind == .video, first & 0x80 != 0 {
            header = try EnhancedHeader(payload, media: .video(isCommandFrame: first >> 4 & 0x07 == 5))
        } else if kind == .audio, first >> 4 == TagInfo.exHeaderSoundFormat {
            header = try EnhancedHeader(payload, media: .audio)
        } else {
            let tag = try TagInfo.parse(kind, payload)
            self.init(nothingIn: payload)
            guard !tag.flags.contains(.command) else { return }
            self.bytes.moveReaderIndex(forwardBy: min(Int(tag.bodyOffset), payload.readableBytes))
            self.isDone = false
            return
        }
        self.init(header, payload)
    }

    init(_ header: EnhancedHeader, _ payload: ByteBuffer) {
        self.bytes = payload
        self.total = payload.readableBytes
        self.multitrackType = header.multitrackType
        self.fourCC = header.fourCC
        self.bytes.moveReaderIndex(forwardBy: min(header.offset, payload.readableBytes))
        self.isDone = header.isCommand || header.isOpaque
    }

    private init(nothingIn payload: ByteBuffer) {
        self.bytes = payload
        self.total = payload.readableBytes
        self.multitrackType = nil
        self.fourCC = nil
        self.isDone = true
    }

    /// Returns the next track, or nil after the last. Throws if a track's header is cut short, its size runs past the message, a Multitrack
    /// message has no track at all, or more than `maxTracks`.
    package mutating func next() throws(MediaError) -> MediaTrack? {
        guard !self.isDone, self.count == 0 || self.bytes.readableBytes > 0 else { return nil }
        let size: Int
        var track = MediaTrack(id: 0, fourCC: self.fourCC, body: 0..<0)
        switch self.multitrackType {
        case nil:
            size = self.bytes.readableBytes
            self.isDone = true
        case MultitrackType.oneTrack?:
            track.id = try self.bytes.readField(UInt8.self, "track id")
            size = self.bytes.readableBytes
            self.isDone = true
        case MultitrackType.manyTracks?, MultitrackType.manyTracksManyCodecs?:
            guard self.count < Self.maxTracks else {
                throw .overLimit(field: "tracks", found: self.count &+ 1, max: Self.maxTracks)
            }
            if self.multitrackType == MultitrackType.manyTracksManyCodecs { track.fourCC = try self.bytes.readFourCC() }
            track.id = try self.bytes.readField(UInt8.self, "track id")
            size = Int(try self.bytes.readUInt24("size of track"))
        default:
            return nil  // isOpaque
        }
        guard size <= self.bytes.readableBytes else {
            throw .truncated(field: "body of track \(track.id)", needed: size, available: self.bytes.readableBytes)
        }
        let start = self.total &- self.bytes.readableBytes
        track.body = start..<(start &+ size)
        self.bytes.moveReaderIndex(forwardBy: size)
        self.count &+= 1
        return track
    }
}

extension ByteBuffer {
    /// Returns the codec data of a message's first track, which starts at `offset`; nil if there is none.
    func body(of kind: Frame.Kind, from offset: UInt32) throws(MediaError) -> ByteBuffer? {
        var tracks = try TrackIterator(kind, self)
        guard let track = try tracks.next(), track.body.upperBound >= Int(offset) else { return nil }
        return self.getSlice(at: self.readerIndex &+ Int(offset), length: track.body.upperBound &- Int(offset))
    }
}
