/// How long a talker's audio may be held back. A plain value.
package struct JitterLimits: Sendable, Equatable {
    /// Milliseconds, 20…200, in ascending order.
    package let minMs: Int
    package let startMs: Int
    package let maxMs: Int

    package init(minMs: Int = 20, startMs: Int = 60, maxMs: Int = 200) {
        self.minMs = min(max(minMs, 20), 200)
        self.maxMs = min(max(maxMs, self.minMs), 200)
        self.startMs = min(max(startMs, self.minMs), self.maxMs)
    }
}

/// Counters of a talker's audio. A plain value; samples are at 48 kHz.
package struct JitterCounters: Sendable, Equatable {
    /// Milliseconds of audio in the queue.
    package var depthMs: Double = 0
    /// Milliseconds that ``delayMs`` is steered to.
    package var targetMs: Double = 0
    /// Milliseconds from a sample's undelayed arrival to the tick that plays it. 0 while ticks are made up for after a stall: they were due
    /// before that arrival.
    package var delayMs: Double = 0
    /// Milliseconds: the interarrival jitter of RFC 3550 §6.4.1.
    package var jitterMs: Double = 0
    /// Samples played unchanged, or at a corrected rate.
    package var played: Int64 = 0
    /// Samples missing by the talker's timestamps, in holes of less than a second; late audio does not count.
    package var lost: Int64 = 0
    /// Samples synthesized in position of missing ones.
    package var concealed: Int64 = 0
    /// Samples dropped because there were too many or they came too late.
    package var dropped: Int64 = 0
    /// Samples by which rate correction and shortened pauses changed playback.
    package var corrected: Int64 = 0
    /// Times that playback ran out of audio, because audio was late or the talker paused.
    package var underruns: Int64 = 0
    /// Times that a talker's timeline was determined anew, because timestamps jumped or audio came too late.
    package var resyncs: Int64 = 0
    /// Runs received.
    package var runs: Int64 = 0
}

/// Turns a talker's audio, however irregular its arrival, into an even stream of ticks.
///
/// One per talker, owned by the room's mixer, used on one thread at a time; a plain value of bounded size. No clock: times are passed in.
///
///     push → StampClock (position on the talker's timeline) → ArrivalTiming (how late) → SampleQueue → pull: play, conceal, silence
///
/// Audio is played a certain delay after the moment at which it would have arrived undelayed. That delay follows ``ArrivalTiming/target``:
/// - Pauses in the talk are shortened, because this leaves words unchanged and is inaudible.
/// - Playback is up to 1 % faster when there was no pause for 4 s, or at once when it is over 40 ms too late.
/// - Playback is up to 1 % slower when it is 3 ms too early.
///
/// A changed rate shifts a voice by a sixth of a semitone. Audio is resampled, not spliced, because a splice in a steady tone is audible; each tick
/// takes a whole number of samples, 1,024 ± 10, so that without correction every sample is played unchanged. Audio over 100 ms later than the target
/// is skipped.
package struct JitterBuffer: Sendable {
    /// Samples by which a tick's input may differ from 1,024. That is 1 %, or 10 % to lengthen a pause.
    private static let correction: Int64 = 10
    private static let quietCorrection: Int64 = 100
    /// Largest sample of a pause. It is 30 dB below the voice's peaks, between −50 and −36 dBFS.
    private static let quiet: ClosedRange<Float> = 0.003...0.016
    private static let pauseBelowVoice: Float = 0.03
    /// Share of the voice's peak that remains after a tick: half after 3 s.
    private static let peakRelease: Float = 0.995
    /// Ticks that late audio waits for a pause before it is played faster: 4 s. Then the samples of delay above which it does not wait: 40 ms.
    private static let patience = 188
    private static let urgent: Int64 = 1_920
    /// Samples of delay beside the target that are tolerated while somebody speaks: 3 ms.
    private static let tolerance: Int64 = 144
    /// The same in a pause, or once playback is being corrected: 1 ms.
    private static let shortage: Int64 = 48
    /// Samples of delay above the target from which audio is skipped at once: 100 ms.
    private static let excess: Int64 = 4_800
    /// Samples over which audio fades in: 2 ms after silence, 5 ms after made-up audio.
    private static let fadeIn = 96
    private static let crossfade = 240
    /// Full scale is 1; a broken coder's output is limited to 12 dB above that.
    private static let loudest: Float = 4
    private static let block = TalkFormat.blockSamples

    private let limits: JitterLimits
    private var stamps = StampClock()
    private var timing: ArrivalTiming
    private var queue = SampleQueue()
    /// The next sample to be played.
    private var read: Int64 = 0
    private var isPlaying = false
    /// Samples over 1,024 in the last tick.
    private var rate: Int64 = 0
    /// Ticks for which playback has been later than necessary.
    private var waited = 0
    /// The voice's peak, falling slowly.
    private var peak: Float = 0
    private var concealer = Concealer()
    private var line = PlayedLine()
    /// The position at which playback would have continued without shortening a pause.
    private var joint: Int64?
    /// Whether the next audio does not continue the last one played.
    private var isBroken = true
    private var tally = JitterCounters()
    /// Samples that may wait.
    private var capacity = SampleQueue.capacity

    package init(limits: JitterLimits = JitterLimits()) {
        self.limits = limits
        self.timing = ArrivalTiming(limits)
    }

    /// As of the last call.
    package var counters: JitterCounters {
        var counters = self.tally
        counters.depthMs = Double(max(0, self.queue.end - self.read)) / 48
        counters.targetMs = Double(self.timing.target) / 48
        counters.jitterMs = Double(self.timing.jitter) / 16 / 48
        return counters
    }

    /// Sets how much audio may wait: from a second, the default, to a minute.
    package mutating func keep(ms: Int) { self.capacity = TalkFormat.samples(ms: min(max(ms, 1_000), 60_000)) }

    /// Discards audio and timing, when the talker restarts with another clock. The sound being played fades out; the counters continue.
    package mutating func reset() {
        self.tally.dropped += self.queue.audio(in: self.read..<max(self.read, self.queue.end))
        self.stamps = StampClock()
        self.timing = ArrivalTiming(self.limits)
        self.queue = SampleQueue()
        self.read = 0
        self.stop()
    }

    /// Queues a run of decoded audio, in the order in which the talker sent it.
    ///
    /// - Parameters:
    ///   - samples: 48 kHz; only the newest are kept, as many as ``keep(ms:)`` allows. NaN becomes silence.
    ///   - timestampMs: the first sample's, as the sender stamped it; any clock, any origin.
    ///   - arrivalUs: the arrival time, on the clock of ``pull(nowUs:)``.
    package mutating func push(_ samples: [Float], timestampMs: Int64, arrivalUs: Int64) {
        guard !samples.isEmpty else { return }
        var samples = samples
        let surplus = samples.count - self.capacity
        if surplus > 0 {
            samples.removeFirst(surplus)
            self.tally.dropped += Int64(surplus)
        }
        Self.tame(&samples)
        self.tally.runs += 1
        let start = self.position(samples.count, timestampMs: TalkFormat.bounded(timestampMs) + Int64(max(0, surplus) / 48), arrivalUs)
        let waiting = self.queue.audio(in: self.read..<max(self.read, self.queue.end))
        if !self.queue.append(samples, at: start) {
            self.tally.dropped += waiting
            self.read = start
            self.stop()
        }
        self.skip(to: self.queue.end - Int64(self.capacity))
        self.queue.forget(before: self.read)
    }

    /// Records audio that arrived but was not decoded, because too much came at once. It counts as dropped, not lost.
    package mutating func leaveOut(_ count: Int, timestampMs: Int64, arrivalUs: Int64) {
        guard count > 0 else { return }
        _ = self.position(count, timestampMs: TalkFormat.bounded(timestampMs), arrivalUs)
        self.tally.dropped += Int64(count)
    }

    /// Places a run on the talker's timeline and returns its start.
    private mutating func position(_ count: Int, timestampMs: Int64, _ arrivalUs: Int64) -> Int64 {
        let arrival = TalkFormat.samples(us: arrivalUs)
        let (timing, next) = (self.timing, self.stamps.next)
        let position = self.stamps.position(timestampMs: timestampMs, count: count) { hole in
            timing.credible(hole: hole, next: next, arrival: arrival)
        }
        if position.hole > 0, position.hole < 48_000 { self.tally.lost += position.hole }
        if position.isJump { self.tally.resyncs += 1 }
        if self.timing.arrived(at: arrival, start: position.start, isContiguous: position.hole == 0 && !position.isJump) {
            self.tally.resyncs += 1
        }
        return position.start
    }

    /// Returns the next tick's audio. Call it once per tick with the time at which the tick is due, however late the caller is.
    package mutating func pull(nowUs: Int64) -> TalkBlock {
        let now = TalkFormat.samples(us: nowUs)
        self.timing.tick(now: now)
        var (made, played) = (0, 0)
        if self.isPlaying {
            self.skipExcess(now)
            self.chooseRate(now)
            (made, played) = self.rate == 0 ? self.play(after: 0) : self.playAtRate()
        } else if let lead = self.begin(now) {
            (made, played) = self.play(after: lead)
        } else {
            made = self.conceal(Self.block)
        }
        self.queue.forget(before: self.read)
        return self.popBlock(made: made, played: played)
    }
}

// MARK: A tick
extension JitterBuffer {
    /// Begins to play when queued audio is due within this tick. Returns the samples of the tick before it.
    private mutating func begin(_ now: Int64) -> Int? {
        guard let base = self.timing.base, let first = self.queue.first(from: self.read) else { return nil }
        let due = now - base - self.timing.target
        guard first < due + Int64(Self.block) else { return nil }
        if first < due, now - base - first > self.timing.latest {
            self.skip(to: min(due, self.queue.end))
            guard self.read < self.queue.end else { return nil }
        } else {
            // Audio that is late for the target, but not too late, is played from its start. Playback catches up later.
            self.read = first
        }
        self.isPlaying = true
        let lead = max(0, first - due)
        self.tally.delayMs = Double(max(0, now - self.read + lead - base)) / 48
        return Int(lead)
    }

    /// Skips audio that is too far behind the target.
    private mutating func skipExcess(_ now: Int64) {
        guard let base = self.timing.base else { return }
        let due = now - base - self.timing.target
        if due - self.read > Self.excess { self.skip(to: min(due, self.queue.end - Int64(Self.block))) }
        self.tally.delayMs = Double(max(0, now - self.read - base)) / 48
    }

    /// Chooses how many samples more or fewer than 1,024 to play in this tick.
    private mutating func chooseRate(_ now: Int64) {
        guard let base = self.timing.base, !self.isBroken else {
            self.rate = 0
            return
        }
        let excess = now - self.read - base - self.timing.target
        let isQuiet = self.isQuiet
        var wanted: Int64 = 0
        self.waited = excess > Self.tolerance ? self.waited + 1 : 0
        if isQuiet, excess > Self.tolerance, self.shortenPause(by: excess) { return }
        // Corrects until little is left; otherwise the correction would start again and again at the threshold.
        if excess > 0 {
            let isEngaged = self.rate > 0 && excess > Self.shortage
            if isEngaged || self.waited > Self.patience || excess > Self.urgent {
                wanted = max(1, (excess / 24).clamped(to: Self.correction))
            }
        } else if isQuiet {
            if excess < -Self.shortage { wanted = excess.clamped(to: Self.quietCorrection) }
        } else if excess < (self.rate < 0 ? 0 : -Self.tolerance) {
            wanted = min(-1, (excess / 16).clamped(to: Self.correction))
        }
        if !isQuiet {
            // One sample more or fewer per tick: the pitch slides, it does not jump. A pause's correction ends with the pause.
            let before = abs(self.rate) > Self.correction ? 0 : self.rate
            wanted = max(before - 1, min(before + 1, wanted))
        }
        let (start, end) = (self.read - Int64(Interpolator.reach), self.read + Int64(Self.block) + wanted + Int64(Interpolator.reach))
        self.rate = wanted != 0 && self.queue.isWhole(start..<end) ? wanted : 0
    }

    private var isQuiet: Bool { self.isQuiet(Int64(Self.block) + Self.quietCorrection) }

    /// Whether this many samples are available and all belong to a pause.
    private func isQuiet(_ count: Int64) -> Bool {
        let most = min(max(self.peak * Self.pauseBelowVoice, Self.quiet.lowerBound), Self.quiet.upperBound)
        return self.queue.withSamples(self.read..<(self.read + count)) { !$0.isEmpty && Loudness.isWithin($0, most) }
    }

    /// Skips samples of a pause, if the pause is longer than that.
    private mutating func shortenPause(by count: Int64) -> Bool {
        let end = self.read + count + Int64(Self.block)
        guard self.queue.isWhole(self.read..<end), self.isQuiet(count + Int64(Self.block)) else { return false }
        self.joint = self.read
        self.read += count
        self.tally.corrected += count
        self.waited = 0
        self.rate = 0
        return true
    }

    private mutating func playAtRate() -> (made: Int, played: Int) {
        let reach = Int64(Interpolator.reach)
        let next = self.read + Int64(Self.block) + self.rate
        let (queue, range) = (self.queue, (self.read - reach)..<(next + reach))
        self.line.append(Self.block) { target in
            let block = UnsafeMutableBufferPointer(start: target, count: Self.block)
            queue.withSamples(range) { Interpolator.fill(block, from: $0) }
        }
        self.read = next
        self.tally.corrected += abs(self.rate)
        return (0, Self.block)
    }

    /// Plays queued audio unchanged, and conceals the holes.
    private mutating func play(after lead: Int) -> (made: Int, played: Int) {
        var (made, played, left) = (lead > 0 ? self.conceal(lead) : 0, 0, Self.block - lead)
        while left > 0 {
            guard let piece = self.queue.piece(at: self.read) else {
                self.tally.underruns += 1
                self.isPlaying = false
                return (made + self.conceal(left), played)
            }
            let count = Int(min(Int64(left), piece.end - self.read))
            if piece.isAudio {
                self.copy(count)
                played += count
            } else {
                made += self.conceal(count)
            }
            self.read += Int64(count)
            left -= count
        }
        return (made, played)
    }

    private mutating func copy(_ count: Int) {
        let (queue, range) = (self.queue, self.read..<(self.read + Int64(count)))
        let fade = !self.isBroken ? 0 : min(count, self.concealer.isAudible ? Self.crossfade : Self.fadeIn)
        let joined = min(count, self.joint == nil ? 0 : Self.crossfade)
        let before = self.joint.map { $0..<($0 + Int64(joined)) } ?? 0..<0
        self.joint = nil
        var concealer = self.concealer
        self.line.append(count) { target in
            queue.withSamples(range) { if let source = $0.baseAddress { target.update(from: source, count: $0.count) } }
            queue.withSamples(before) { samples in
                for index in samples.indices {
                    let weight = Float(index + 1) / Float(joined + 1)
                    target[index] = target[index] * weight + samples[index] * (1 - weight)
                }
            }
            for index in 0..<fade {
                let weight = Float(index + 1) / Float(fade + 1)
                target[index] = target[index] * weight + concealer.next() * (1 - weight)
            }
        }
        self.concealer = concealer
        self.isBroken = false
    }

    /// Synthesizes samples; returns how many of them are audible.
    private mutating func conceal(_ count: Int) -> Int {
        self.joint = nil
        self.breakOff()
        self.rate = 0
        var audible = 0
        var concealer = self.concealer
        self.line.append(count) { target in
            while audible < count, concealer.isAudible {
                target[audible] = concealer.next()
                audible += 1
            }
            (target + audible).update(repeating: 0, count: count - audible)
        }
        self.concealer = concealer
        self.tally.concealed += Int64(audible)
        return audible
    }

    private mutating func popBlock(made: Int, played: Int) -> TalkBlock {
        self.tally.played += Int64(played)
        let samples = self.line.popBlock()
        self.peak = max(self.peak * Self.peakRelease, played > 0 ? Loudness.measure(samples).peak : 0)
        // Digital silence counts as silence, like a talker who sends nothing.
        if Loudness.isWithin(samples, 0) { return .silence }
        return TalkBlock(samples: samples, kind: made > 0 ? .concealed : .played)
    }

    /// Skips to a later position.
    private mutating func skip(to position: Int64) {
        guard position > self.read else { return }
        self.tally.dropped += self.queue.audio(in: self.read..<position)
        self.read = position
        if self.isPlaying { self.breakOff() }
    }

    private mutating func stop() {
        self.breakOff()
        self.rate = 0
        self.isPlaying = false
    }

    /// Ends continuity: the next audio is faded in over the continuation of the last one.
    private mutating func breakOff() {
        guard !self.isBroken else { return }
        self.isBroken = true
        let line = self.line
        line.withPast { self.concealer.begin(after: $0) }
    }

    /// Makes samples suitable for mixing: NaN becomes 0, values beyond ``loudest`` are clamped.
    private static func tame(_ samples: inout [Float]) {
        guard !Loudness.isWithin(samples, Self.loudest) else { return }
        for index in samples.indices where !(abs(samples[index]) <= Self.loudest) {
            samples[index] = samples[index].isNaN ? 0 : samples[index] < 0 ? -Self.loudest : Self.loudest
        }
    }
}

extension Int64 {
    /// Within ± `most`.
    fileprivate func clamped(to most: Int64) -> Int64 { Swift.max(-most, Swift.min(most, self)) }
}
