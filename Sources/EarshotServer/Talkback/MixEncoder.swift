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
    /// The tick that comes next, when none is left out.
    private var nextTick: Int64
    /// The tick of the first sample, if no tick had been left out since.
    private var startTick: Int64
    /// Ticks and runs since then, encoded or spared.
    private var ticks: Int64 = 0
    private var runs: Int64 = 0
    /// Ticks of silence that the encoder was spared since it last worked.
    private var sparedTicks: Int64 = 0
    /// Runs that the encoder holds back.
    private var heldRuns: Int64 = 0
    /// Runs that were really encoded.
    private(set) var encodes = 0

    /// `before`: the blocks that its listeners have heard already, so that the first one goes on from there.
    init(_ codec: TalkCodec, bitRate: Int, tick: Int64, after before: [[Float]]) throws(FFmpegError) {
        self.codec = codec
        self.encoder = try AudioEncoder(codec: codec.encoding, sampleRate: TalkFormat.sampleRate, channels: 1, bitRate: bitRate)
        self.startTick = tick - Int64(before.count)
        self.nextTick = tick
        for block in before { _ = try self.runs(of: block) }
    }

    /// What a listener needs first.
    var header: ByteBuffer { self.encoder.sequenceMessage }

    /// The messages of a tick, with their timestamps: milliseconds of the channel's time.
    func encode(_ samples: [Float], isSilent: Bool, tick: Int64) throws(FFmpegError) -> [Frame] {
        // The time of ticks that were left out is nobody's.
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

    /// One run of AAC a tick: its time is the tick's. Opus has runs of its own length, whose times follow from their number.
    private func milliseconds(run: Int64, _ tick: Int64) -> Int64 {
        guard self.codec == .opus else { return TalkFormat.milliseconds(tick: tick) }
        let position = max(0, run * Int64(self.encoder.runSamples) - Int64(self.encoder.priming))
        return TalkFormat.milliseconds(tick: self.startTick) + position * 1_000 / Int64(TalkFormat.sampleRate)
    }

    // MARK: Silence

    /// What the encoder would make of one more tick of silence, without asking it.
    private func spare(_ silence: ByteBuffer, _ tick: Int64) -> [Frame] {
        let runSamples = Int64(self.encoder.runSamples)
        // Of AAC one run is always still to come.
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

    /// Before the encoder goes on, it gets the silence that leaves it where the runs have come to: a part of a cycle.
    private func catchUp() throws(FFmpegError) {
        let missing = self.sparedTicks % self.codec.cycleTicks
        self.sparedTicks = 0
        for _ in 0..<missing {
            _ = try self.encoder.encode(PCM(silence: TalkFormat.blockSamples, sampleRate: TalkFormat.sampleRate, channels: 1))
        }
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

    /// Ticks of silence after which nothing of what was before is left in the encoder, and it makes the same of each.
    fileprivate var settledTicks: Int {
        switch self {
        case .aac: 4
        case .opus: 24
        }
    }

    /// Ticks after which runs end with a tick again: 15 of 1,024 samples are 16 runs of Opus.
    fileprivate var cycleTicks: Int64 {
        switch self {
        case .aac: 1
        case .opus: 15
        }
    }
}
