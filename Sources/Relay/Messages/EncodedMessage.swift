package import Media
package import NIOCore

/// Encodes frames for viewers. The relay calls it once per frame, whatever the number of viewers.
package protocol FrameEncoder: Sendable {
    /// Bytes that `encode` will write.
    func encodedLength(_ frame: Frame) -> Int
    /// Writes exactly `encodedLength` bytes for message stream 1. Returns the first header's length, at most 18, or 0 when no header
    /// depends on the message stream.
    func encode(_ frame: Frame, into bytes: UnsafeMutableRawBufferPointer) -> Int
    /// Changes the message stream id in a header that `encode` wrote.
    func setStreamID(_ streamID: UInt32, inHeader header: UnsafeMutableRawBufferPointer)
    /// The change that replaces the frame, which is then not encoded. Called for data frames only.
    func change(of frame: Frame) -> StreamChange?
}

extension FrameEncoder {
    package func change(of frame: Frame) -> StreamChange? { nil }
}

/// An encoder whose messages can be decoded again, to make other wire formats from them.
package protocol ReversibleEncoder: FrameEncoder {
    /// Extracts a frame's payload from the output of `encode` and the header length it returned.
    func payload(of encoded: UnsafeRawBufferPointer, headerLength: Int) -> ByteBuffer
}

/// A change of a stream, which viewers are told of between messages, at its position in the stream.
package enum StreamChange: UInt8, Sendable {
    /// A publisher started on an idle stream.
    case arrived
    /// The stream ended: its grace period is over, or it was evicted.
    case left
    /// The publisher is connected but sends no media.
    case dried
    /// The payloads that follow have another type. Only in wire formats whose messages cannot say so.
    case changed
}

/// One encoded message, with the flags by which the relay may skip it. Every viewer gets the same bytes. Immutable; shared by all loops.
///
/// `@unchecked Sendable`: `start` points into `slab`, which is retained here and immutable in that range.
package struct EncodedMessage: @unchecked Sendable {
    package struct Flags: OptionSet, Sendable {
        package let rawValue: UInt16
        package init(rawValue: UInt16) { self.rawValue = rawValue }
        package static let audio = Flags(rawValue: 1)
        package static let video = Flags(rawValue: 2)
        package static let data = Flags(rawValue: 4)
        package static let keyframe = Flags(rawValue: 8)
        /// Sequence headers, metadata and the like: never skipped.
        package static let essential = Flags(rawValue: 16)
        /// Data without a time of its own.
        package static let untimed = Flags(rawValue: 32)
        /// A ``Flush`` frame. Not flagged as video: a stream without pictures may have it, and no joiner waits for it.
        package static let filler = Flags(rawValue: 64)
        /// Containers cannot hold it: see `TagInfo.Flags.unusable`.
        package static let unusable = Flags(rawValue: 128)
        /// Only for viewers that know Multitrack. The message before it may be its default track alone.
        package static let tracks = Flags(rawValue: 256)
        /// Only for viewers that do not know Multitrack: see ``DefaultTracks``.
        package static let single = Flags(rawValue: 512)
        /// Messages that some viewers do not get.
        static let split = Flags(rawValue: 256 | 512)
    }

    package let slab: Slab?
    package let start: UnsafeRawPointer?
    /// Bytes, chunk headers included. 0 for a change.
    package let length: Int
    /// Bytes of the first chunk's header.
    package let headerLength: UInt8
    package let flags: Flags
    package let change: StreamChange?
    /// Milliseconds on the stream's own timeline.
    package let timestamp: Int64
    /// Arrival time, in milliseconds of the server's monotonic clock.
    package let arrivalMs: Int64

    init(change: StreamChange, timestamp: Int64, arrivalMs: Int64) {
        self.slab = nil
        self.start = nil
        self.length = 0
        self.headerLength = 0
        self.flags = []
        self.change = change
        self.timestamp = timestamp
        self.arrivalMs = arrivalMs
    }

    init(_ frame: Frame, encoder: any FrameEncoder, allocator: inout SlabAllocator, arrivalMs: Int64) {
        if frame.kind == .data, let change = encoder.change(of: frame) {
            self.init(change: change, timestamp: frame.timestamp, arrivalMs: arrivalMs)
            return
        }
        self.init(coded: frame, encoder: encoder, allocator: &allocator, arrivalMs: arrivalMs)
    }

    init(filler frame: Frame, encoder: any FrameEncoder, allocator: inout SlabAllocator, arrivalMs: Int64) {
        self.init(coded: frame, flags: .filler, encoder: encoder, allocator: &allocator, arrivalMs: arrivalMs)
    }

    private init(
        coded frame: Frame, flags: Flags? = nil, encoder: any FrameEncoder, allocator: inout SlabAllocator, arrivalMs: Int64
    ) {
        let length = encoder.encodedLength(frame)
        let (slab, bytes) = allocator.reserve(length, nowMs: arrivalMs)
        self.headerLength = UInt8(truncatingIfNeeded: encoder.encode(frame, into: bytes))
        self.slab = slab
        self.start = UnsafeRawPointer(bytes.baseAddress)
        self.length = length
        self.flags = flags ?? Self.flags(of: frame)
        self.change = nil
        self.timestamp = frame.timestamp
        self.arrivalMs = arrivalMs
    }

    /// Decodes the frame that this message was made from; nil for a change.
    func frame(_ encoder: any ReversibleEncoder) -> Frame? {
        guard let start = self.start else { return nil }
        let kind: Frame.Kind = !self.flags.isDisjoint(with: [.video, .filler]) ? .video : self.flags.contains(.audio) ? .audio : .data
        let payload = encoder.payload(
            of: UnsafeRawBufferPointer(start: start, count: self.length), headerLength: Int(self.headerLength))
        do {
            var frame = try Frame(kind: kind, timestamp: self.timestamp, payload: payload)
            if self.flags.contains(.untimed) { frame.tag.flags.insert(.untimed) }
            if self.flags.contains(.unusable) { frame.tag.flags.insert(.unusable) }
            if self.flags.contains(.single) { frame.tag.flags.insert(.singleTrack) }
            if self.flags.contains(.tracks), !self.flags.contains(.keyframe) { frame.tag.flags.remove(.keyframe) }
            return frame
        } catch {
            // Cannot happen: the same payload was parsed when it arrived.
            return nil
        }
    }

    private static func flags(of frame: Frame) -> Flags {
        var flags: Flags =
            switch frame.kind {
            case .audio: .audio
            case .video: .video
            case .data: .data
            }
        let tag = frame.tag.flags
        if tag.isDisjoint(with: .special) { return flags }
        if frame.isKeyframe { flags.insert(.keyframe) }
        if frame.kind == .data, tag.contains(.untimed) { flags.insert(.untimed) }
        if tag.contains(.unusable) { flags.insert(.unusable) }
        if !tag.isDisjoint(with: .header) || tag.contains(.endOfSequence) { flags.insert(.essential) }
        if tag.contains(.singleTrack) { flags.insert(.single) } else if tag.contains(.multitrack) { flags.insert(.tracks) }
        return flags
    }
}
