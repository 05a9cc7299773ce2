package import NIOCore

/// One media message from publisher to viewers: its time, its parsed header and its bytes.
///
/// A plain value, made on the publisher's event loop and then shared; the payload is relayed byte for byte.
package struct Frame: Sendable {
    /// The kind of a message. Raw values are RTMP message type ids (RTMP 1.0 §5.4, §7.1) and FLV tag types (FLV §E.4.1).
    package enum Kind: UInt8, Sendable, Hashable {
        case audio = 8
        case video = 9
        /// Script data: an AMF0 name and values, mostly `onMetaData`.
        case data = 18

        // As for `TagInfo.Flags`: not the generic code of RawRepresentable.
        @inlinable package static func == (left: Kind, right: Kind) -> Bool {
            switch (left, right) {
            case (.audio, .audio), (.video, .video), (.data, .data): true
            default: false
            }
        }
    }

    package var kind: Kind
    /// Milliseconds, decode order, unwrapped (`TimestampUnwrapper`).
    package var timestamp: Int64
    /// An FLV tag body, which is an RTMP message's payload.
    package var payload: ByteBuffer
    package var tag: TagInfo

    package init(kind: Kind, timestamp: Int64, payload: ByteBuffer, tag: TagInfo) {
        self.kind = kind
        self.timestamp = timestamp
        self.payload = payload
        self.tag = tag
    }

    /// Parses the tag header. Throws what `TagInfo.parse` throws.
    package init(kind: Kind, timestamp: Int64, payload: ByteBuffer) throws(MediaError) {
        self.init(kind: kind, timestamp: timestamp, payload: payload, tag: try TagInfo.parse(kind, payload))
    }

    /// Whether a decoder can start from this coded video frame; never true for a sequence header.
    package var isKeyframe: Bool { self.kind == .video && self.tag.flags.contains(.keyframe) }
    /// Whether this is the codec's configuration, which every late joiner needs first.
    package var isSequenceHeader: Bool { self.tag.flags.contains(.sequenceHeader) }
    /// The 32-bit timestamp sent to players and other servers.
    ///
    /// `onMetaData` and script data without a time of its own go out at time 0. FFmpeg's FLV reader skips `onMetaData` and `onCuePoint`
    /// only there; at any other time it makes a subtitle track of them, for which players then wait (flvdec.c).
    package var wireTimestamp: UInt32 {
        if self.kind == .data, !self.tag.flags.isDisjoint(with: [.metadata, .untimed]) { return 0 }
        return TimestampUnwrapper.wrap(self.timestamp)
    }
    /// The codec's data, behind the tag's header.
    package var body: ByteBuffer {
        let offset = min(Int(self.tag.bodyOffset), self.payload.readableBytes)
        return self.payload.getSlice(at: self.payload.readerIndex + offset, length: self.payload.readableBytes - offset) ?? ByteBuffer()
    }
    /// Milliseconds, presentation order.
    package var presentationTimestamp: Int64 { self.timestamp &+ Int64(self.tag.compositionTimeMs) }
}
