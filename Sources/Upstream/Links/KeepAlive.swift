internal import Media
internal import NIOCore

/// What a push sends while its stream is silent, so that the other server does not drop it for being idle. A plain value; time is an input.
///
/// After each interval without a frame, the first of these that the stream allows:
/// - where there is sound in AAC-LC of one or two channels: the silence of the time that has passed;
/// - where there are pictures: the last header once more, and a frame without data, which players skip;
/// - otherwise an empty message of sound.
struct KeepAlive {
    struct Message: Equatable {
        let kind: Frame.Kind
        /// Milliseconds on the wire, not wrapped.
        let ms: Int64
        let payload: ByteBuffer
    }

    /// Sound in AAC-LC whose frames can be replaced by silence.
    private struct Silence {
        let payload: ByteBuffer
        let samples: Int64
        let sampleRate: Int64
    }

    /// Sound that ended this long before the pictures did is switched off. Milliseconds.
    private static let recentMs: Int64 = 10_000
    /// The longest silence sent at once; a link that slept longer does not catch up. Milliseconds.
    private static let mostMs: Int64 = 5_000

    private let intervalMs: Int64?
    /// When the next messages are due.
    private(set) var dueMs: Int64
    private var silence: Silence?
    private var pictures: (header: ByteBuffer, empty: ByteBuffer)?
    private var hasSound = false
    /// The newest frame's time on the wire and when it was sent, and the time at which the sound continues.
    private var lastMs: Int64 = 0
    private var sentMs: Int64
    private var soundMs: Int64 = 0
    /// Samples of silence since `soundMs`.
    private var silentSamples: Int64 = 0

    /// `intervalMs`: nil for never.
    init(intervalMs: Int?, nowMs: Int64) {
        self.intervalMs = intervalMs.map(Int64.init)
        self.sentMs = nowMs
        self.dueMs = intervalMs.map { nowMs + Int64($0) } ?? .max
    }

    /// Notes a frame of the stream that was sent at this time on the wire.
    mutating func sent(_ frame: Frame, at ms: Int64, nowMs: Int64) {
        guard let intervalMs = self.intervalMs, frame.kind != .data else { return }
        self.dueMs = nowMs + intervalMs
        if frame.isSequenceHeader { self.headerCame(frame) }
        self.hasSound = self.hasSound || frame.kind == .audio
        guard frame.tag.flags.contains(.coded) else { return }
        self.lastMs = ms
        self.sentMs = nowMs
        if frame.kind == .audio {
            self.soundMs = ms
            self.silentSamples = self.silence?.samples ?? 0
        }
    }

    /// The messages due now.
    mutating func due(nowMs: Int64) -> [Message] {
        guard let intervalMs = self.intervalMs, nowMs >= self.dueMs else { return [] }
        self.dueMs = nowMs + intervalMs
        let untilMs = self.lastMs + max(0, nowMs - self.sentMs)
        if let silence = self.silence, self.lastMs - self.soundMs <= Self.recentMs {
            return self.silentFrames(silence, untilMs: untilMs)
        }
        if let pictures = self.pictures {
            return [
                Message(kind: .video, ms: untilMs, payload: pictures.header), Message(kind: .video, ms: untilMs, payload: pictures.empty),
            ]
        }
        return self.hasSound ? [Message(kind: .audio, ms: untilMs, payload: ByteBuffer())] : []
    }

    private mutating func silentFrames(_ silence: Silence, untilMs: Int64) -> [Message] {
        var next = self.soundMs + self.silentSamples * 1_000 / silence.sampleRate
        if next < max(self.lastMs, untilMs - Self.mostMs) {
            next = max(self.lastMs, untilMs - Self.mostMs)
            (self.soundMs, self.silentSamples) = (next, 0)
        }
        var messages: [Message] = []
        while next <= untilMs {
            messages.append(Message(kind: .audio, ms: next, payload: silence.payload))
            self.silentSamples += silence.samples
            next = self.soundMs + self.silentSamples * 1_000 / silence.sampleRate
        }
        return messages
    }

    private mutating func headerCame(_ header: Frame) {
        guard !header.tag.flags.contains(.multitrack), header.tag.trackID == 0 else { return }
        switch header.kind {
        case .audio: self.silence = Self.silence(header)
        case .video: self.pictures = Self.emptyFrame(header).map { (header: header.payload, empty: $0) }
        case .data: break
        }
    }

    /// Nil for sound of which no silence is known here.
    private static func silence(_ header: Frame) -> Silence? {
        var body = header.payload
        guard header.tag.codec == .audio(.aac), let first = body.getInteger(at: body.readerIndex, as: UInt8.self),
            body.readableBytes >= Int(header.tag.bodyOffset)
        else { return nil }
        body.moveReaderIndex(forwardBy: Int(header.tag.bodyOffset))
        let config: AudioSpecificConfig
        do throws(MediaError) {
            config = try AudioSpecificConfig(body)
        } catch {
            return nil
        }
        // A frame of each, as FFmpeg's encoder writes it at every sample rate.
        let frames: [Int: [UInt8]] = [1: [0x01, 0x18, 0x20, 0x07], 2: [0x21, 0x10, 0x04, 0x60, 0x8C, 0x1C]]
        guard config.objectType == 2, config.samplesPerFrame == 1_024, let channels = config.coreChannels, let frame = frames[channels]
        else { return nil }
        // FLV 10.1 §E.4.2.1: AACPacketType 1. Enhanced RTMP v2: CodedFrames, which is 1 as well.
        let head: [UInt8] = header.tag.flags.contains(.enhanced) ? [0x91] + Array("mp4a".utf8) : [first, 1]
        return Silence(payload: ByteBuffer(bytes: head + frame), samples: 1_024, sampleRate: Int64(config.coreSampleRate))
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
