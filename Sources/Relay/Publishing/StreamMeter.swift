package import Media
import NIOCore

/// A stream's formats and rates, for the API. Owned by the stream's home loop; a value.
package struct StreamMeter: Sendable {
    package private(set) var bytesIn: UInt64 = 0
    package private(set) var messagesIn: UInt64 = 0
    package private(set) var video: VideoFormat?
    package private(set) var audio: AudioFormat?
    /// Bits per second over the last full window, FLV tag bodies only.
    package private(set) var videoBitsPerSecond = 0
    package private(set) var audioBitsPerSecond = 0
    package private(set) var framesPerSecond = 0.0
    /// Audio frames a second, as they came.
    package private(set) var audioFramesPerSecond = 0.0
    /// Milliseconds between the last two keyframes, by timestamp.
    package private(set) var keyframeIntervalMs: Int64?

    private var windowStartMs: Int64?
    private var windowVideoBytes = 0
    private var windowAudioBytes = 0
    private var windowFrames = 0
    private var windowAudioFrames = 0
    private var lastKeyframe: Int64?

    private static let windowMs: Int64 = 2_000

    /// `isSide`: the message has only tracks besides the default one, which count as bytes alone.
    package mutating func count(_ frame: Frame, isSide: Bool = false, nowMs: Int64) {
        let bytes = frame.payload.readableBytes
        self.bytesIn &+= UInt64(bytes)
        self.messagesIn &+= 1
        if self.windowStartMs == nil { self.windowStartMs = nowMs }
        switch frame.kind {
        case .video:
            self.windowVideoBytes += bytes
            if isSide { return }
            if frame.tag.flags.contains(.coded) { self.windowFrames += 1 }
            if frame.isKeyframe {
                // Skips the interval across a jump of the publisher's clock.
                if let last = self.lastKeyframe, frame.timestamp > last { self.keyframeIntervalMs = frame.timestamp - last }
                self.lastKeyframe = frame.timestamp
            }
            if frame.isSequenceHeader { self.readVideo(frame) }
        case .audio:
            self.windowAudioBytes += bytes
            if isSide { return }
            if frame.tag.flags.contains(.coded) { self.windowAudioFrames += 1 }
            if frame.isSequenceHeader || self.audio == nil { self.readAudio(frame) }
        case .data:
            break
        }
    }

    /// Closes the window when it is full; call at least once a second.
    package mutating func tick(nowMs: Int64) {
        guard let start = self.windowStartMs, nowMs - start >= Self.windowMs else { return }
        let seconds = Double(nowMs - start) / 1_000
        self.videoBitsPerSecond = Int(Double(self.windowVideoBytes * 8) / seconds)
        self.audioBitsPerSecond = Int(Double(self.windowAudioBytes * 8) / seconds)
        self.framesPerSecond = (Double(self.windowFrames) / seconds * 10).rounded() / 10
        self.audioFramesPerSecond = (Double(self.windowAudioFrames) / seconds * 10).rounded() / 10
        self.windowStartMs = nowMs
        self.windowVideoBytes = 0
        self.windowAudioBytes = 0
        self.windowFrames = 0
        self.windowAudioFrames = 0
    }

    /// Forgets the former publisher's formats, which do not apply to the new one.
    package mutating func publisherChanged() {
        self.video = nil
        self.audio = nil
        self.lastKeyframe = nil
        self.keyframeIntervalMs = nil
    }

    // An unreadable header is still relayed; only the codec's name is known then.
    private mutating func readVideo(_ frame: Frame) {
        do {
            self.video = try VideoFormat.from(sequenceHeader: frame.payload)
        } catch {
            self.video = frame.tag.videoCodec.map { VideoFormat(codec: $0) }
        }
    }

    private mutating func readAudio(_ frame: Frame) {
        do {
            self.audio = try AudioFormat.from(tag: frame.payload)
        } catch {
            self.audio = frame.tag.audioCodec.map { AudioFormat(codec: $0) }
        }
    }
}
