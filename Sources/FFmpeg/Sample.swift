package import Media
package import NIOCore

/// One coded picture or run of audio, without the header that carried it: what goes into a container.
///
/// A plain value.
package struct Sample: Sendable {
    package var kind: Frame.Kind
    /// Milliseconds on the stream's timeline, decode order.
    package var dts: Int64
    /// Milliseconds on the stream's timeline, presentation order.
    package var pts: Int64
    /// Decoding can start here: always true of audio.
    package var isKeyframe: Bool
    /// AVC and HEVC: NAL units, each after its length. AAC: a raw data block. Otherwise as the codec has it.
    package var payload: ByteBuffer

    package init(kind: Frame.Kind, dts: Int64, pts: Int64, isKeyframe: Bool, payload: ByteBuffer) {
        self.kind = kind
        self.dts = dts
        self.pts = pts
        self.isKeyframe = isKeyframe
        self.payload = payload
    }

    /// nil for what brings no coded media of the first track: headers, end of sequence, commands, script data, empty messages, and
    /// Multitrack messages that start with another track than 0.
    package init?(_ frame: Frame) {
        guard frame.tag.flags.contains(.coded), frame.tag.trackID == 0 else { return nil }
        var payload = frame.payload
        let offset = Int(frame.tag.bodyOffset)
        guard offset < payload.readableBytes else { return nil }
        if frame.tag.flags.contains(.multitrack) {
            guard let end = Self.endOfFirstTrack(frame), end > offset else { return nil }
            guard let slice = payload.getSlice(at: payload.readerIndex + offset, length: end - offset) else { return nil }
            payload = slice
        } else {
            // Not a slice: the room behind the data is what lets libav take it without a copy.
            payload.moveReaderIndex(forwardBy: offset)
        }
        self.kind = frame.kind
        self.dts = frame.timestamp
        self.pts = frame.presentationTimestamp
        self.isKeyframe = frame.kind == .audio || frame.isKeyframe
        self.payload = payload
    }

    /// Bytes from the payload's start; nil when the tracks are broken.
    private static func endOfFirstTrack(_ frame: Frame) -> Int? {
        do throws(MediaError) {
            var tracks = try TrackIterator(frame.kind, frame.payload)
            return try tracks.next()?.body.upperBound
        } catch {
            // The header was read before; a message whose first track is broken has no sample to give.
            return nil
        }
    }
}
