import Foundation
import SignalCheck
import Testing

/// Tests the checks of `Signal` with signals whose answer is known.
@Suite struct SignalCheckTests {
    static func tone(_ frequency: Double, _ amplitude: Double, _ count: Int = 48_000) -> [Float] {
        (0..<count).map { Float(amplitude * sin(2 * Double.pi * frequency * Double($0) / 48_000)) }
    }

    @Test func levels() {
        for (amplitude, level) in [(1.0, 0.0), (0.5, -6.02), (0.001, -60)] {
            for frequency in [100.0, 440, 997.3, 8_000, 20_000] {
                #expect(abs(Signal.level(Self.tone(frequency, amplitude), frequency: frequency) - level) < 0.05)
            }
            #expect(abs(Signal.rms(Self.tone(440, amplitude)) - level + 3.01) < 0.05)
        }
        // The level ignores another tone, separates a sum, and is minimal for silence.
        #expect(Signal.level(Self.tone(440, 1), frequency: 600) < -100)
        let sum = zip(Self.tone(440, 0.5), Self.tone(450, 0.005)).map { $0 + $1 }
        #expect(abs(Signal.level(sum, frequency: 450) - -46.02) < 0.2)
        #expect(Signal.level([], frequency: 440) == -.infinity && Signal.level([0, 0, 0], frequency: 440) < -200)
    }

    @Test func silence() {
        let samples = Array(repeating: Float(0.1), count: 100) + Array(repeating: 0, count: 250) + [0.2] + Array(repeating: 1e-5, count: 90)
        #expect(Signal.longestSilence(samples) == 250 && Signal.longestSilence(samples, below: 0.15) == 350)
        #expect(Signal.longestSilence([]) == 0 && Signal.longestSilence([1, 1]) == 0)
    }

    @Test func clicks() {
        var samples = [Float](repeating: 0.01, count: 10_000)
        for index in [0, 3, 5_000, 5_479, 5_960, 9_999] { samples[index] = -0.5 }
        #expect(Signal.clicks(samples) == [0, 5_000, 5_960, 9_999])
        #expect(Signal.clicks(samples, threshold: 0.6).isEmpty)
        #expect(Signal.jumps(samples, over: 0.3).count == 10)
    }

    @Test func likeness() {
        var noise: [Float] = []
        var state: UInt64 = 7
        var smooth: Float = 0
        for _ in 0..<96_000 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            // Keeps low frequencies, as in voices.
            smooth += (Float(state >> 40) / Float(1 << 24) - 0.5 - smooth) / 8
            noise.append(smooth)
        }
        let late = Array(repeating: Float(0), count: 1_234) + noise.map { $0 / 3 }
        let matches = Signal.matches(noise, in: late, window: 24_000, lags: 0...4_800)
        #expect(matches.count == 4 && matches.allSatisfy { $0.lag == 1_234 && $0.value > 0.99 }, "\(matches)")
        // Each window has its own lag.
        let stretched = noise[0..<24_000] + Array(repeating: 0, count: 480) + noise[24_000...]
        #expect(Signal.matches(noise, in: Array(stretched), window: 24_000, lags: 0...960).map(\.lag) == [0, 480, 480, 480])
        // Another run does not match, and silence is not compared.
        #expect(Signal.matches(noise, in: noise.reversed(), window: 24_000, lags: 0...480).allSatisfy { $0.value < 0.5 })
        #expect(Signal.matches(Array(repeating: 0, count: 9_600), in: noise, window: 4_800, lags: 0...10).isEmpty)
    }
}
