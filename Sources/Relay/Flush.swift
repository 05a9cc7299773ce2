import Media
import NIOCore

/// What players are sent when a stream falls silent, so that they have all that came before it.
///
/// VLC reads FLV in blocks of 32 KiB and waits for each to be full (its `avio` and `cache_read` modules). When a publisher goes, up to a
/// block's worth of media stays in that reader until the publisher is back; then it comes too late, VLC starts its clock anew with it, and
/// plays the whole time away after it: seen, the player was that much further behind live from then on.
///
/// A block of filler completes the read. It is a video command frame (Adobe FLV 10.1 §E.4.3.1, frame type 5), which players skip: FFmpeg
/// before it looks at anything else, flv.js and mpegts.js because its next byte says "end of sequence" of a codec that they know.
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

extension Packaging {
    /// Whether what it carries is FLV's tags, by themselves or in RTMP's messages.
    var carriesTags: Bool {
        switch self {
        case .rtmp, .flvOverHTTP, .flvOverWebSocket: true
        case .payloadOverHTTP, .payloadOverWebSocket: false
        }
    }
}
