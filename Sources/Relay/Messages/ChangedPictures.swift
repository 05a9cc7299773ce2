import Media
import NIOCore

/// Adds the parameter sets to the first keyframe after a changed sequence header. Pictures change in mid-stream when a phone is turned, for example.
/// VLC ignores a second sequence header over RTMP and FLV: it would decode the new pictures with the old sets and show garbage. Only this keyframe is
/// not relayed byte for byte. A value, owned by the stream's state.
struct ChangedPictures: Sendable {
    private var hasHeader = false
    private var sets: ByteBuffer?

    /// Records a new sequence header: the first, or one that differs from its predecessor.
    mutating func headerCame(_ frame: Frame) {
        guard Self.isPlainVideo(frame), frame.isSequenceHeader else { return }
        self.sets = self.hasHeader ? ParameterSets.units(in: frame.body, of: frame.tag.videoCodec) : nil
        self.hasHeader = true
    }

    /// Adds the pending parameter sets to the keyframe, if there are any.
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

    /// Whether the frame belongs to the only video track that players know.
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
