import Logging
import Media
import NIOCore
import RTMP
import Streaming
package import Talk

/// A channel's work per tick. Decodes its talkers, mixes them, encodes each distinct mix once and publishes it.
///
/// `@unchecked Sendable`: only the channel's ticks touch the state, one after the other on one thread.
final class TalkEngine: @unchecked Sendable {
    /// The work of one tick.
    struct Plan {
        var talkers: [Talker] = []
        var mixes: [Mix] = []
        /// Whether speaking talkers hear the others at a lower level.
        var ducks = false
        /// Bits per second of a mix.
        var bitRate = 64_000
        /// Whether the mix of all is recorded.
        var isRecorded = false
        /// The tick is long past: only recorded mixes get it.
        var isMadeUp = false

        struct Talker {
            let id: ParticipantID
            let inbox: TalkInbox
            let gain: Float
            /// Whether the voice is mixed. If not, only headers arrive, which are needed later.
            let isHeard: Bool
        }

        struct Mix {
            let target: TalkAddress
            let codec: TalkCodec
            let stream: DerivedStream
            /// Whether somebody listens or records.
            let isWanted: Bool
            /// Whether it is the mix that recordings use.
            var isRecorded: Bool { self.target == .mix && self.codec == .aac }
        }
    }

    /// The results of a tick.
    struct Report {
        /// Talkers whose frames have arrived.
        var heard: [ParticipantID] = []
        var voices: [ParticipantID: VoiceReport] = [:]
        /// Distinct mixes that were encoded.
        var mixes = 0
        var totals = TalkTotals()
    }

    private struct Key: Hashable {
        /// The participant left out; nil for the mix of all voices.
        let without: ParticipantID?
        let codec: TalkCodec
    }

    private var voices: [ParticipantID: TalkVoice] = [:]
    private var mixer = Mixer()
    private var encoders: [Key: MixEncoder] = [:]
    /// For how many ticks a participant's own mix has equalled the mix of all.
    private var likeAll: [ParticipantID: Int] = [:]
    /// The full mix's blocks before this tick.
    private var before: [[Float]]
    private var sentHeaders: Set<ObjectIdentifier> = []
    private var startUs: Int64?
    private var lastTick: Int64 = -1
    /// Totals of voices and mixes that have ended.
    private var ended = TalkTotals()
    private let log: Logger
    private var reportedProblems: Set<String> = []

    /// Blocks of the full mix that a new encoder begins with.
    private static let keptBlocks = 2
    /// A talker's own mix continues for this many ticks (2 s) after its voice ended. By then both encoders hold the same.
    private static let ownTicks = 94

    init(log: Logger) {
        self.log = log
        self.before = Array(repeating: TalkBlock.silence.samples, count: Self.keptBlocks)
    }

    /// Runs a tick. `nowUs`: when it was due, by the monotonic clock.
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
            self.report(voice.problem, of: talker.id)
            self.voices[talker.id] = voice
        }
        self.mixer.beginTick(inputs)
        self.publish(plan, tick: tick, &report)
        return report
    }

    /// The tick's number. Starts after the blocks that an encoder begins with; skipped ticks leave gaps.
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
            self.ended.delayMs = 0
            self.voices[id] = nil
        }
        for talker in talkers where self.voices[talker.id] == nil { self.voices[talker.id] = TalkVoice(talker.inbox) }
    }

    private func report(_ problem: String?, of id: ParticipantID) {
        guard let problem, self.reportedProblems.count < 16, self.reportedProblems.insert("\(id) \(problem)").inserted else { return }
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
        // An encoder that missed a tick cannot continue; the next listener gets a new one.
        for key in Array(self.encoders.keys) where messages[key] == nil {
            self.ended.encodes += self.encoders.removeValue(forKey: key)?.encodes ?? 0
        }
        if !plan.isMadeUp { self.forget(except: wanted, plan.mixes) }
        report.mixes = messages.count
        report.totals = self.ended
        for encoder in self.encoders.values { report.totals.encodes += encoder.encodes }
        for voice in self.voices.values { report.totals.add(voice) }
    }

    /// The participant that the mix leaves out; nil if that makes no difference. Silent participants get the mix of all, encoded once.
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
            self.logOnce("A mix cannot be encoded", "\(error)")
            return []
        }
    }

    private func logOnce(_ line: Logger.Message, _ problem: String) {
        guard self.reportedProblems.count < 16, self.reportedProblems.insert(problem).inserted else { return }
        self.log.error(line, metadata: ["problem": "\(problem)"])
    }

    private func publish(_ frames: [Frame], _ key: Key, _ stream: DerivedStream, tick: Int64, isMadeUp: Bool) {
        var frames = frames
        if !self.sentHeaders.contains(ObjectIdentifier(stream)), let header = self.encoders[key]?.header {
            self.sentHeaders.insert(ObjectIdentifier(stream))
            let ms = TalkFormat.milliseconds(tick: tick)
            frames = [Self.metadata(key.codec, ms), MixEncoder.frame(header, ms)].compactMap { $0 } + frames
        }
        guard !frames.isEmpty else { return }
        if isMadeUp { stream.keep(frames) } else { stream.publish(frames) }
    }

    /// Metadata which says that there is no video, because some players wait for it for seconds.
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

    /// Drops the state of mixes that nobody listens to any more.
    private func forget(except wanted: [Plan.Mix], _ known: [Plan.Mix]) {
        let streams = Set(known.map { ObjectIdentifier($0.stream) })
        if self.sentHeaders.count > streams.count { self.sentHeaders.formIntersection(streams) }
        for id in Array(self.likeAll.keys) where !wanted.contains(where: { $0.target == .mixWithout(id) }) {
            self.likeAll[id] = nil
            self.mixer.forget(id)
        }
    }
}

/// Totals of voices and mixes since their channels began. A plain value.
package struct TalkTotals: Sendable {
    /// Ticks of mixes that were encoded.
    package var encodes = 0
    /// Times that a talker's buffer ran dry.
    package var underruns: Int64 = 0
    /// Samples dropped because there were too many or they came too late.
    package var dropped: Int64 = 0
    /// Frames that could not be decoded.
    package var damaged: UInt64 = 0
    /// Frames dropped undecoded because there were too many.
    package var skipped: UInt64 = 0
    /// The longest delay before mixing among the present voices, in milliseconds; not a total.
    package var delayMs = 0.0

    package mutating func add(_ voice: TalkVoice) {
        self.delayMs = max(self.delayMs, voice.jitter.counters.delayMs)
        self.underruns += voice.jitter.counters.underruns
        self.dropped += voice.jitter.counters.dropped
        self.damaged += voice.damaged
        self.skipped += voice.skipped
    }

    package mutating func add(_ other: TalkTotals) {
        self.encodes += other.encodes
        self.underruns += other.underruns
        self.dropped += other.dropped
        self.damaged += other.damaged
        self.skipped += other.skipped
        self.delayMs = max(self.delayMs, other.delayMs)
    }
}

/// How a talker's voice arrives, for the API.
package struct VoiceReport: Sendable {
    package let codec: String?
    package let isSpeaking: Bool
    /// dBFS.
    package let levelDB: Double
    package let counters: JitterCounters
    package let damaged: UInt64
    package let droppedFrames: UInt64

    init(_ voice: TalkVoice) {
        self.codec = voice.codec
        self.isSpeaking = voice.level.isSpeaking
        self.levelDB = Double(voice.level.rmsDB)
        self.counters = voice.jitter.counters
        self.damaged = voice.damaged
        self.droppedFrames = voice.skipped
    }
}
