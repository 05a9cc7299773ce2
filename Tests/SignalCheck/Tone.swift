import Foundation

/// Sines, and where they are heard.
package enum Tone {
    /// A sine of this many Hz, a quarter of full scale or as given.
    package static func sine(_ frequency: Double, _ amplitude: Float = 0.25) -> @Sendable (Int) -> Float {
        { amplitude * Float(sin(2 * Double.pi * frequency * Double($0) / 48_000)) }
    }

    /// The tone's level in each tenth of a second, in dBFS, in ascending order. A buffer that adapts its depth bends a tone by up to a
    /// hundredth, which counts as the same tone.
    package static func levels(_ samples: [Float], _ frequency: Double) -> [Double] {
        Self.windows(samples, frequency).sorted()
    }

    /// The same in order of time, in windows of `count` samples.
    package static func windows(_ samples: [Float], _ frequency: Double, of count: Int = 4_800) -> [Double] {
        stride(from: 0, through: samples.count - count, by: count).map { start in
            let window = Array(samples[start..<(start + count)])
            return [0.99, 1, 1.01].map { Signal.level(window, frequency: frequency * $0) }.max() ?? -200
        }
    }

    /// Seconds in which a tone is heard, to a hundredth.
    package static func seconds(_ samples: [Float], _ frequency: Double) -> Double {
        Double(Self.windows(samples, frequency, of: 480).count { $0 > -20 }) / 100
    }
}
