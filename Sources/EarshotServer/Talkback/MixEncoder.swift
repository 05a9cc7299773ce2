import FFmpeg
import Media
import NIOCore
import Talk

/// Encodes one mix, tick by tick, for all who hear it. Silence is encoded once and then sent again.
///
/// Owned by a channel's ``TalkEngine``.
final class MixEncoder {
    private let encoder: AudioEncoder
    private let codec: TalkCodec
    private var silentTicks = 0
    private var silence: ByteBuffer?
    /// The tick of the encoder's first sample.
    private let firstTick: Int64
    /// Runs that were really encoded.
    private(set) var encodes = 0

    /// Blocks of silence after which nothing of what was before is left in the encoder.
    private static let settledTicks = 4

    /// `before`: the blocks that its listeners have heard already, so that the first one goes on from there.
    init(_ codec: TalkCodec, bitRate: Int, tick: Int64, after before: [[Float]]) throws(FFmpegError) {
        self.codec = codec
        self.encoder = try AudioEncoder(codec: codec.encoding, sampleRate: TalkFormat.sampleRate, channels: 1, bitRate: bitRate)
        self.firstTick = tick - Int64(before.count)
        for block in before { _ = try self.encoder.encode(PCM(sampleRate: TalkFormat.sampleRate, planes: [block])) }
    }

    /// What a listener needs first.
    var header: ByteBuffer { self.encoder.sequenceMessage }

    /// The messages of a tick, with their timestamps: milliseconds of the channel's time.
    func encode(_ samples: [Float], isSilent: Bool, tick: Int64) throws(FFmpegError) -> [Frame] {
        self.silentTicks = isSilent ? self.silentTicks + 1 : 0
        if self.codec == .aac, self.silentTicks > Self.settledTicks, let silence = self.silence {
            return [Self.frame(silence, TalkFormat.milliseconds(tick: tick))].compactMap { $0 }
        }
        self.encodes += 1
        var frames: [Frame] = []
        for run in try self.encoder.encode(PCM(sampleRate: TalkFormat.sampleRate, planes: [samples])) {
            let message = self.encoder.message(run)
            if self.silentTicks == Self.settledTicks { self.silence = message }
            // One run a tick: its time is the tick's. Opus has runs of its own length, which say where they are.
            let ms =
                self.codec == .aac
                ? TalkFormat.milliseconds(tick: tick)
                : TalkFormat.milliseconds(tick: self.firstTick) + max(0, run.position) * 1_000 / Int64(TalkFormat.sampleRate)
            if let frame = Self.frame(message, ms) { frames.append(frame) }
        }
        return frames
    }

    static func frame(_ message: ByteBuffer, _ ms: Int64) -> Frame? {
        // Of our own making; what a parser would not read is not sent.
        try? Frame(kind: .audio, timestamp: ms, payload: message)
    }
}

/// What a mix is sent as.
enum TalkCodec: Hashable, CaseIterable, Sendable {
    /// AAC-LC, which all clients play.
    case aac
    /// Opus in Enhanced RTMP, for those that say they can.
    case opus

    var encoding: AudioEncoder.Codec {
        switch self {
        case .aac: .aac
        case .opus: .opus
        }
    }
}
