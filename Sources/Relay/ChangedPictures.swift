import Media
import NIOCore

/// Pictures that change in the middle of a stream, as when a phone is turned: the first keyframe after another sequence header also carries
/// its parameter sets. VLC reads no second sequence header over RTMP and FLV; without this it decodes the new pictures by the old sets, and
/// shows rubbish. It is the only frame that is not relayed byte for byte. A value, owned by the stream's state.
struct ChangedPictures: Sendable {
    private var hasHeader = false
    private var sets: ByteBuffer?

    init() {}

    /// A sequence header that is not the one before it.
    mutating func headerCame(_ frame: Frame) {
        guard Self.isPlainVideo(frame), frame.isSequenceHeader else { return }
        self.sets = self.hasHeader ? ParameterSets.units(in: frame.body, of: frame.tag.videoCodec) : nil
        self.hasHeader = true
    }

    /// The keyframe as players are to get it.
    mutating func complete(_ keyframe: inout Frame) {
        guard let sets = self.sets, Self.isPlainVideo(keyframe) else { return }
        self.sets = nil
        var payload = ByteBuffer()
        payload.reserveCapacity(keyframe.payload.readableBytes + sets.readableBytes)
        payload.writeImmutableBuffer(
            keyframe.payload.getSlice(at: keyframe.payload.readerIndex, length: Int(keyframe.tag.bodyOffset)) ?? ByteBuffer())
        payload.writeImmutableBuffer(sets)
        payload.writeImmutableBuffer(keyframe.body)
        keyframe.payload = payload
    }

    /// Of the one track that players know.
    private static func isPlainVideo(_ frame: Frame) -> Bool {
        frame.kind == .video && !frame.tag.flags.contains(.multitrack) && frame.tag.trackID == 0
    }
}

extension Frame {
    /// The codec's data, past every header.
    fileprivate var body: ByteBuffer {
        let offset = min(Int(self.tag.bodyOffset), self.payload.readableBytes)
        return self.payload.getSlice(at: self.payload.readerIndex + offset, length: self.payload.readableBytes - offset) ?? ByteBuffer()
    }
}
