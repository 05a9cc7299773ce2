import Foundation
import Talk

/// A talker, its network and the room's ticks in simulated time, with the input and the output.
struct Line {
    /// A run of samples in transit.
    struct Run {
        /// Arrival time on the room's clock, in microseconds.
        var arrivalUs: Int64
        var timestampMs: Int64
        /// The position in the talker's audio, in samples.
        var start: Int
        var count: Int
    }

    var buffer = JitterBuffer()
    var runs: [Run] = []
    /// All samples played.
    var output: [Float] = []
    var kinds: [TalkBlock.Kind] = []
    /// The delay in milliseconds after each tick.
    var delays: [Double] = []
    var depths: [Double] = []
    /// Whether ``output`` is kept.
    var keepsOutput = true

    /// Makes a talker that sends as it speaks.
    ///
    /// - Parameters:
    ///   - seconds: The length of its audio.
    ///   - run: Samples per run.
    ///   - speed: Seconds of audio per second of the room's clock.
    ///   - jitterMs: The largest delay of a run, evenly distributed; runs do not overtake one another.
    init(
        seconds: Double, run: Int = 1_024, speed: Double = 1, jitterMs: Double = 0, originMs: Int64 = 0, phaseUs: Int64 = 7_000,
        seed: UInt64 = 1
    ) {
        var random = Seeded(seed: seed)
        var last: Int64 = 0
        for start in stride(from: 0, to: Int(seconds * 48_000), by: run) {
            let sent = Double(start) / 48_000 / speed * 1_000_000
            let late = jitterMs > 0 ? Double.random(in: 0...jitterMs, using: &random) * 1_000 : 0
            last = max(last, phaseUs + Int64(sent + late))
            self.runs.append(Run(arrivalUs: last, timestampMs: originMs + Int64(start) / 48, start: start, count: run))
        }
    }

    /// Plays `signal`, which returns each of the talker's samples. Stops `extra` seconds after the last run, or after `stopAfter` seconds.
    mutating func play(extra: Double = 0.5, stopAfter: Double? = nil, _ signal: (Int) -> Float) {
        let end = stopAfter.map { Int64($0 * 1_000_000) } ?? (self.runs.last?.arrivalUs ?? 0) + Int64(extra * 1_000_000)
        var next = 0
        var tick: Int64 = 0
        while TalkFormat.microseconds(tick: tick) < end {
            let now = TalkFormat.microseconds(tick: tick)
            while next < self.runs.count, self.runs[next].arrivalUs <= now {
                let run = self.runs[next]
                self.buffer.push(
                    [Float](unsafeUninitializedCapacity: run.count) { samples, count in
                        for index in 0..<run.count { samples[index] = signal(run.start + index) }
                        count = run.count
                    }, timestampMs: run.timestampMs, arrivalUs: run.arrivalUs)
                next += 1
            }
            let block = self.buffer.pull(nowUs: now)
            if self.keepsOutput { self.output += block.samples }
            self.kinds.append(block.kind)
            self.delays.append(self.buffer.counters.delayMs)
            self.depths.append(self.buffer.counters.depthMs)
            tick += 1
        }
    }

    /// The time at which a sample is sent without jitter, in samples of the room's clock.
    func sent(_ sample: Int, phaseUs: Int64 = 7_000) -> Double { Double(sample) + Double(phaseUs) * 0.048 }

    /// The output between two times, in seconds.
    func output(_ from: Double, _ to: Double) -> [Float] {
        Array(self.output[min(self.output.count, Int(from * 48_000))..<min(self.output.count, Int(to * 48_000))])
    }
}

/// Signals that return each of a talker's samples.
enum Voice {
    static func tone(_ frequency: Double, _ amplitude: Float = 0.3) -> (Int) -> Float {
        { amplitude * Float(sin(2 * Double.pi * frequency * Double($0) / 48_000)) }
    }

    /// A signal like a voice: a buzz of sliding pitch through two moving resonances, in syllables with pauses.
    static func spoken(seconds: Int, seed: UInt64) -> [Float] {
        var random = Seeded(seed: seed)
        var (voice, phase, pitch, gain, goal) = ([Float](), 0.0, 120.0, 0.0, 1.0)
        var (formants, states) = ([500.0, 1_500], [[Double]](repeating: [0, 0], count: 2))
        for index in 0..<(seconds * 48_000) {
            if index % 9_600 == 0 {
                goal = random.chance(0.2) ? 0 : 1
                formants = [Double.random(in: 300...800, using: &random), Double.random(in: 900...2_300, using: &random)]
            }
            if index % 480 == 0 { pitch = min(220, max(90, pitch + Double.random(in: -4...4, using: &random))) }
            gain += (goal - gain) / 1_000
            phase += pitch / 48_000
            if phase >= 1 { phase -= 1 }
            let source = (phase < 0.1 ? 1 : -0.1) * gain
            var sample = 0.0
            for (number, frequency) in formants.enumerated() {
                // A resonance with two poles at radius 0.985.
                let next = source + 2 * 0.985 * cos(2 * Double.pi * frequency / 48_000) * states[number][0] - 0.970225 * states[number][1]
                states[number] = [next, states[number][0]]
                sample += next * 0.01
            }
            voice.append(Float(sample))
        }
        return voice
    }

    /// A click of 8 samples every `every` samples, over low noise that does not count as silence.
    static func clicks(every: Int, from: Int = 0) -> (Int) -> Float {
        { $0 >= from && $0 % every < 8 ? 0.9 : Float(($0 &* 7_919) % 101 - 50) * 1e-4 }
    }
}

extension [Double] {
    func percentile(_ fraction: Double) -> Double {
        let sorted = self.sorted()
        return sorted.isEmpty ? .nan : sorted[Swift.min(sorted.count - 1, Int(fraction * Double(sorted.count)))]
    }
}
