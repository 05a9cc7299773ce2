internal import Media
internal import NIOCore

/// What a push sends while its stream is silent, so that the other server does not drop it for being idle. A plain value; time is an input.
///
/// After each interval without a frame: where there are pictures, the last header once more and a frame without data; of sound alone, an empty message,
/// which Enhanced RTMP calls silence. Players skip all of them. They carry the time of the frame before, since nobody knows yet where the stream's
/// time goes on: a device that only stalled sends what it held back.
struct KeepAlive {
    struct Message: Equatable {
        let kind: Frame.Kind
        let payload: ByteBuffer
    }

    private let intervalMs: Int64?
    /// When the next messages are due.
    private(set) var dueMs: Int64
    /// The newest time on the wire; milliseconds, not wrapped.
    private(set) var lastMs: Int64 = 0
    private var pictures: (header: ByteBuffer, empty: ByteBuffer)?
    private var hasSound = false

    /// `intervalMs`: nil for never.
    init(intervalMs: Int?, nowMs: Int64) {
        self.intervalMs = intervalMs.map(Int64.init)
        self.dueMs = intervalMs.map { nowMs + Int64($0) } ?? .max
    }

    /// Notes a frame of the stream that was sent at this time on the wire.
    mutating func sent(_ frame: Frame, at ms: Int64, nowMs: Int64) {
        guard let intervalMs = self.intervalMs, frame.kind != .data else { return }
        self.dueMs = nowMs + intervalMs
        self.lastMs = max(self.lastMs, ms)
        if frame.kind == .audio {
            self.hasSound = true
        } else if frame.isSequenceHeader, !frame.tag.flags.contains(.multitrack), frame.tag.trackID == 0 {
            self.pictures = Self.emptyFrame(frame).map { (header: frame.payload, empty: $0) }
        }
    }

    /// The messages due now.
    mutating func due(nowMs: Int64) -> [Message] {
        guard let intervalMs = self.intervalMs, nowMs >= self.dueMs else { return [] }
        self.dueMs = nowMs + intervalMs
        if let pictures = self.pictures {
            return [Message(kind: .video, payload: pictures.header), Message(kind: .video, payload: pictures.empty)]
        }
        return self.hasSound ? [Message(kind: .audio, payload: ByteBuffer())] : []
    }

    /// An inter frame of the header's codec, without data.
    private static func emptyFrame(_ header: Frame) -> ByteBuffer? {
        guard let first = header.payload.getInteger(at: header.payload.readerIndex, as: UInt8.self) else { return nil }
        // FLV 10.1 §E.4.3.1: frame type 2, AVCPacketType 1, composition time 0.
        guard header.tag.flags.contains(.enhanced) else { return ByteBuffer(bytes: [0x20 | first & 0x0F, 1, 0, 0, 0]) }
        // Enhanced RTMP v2: frame type 2, CodedFramesX.
        guard let fourCC = header.payload.getBytes(at: header.payload.readerIndex + 1, length: 4) else { return nil }
        return ByteBuffer(bytes: [0xA3] + fourCC)
    }
}
