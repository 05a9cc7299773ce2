package import Media
package import NIOCore

/// One coded picture or run of audio without its message header, ready for a container.
///
/// A plain value.
package struct Sample: Sendable {
    package var kind: Frame.Kind
    /// Milliseconds on the stream's timeline, decode order.
    package var dts: Int64
    /// Milliseconds on the stream's timeline, presentation order.
    package var pts: Int64
    /// Whether decoding can start here; always true for audio.
    package var isKeyframe: Bool
    /// AVC and HEVC: NAL units with length prefixes. AAC: a raw data block. Otherwise the codec's own form.
    package var payload: ByteBuffer

    package init(kind: Frame.Kind, dts: Int64, pts: Int64, isKeyframe: Bool, payload: ByteBuffer) {
        self.kind = kind
        self.dts = dts
        self.pts = pts
        self.isKeyframe = isKeyframe
        self.payload = payload
    }

    /// Returns nil for frames without coded media of the first track. These are headers, end of sequence, commands, script data, empty
    /// messages, and Multitrack messages that start with a track other than 0.
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
            // Not a slice: libav needs room behind the data to avoid a copy.
            payload.moveReaderIndex(forwardBy: offset)
        }
        self.kind = frame.kind
        self.dts = frame.timestamp
        self.pts = frame.presentationTimestamp
        self.isKeyframe = frame.kind == .audio || frame.isKeyframe
        self.payload = payload
    }

    /// Offset in bytes from the payload's start; nil when the tracks are broken.
    private static func endOfFirstTrack(_ frame: Frame) -> Int? {
        do throws(MediaError) {
            var tracks = try TrackIterator(frame.kind, frame.payload)
            return try tracks.next()?.body.upperBound
        } catch {
            // The header was read before; a message with a broken first track has no sample.
            return nil
        }
    }
}
