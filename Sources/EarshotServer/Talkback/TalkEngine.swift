import Logging
import Media
import NIOCore
import RTMP
import Talk

/// What a channel does with each tick: decodes its talkers, mixes them, encodes each distinct mix once and publishes it.
///
/// `@unchecked Sendable`: all state is touched by its channel's ticks only, which come one after the other on one thread.
final class TalkEngine: @unchecked Sendable {
    /// What is to be done in this tick.
    struct Plan {
        var talkers: [Talker] = []
        var mixes: [Mix] = []
        /// Whether those who speak hear the others less loud.
        var ducks = false
        /// Bits per second of a mix.
        var bitRate = 64_000
        /// The mix of all is recorded.
        var isRecorded = false
        /// The tick is long over: only what is recorded is made of it.
        var isMadeUp = false

        struct Talker {
            let id: ParticipantID
            let inbox: TalkInbox
            let gain: Float
            /// Who is not, sends nothing but headers, which are wanted for later.
            let isHeard: Bool
        }

        struct Mix {
            let target: TalkAddress
            let codec: TalkCodec
            let stream: DerivedStream
            /// Whether somebody listens.
            let isWanted: Bool
            /// Whether it is the one that recordings have.
            var isRecorded: Bool { self.target == .mix && self.codec == .aac }
        }
    }

    /// What a tick has found.
    struct Report {
        /// Whose frames have come.
        var heard: [ParticipantID] = []
        var voices: [ParticipantID: VoiceReport] = [:]
        /// Distinct mixes that somebody listens to.
        var mixes = 0
        var totals = TalkTotals()
    }

    private struct Key: Hashable {
        /// Nil: the mix of all.
        let without: ParticipantID?
        let codec: TalkCodec
    }

    private var voices: [ParticipantID: TalkVoice] = [:]
    private var mixer = Mixer()
    private var encoders: [Key: MixEncoder] = [:]
    /// For how many ticks a participant's own mix has been that of all.
    private var likeAll: [ParticipantID: Int] = [:]
    /// The blocks of the full mix before this tick.
    private var before: [[Float]]
    private var toldHeaders: Set<ObjectIdentifier> = []
    private var startUs: Int64?
    private var lastTick: Int64 = -1
    /// Of voices and mixes that are over.
    private var ended = TalkTotals()
    private let log: Logger
    private var toldProblems: Set<String> = []

    /// Of the full mix, to begin an encoder with.
    private static let keptBlocks = 2
    /// A talker's own mix goes on for so many ticks (2 s) after its voice ended: both encoders have the same in them by then.
    private static let ownTicks = 94

    init(log: Logger) {
        self.log = log
        self.before = Array(repeating: TalkBlock.silence.samples, count: Self.keptBlocks)
    }

    /// `nowUs`: when the tick was due, by the monotonic clock.
    func run(_ plan: Plan, nowUs: Int64) -> Report {
        let tick = self.tick(at: nowUs)
        var report = Report()
        self.matchVoices(plan.talkers)
        var inputs: [Mixer.Input] = []
        for talker in plan.talkers {
            guard var voice = self.voices.removeValue(forKey: talker.id) else { continue }
            voice.keepsAll(plan.isRecorded)
            if voice.fetch() { report.heard.append(talker.id) }
            if talker.isHeard {
                inputs.append(.init(id: talker.id, block: voice.pull(nowUs: nowUs), gain: talker.gain))
            } else {
                voice.rest()
            }
            report.voices[talker.id] = VoiceReport(voice)
            self.tell(voice.problem, of: talker.id)
            self.voices[talker.id] = voice
        }
        self.mixer.take(inputs)
        self.publish(plan, tick: tick, &report)
        return report
    }

    /// Ticks since the first one, which has those before it that an encoder begins with; leaves numbers out when ticks were left out.
    private func tick(at nowUs: Int64) -> Int64 {
        let start = self.startUs ?? nowUs
        self.startUs = start
        let blockUs = Double(TalkFormat.microseconds(tick: 1_000)) / 1_000
        self.lastTick = max(self.lastTick + 1, Int64((Double(nowUs - start) / blockUs).rounded()) + Int64(Self.keptBlocks))
        return self.lastTick
    }

    private func matchVoices(_ talkers: [Plan.Talker]) {
        for (id, voice) in Array(self.voices) where !talkers.contains(where: { $0.id == id && $0.inbox === voice.inbox }) {
            self.ended.add(voice)
            self.voices[id] = nil
        }
        for talker in talkers where self.voices[talker.id] == nil { self.voices[talker.id] = TalkVoice(talker.inbox) }
    }

    private func tell(_ problem: String?, of id: ParticipantID) {
        guard let problem, self.toldProblems.count < 16, self.toldProblems.insert("\(id) \(problem)").inserted else { return }
        self.log.warning("A voice cannot be decoded", metadata: ["participant": "\(id)", "problem": "\(problem)"])
    }

    // MARK: Mixes

    private func publish(_ plan: Plan, tick: Int64, _ report: inout Report) {
        let wanted = plan.mixes.filter { $0.isWanted && (!plan.isMadeUp || $0.isRecorded) }
        let all = self.mixer.mix()
        defer {
            self.before.removeFirst()
            self.before.append(all.samples)
        }
        var outputs: [ParticipantID: Mixer.Output] = [:]
        var messages: [Key: [Frame]] = [:]
        for mix in wanted {
            let own = self.ownMix(mix.target)
            let key = Key(without: own, codec: mix.codec)
            if messages[key] == nil {
                var output = all
                if let own {
                    let isDucked = plan.ducks && self.voices[own]?.level.isSpeaking == true
                    output = outputs[own] ?? self.mixer.mix(without: own, isDucked: isDucked)
                    outputs[own] = output
                }
                messages[key] = self.encode(output, key, bitRate: plan.bitRate, tick: tick)
            }
            self.publish(messages[key] ?? [], key, mix.stream, tick: tick, isMadeUp: plan.isMadeUp)
        }
        // One that has missed a tick does not go on from there: the next listener's starts anew.
        for key in Array(self.encoders.keys) where messages[key] == nil {
            self.ended.encodes += self.encoders.removeValue(forKey: key)?.encodes ?? 0
        }
        if !plan.isMadeUp { self.forget(except: wanted, plan.mixes) }
        report.mixes = messages.count
        report.totals = self.ended
        for encoder in self.encoders.values { report.totals.encodes += encoder.encodes }
        for voice in self.voices.values { report.totals.add(voice) }
    }

    /// Whom the mix leaves out, when that makes a difference: who does not speak hears what all hear, encoded once.
    private func ownMix(_ target: TalkAddress) -> ParticipantID? {
        guard case .mixWithout(let id) = target else { return nil }
        if self.mixer.contributes(id) {
            self.likeAll[id] = 0
            return id
        }
        guard let ticks = self.likeAll[id] else { return nil }
        guard ticks < Self.ownTicks else {
            self.likeAll[id] = nil
            self.mixer.forget(id)
            return nil
        }
        self.likeAll[id] = ticks + 1
        return id
    }

    private func encode(_ output: Mixer.Output, _ key: Key, bitRate: Int, tick: Int64) -> [Frame] {
        do {
            var encoder = self.encoders[key]
            if encoder == nil {
                encoder = try MixEncoder(key.codec, bitRate: bitRate, tick: tick, after: self.before)
                self.encoders[key] = encoder
            }
            return try encoder?.encode(output.samples, isSilent: output.isSilent, tick: tick) ?? []
        } catch {
            self.tellOnce("A mix cannot be encoded", "\(error)")
            return []
        }
    }

    private func tellOnce(_ line: Logger.Message, _ problem: String) {
        guard self.toldProblems.count < 16, self.toldProblems.insert(problem).inserted else { return }
        self.log.error(line, metadata: ["problem": "\(problem)"])
    }

    private func publish(_ frames: [Frame], _ key: Key, _ stream: DerivedStream, tick: Int64, isMadeUp: Bool) {
        var frames = frames
        if !self.toldHeaders.contains(ObjectIdentifier(stream)), let header = self.encoders[key]?.header {
            self.toldHeaders.insert(ObjectIdentifier(stream))
            let ms = TalkFormat.milliseconds(tick: tick)
            frames = [Self.metadata(key.codec, ms), MixEncoder.frame(header, ms)].compactMap { $0 } + frames
        }
        guard !frames.isEmpty else { return }
        if isMadeUp { stream.keep(frames) } else { stream.publish(frames) }
    }

    /// So that players look for no video: some wait seconds for one.
    private static func metadata(_ codec: TalkCodec, _ ms: Int64) -> Frame? {
        var payload = ByteBuffer()
        payload.writeAMF0(.string("onMetaData"))
        payload.writeAMF0(
            .ecmaArray([
                .init(name: "audiocodecid", value: .number(codec == .aac ? 10 : Double(("Opus" as FourCC).rawValue))),
                .init(name: "audiosamplerate", value: .number(Double(TalkFormat.sampleRate))),
                .init(name: "audiosamplesize", value: .number(16)),
                .init(name: "stereo", value: .boolean(false)), .init(name: "hasAudio", value: .boolean(true)),
                .init(name: "hasVideo", value: .boolean(false)),
            ]))
        return try? Frame(kind: .data, timestamp: ms, payload: payload)
    }

    /// What nobody listens to any more leaves nothing behind.
    private func forget(except wanted: [Plan.Mix], _ known: [Plan.Mix]) {
        let streams = Set(known.map { ObjectIdentifier($0.stream) })
        if self.toldHeaders.count > streams.count { self.toldHeaders.formIntersection(streams) }
        for id in Array(self.likeAll.keys) where !wanted.contains(where: { $0.target == .mixWithout(id) }) {
            self.likeAll[id] = nil
            self.mixer.forget(id)
        }
    }
}

/// What has become of voices and mixes since their channels began. A plain value.
struct TalkTotals: Sendable {
    /// Runs encoded.
    var encodes = 0
    /// Times that a talker's buffer ran dry.
    var underruns: Int64 = 0
    /// Samples thrown away, because there were too many or they came too late.
    var dropped: Int64 = 0
    /// Frames that could not be decoded.
    var damaged: UInt64 = 0
    /// Frames that were too many to be decoded.
    var skipped: UInt64 = 0

    mutating func add(_ voice: TalkVoice) {
        self.underruns += voice.jitter.counters.underruns
        self.dropped += voice.jitter.counters.dropped
        self.damaged += voice.damaged
        self.skipped += voice.skipped
    }

    mutating func add(_ other: TalkTotals) {
        self.encodes += other.encodes
        self.underruns += other.underruns
        self.dropped += other.dropped
        self.damaged += other.damaged
        self.skipped += other.skipped
    }
}

/// How a talker's voice arrives, for the API.
struct VoiceReport: Sendable {
    let codec: String?
    let isSpeaking: Bool
    /// dBFS.
    let levelDB: Double
    let counters: JitterCounters
    let damaged: UInt64
    let droppedFrames: UInt64

    init(_ voice: TalkVoice) {
        self.codec = voice.codec
        self.isSpeaking = voice.level.isSpeaking
        self.levelDB = Double(voice.level.rmsDB)
        self.counters = voice.jitter.counters
        self.damaged = voice.damaged
        self.droppedFrames = voice.skipped
    }
}
