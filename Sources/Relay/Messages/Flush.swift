import Media
import NIOCore

/// Filler that pushes the last media through players' readers when a stream falls silent.
///
/// VLC reads FLV in blocks of 32 KiB and waits for each to fill (its `avio` and `cache_read` modules). When a publisher goes, up to a block of media
/// stays in that reader until the publisher is back. By then it is too late: VLC restarts its clock with that media and then plays the whole absence.
/// Observed: from then on the player was that much further behind live.
///
/// A block of filler completes the read. It is a video command frame (Adobe FLV 10.1 §E.4.3.1, frame type 5), which players skip: FFmpeg before it
/// looks at anything else, flv.js and mpegts.js because the next byte says "end of sequence" of a codec that they know.
enum Flush {
    /// Milliseconds.
    static let leastIntervalMs: Int64 = 10_000
    private static let blockBytes = 32 << 10

    static func frame(at timestamp: Int64) -> Frame {
        var payload = ByteBuffer()
        payload.reserveCapacity(Self.blockBytes)
        // Command frame, AVC; end of sequence, composition time 0.
        payload.writeBytes([0x57, 2, 0, 0, 0])
        payload.writeRepeatingByte(0, count: Self.blockBytes - payload.readableBytes)
        return Frame(kind: .video, timestamp: timestamp, payload: payload, tag: TagInfo(flags: .command))
    }
}
