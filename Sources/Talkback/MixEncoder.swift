import FFmpeg
import Media
import NIOCore
import Streaming
import Talk

/// Encodes one mix, tick by tick, for all its listeners. Silence is encoded once and then repeated.
///
/// Owned by a channel's ``TalkEngine``.
final class MixEncoder {
    private let encoder: AudioEncoder
    private let codec: TalkCodec
    private var silentTicks = 0
    private var silence: ByteBuffer?
    /// The expected next tick; later if ticks are skipped.
    private var nextTick: Int64
    /// The tick of the first sample, shifted by the ticks skipped since.
    private var startTick: Int64
    /// Ticks and runs since `startTick`, encoded or replaced by ``silence``.
    private var ticks: Int64 = 0
    private var runs: Int64 = 0
    /// Ticks of silence that were not encoded since the encoder last ran.
    private var sparedTicks: Int64 = 0
    /// Runs that the encoder holds back.
    private var heldRuns: Int64 = 0
    /// Ticks that were really encoded.
    private(set) var encodes = 0

    /// `before`: the blocks that the listeners have already heard, so that the first new block continues them.
    init(_ codec: TalkCodec, bitRate: Int, tick: Int64, after before: [[Float]]) throws(FFmpegError) {
        self.codec = codec
        self.encoder = try AudioEncoder(codec: codec.encoding, sampleRate: TalkFormat.sampleRate, channels: 1, bitRate: bitRate)
        self.startTick = tick - Int64(before.count)
        self.nextTick = tick
        for block in before { _ = try self.runs(of: block) }
    }

    /// The sequence header, which a listener needs first.
    var header: ByteBuffer { self.encoder.sequenceMessage }

    /// The messages of a tick, with their timestamps: milliseconds of the channel's time.
    func encode(_ samples: [Float], isSilent: Bool, tick: Int64) throws(FFmpegError) -> [Frame] {
        // Skipped ticks take time, but have no samples.
        self.startTick += max(0, tick - self.nextTick)
        self.nextTick = tick + 1
        self.silentTicks = isSilent ? self.silentTicks + 1 : 0
        if self.silentTicks > self.codec.settledTicks, let silence = self.silence { return self.spare(silence, tick) }
        try self.catchUp()
        self.encodes += 1
        var frames: [Frame] = []
        for run in try self.runs(of: samples) {
            let message = self.encoder.message(run.encoded)
            if self.silentTicks == self.codec.settledTicks { self.silence = message }
            if let frame = Self.frame(message, self.milliseconds(run: run.index, tick)) { frames.append(frame) }
        }
        return frames
    }

    private func runs(of samples: [Float]) throws(FFmpegError) -> [(index: Int64, encoded: AudioEncoder.Run)] {
        let runs = try self.encoder.encode(PCM(sampleRate: TalkFormat.sampleRate, planes: [samples]))
        self.ticks += 1
        defer { self.runs += Int64(runs.count) }
        return runs.enumerated().map { (self.runs + Int64($0), $1) }
    }

    /// The time of a run. AAC has one run per tick and takes its time; Opus runs have their own length, so their times follow from their
    /// number.
    private func milliseconds(run: Int64, _ tick: Int64) -> Int64 {
        guard self.codec == .opus else { return TalkFormat.milliseconds(tick: tick) }
        let position = max(0, run * Int64(self.encoder.runSamples) - Int64(self.encoder.priming))
        return TalkFormat.milliseconds(tick: self.startTick) + position * 1_000 / Int64(TalkFormat.sampleRate)
    }

    // MARK: Silence

    /// Returns what the encoder would output for another tick of silence, without running it.
    private func spare(_ silence: ByteBuffer, _ tick: Int64) -> [Frame] {
        let runSamples = Int64(self.encoder.runSamples)
        // AAC always holds back one run.
        if self.sparedTicks == 0 { self.heldRuns = (self.ticks * Int64(TalkFormat.blockSamples) - self.runs * runSamples) / runSamples }
        self.ticks += 1
        self.sparedTicks += 1
        var frames: [Frame] = []
        while (self.runs + self.heldRuns + 1) * runSamples <= self.ticks * Int64(TalkFormat.blockSamples) {
            if let frame = Self.frame(silence, self.milliseconds(run: self.runs, tick)) { frames.append(frame) }
            self.runs += 1
        }
        return frames
    }

    /// Feeds the encoder the part of a cycle of silence that it missed.
    private func catchUp() throws(FFmpegError) {
        let missing = self.sparedTicks % self.codec.cycleTicks
        self.sparedTicks = 0
        for _ in 0..<missing {
            _ = try self.encoder.encode(PCM(silence: TalkFormat.blockSamples, sampleRate: TalkFormat.sampleRate, channels: 1))
        }
    }

    static func frame(_ message: ByteBuffer, _ ms: Int64) -> Frame? {
        // The server made this message; if it does not parse, it is not sent.
        try? Frame(kind: .audio, timestamp: ms, payload: message)
    }
}

extension TalkCodec {
    var encoding: AudioEncoder.Codec {
        switch self {
        case .aac: .aac
        case .opus: .opus
        }
    }

    /// Ticks of silence after which the encoder's output stays the same. It then holds nothing older.
    fileprivate var settledTicks: Int {
        switch self {
        case .aac: 4
        case .opus: 24
        }
    }

    /// Ticks after which runs and ticks end together: 15 of 1,024 samples are 16 Opus runs.
    fileprivate var cycleTicks: Int64 {
        switch self {
        case .aac: 1
        case .opus: 15
        }
    }
}
