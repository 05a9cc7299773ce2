import Foundation

/// Measures runs of audio samples, with 1.0 at full scale.
package enum Signal {
    /// The level of the sine at a frequency in dBFS: 0 at full scale. It is one bin of a Fourier transform under a Hann window, which
    /// ignores frequencies more than a few hertz away (twice the sample rate divided by the count).
    package static func level(_ samples: [Float], frequency: Double, sampleRate: Double = 48_000) -> Double {
        guard samples.count > 1 else { return -.infinity }
        let turn = 2 * Double.pi * frequency / sampleRate
        let window = 2 * Double.pi / Double(samples.count)
        // Goertzel recursion.
        let factor = 2 * cos(turn)
        var (one, two) = (0.0, 0.0)
        // The Hann window's cosine, also by recursion.
        let (turnCosine, turnSine) = (cos(window), sin(window))
        var (cosine, sine) = (1.0, 0.0)
        samples.withUnsafeBufferPointer { samples in
            for sample in samples {
                let next = Double(sample) * (0.5 - 0.5 * cosine) + factor * one - two
                (two, one) = (one, next)
                (cosine, sine) = (cosine * turnCosine - sine * turnSine, sine * turnCosine + cosine * turnSine)
            }
        }
        let power = max(0, one * one + two * two - factor * one * two)
        // Half of the sine's amplitude falls on the bin, and the window passes half of that.
        return 20 * log10(max(1e-15, power.squareRoot() * 4 / Double(samples.count)))
    }

    /// The root mean square in dBFS: −3 for a sine at full scale.
    package static func rms(_ samples: some Sequence<Float>) -> Double {
        var (sum, count) = (0.0, 0)
        for sample in samples {
            sum += Double(sample) * Double(sample)
            count += 1
        }
        return 10 * log10(max(1e-30, sum / Double(max(1, count))))
    }

    /// The length in samples of the longest run that stays below `threshold`.
    package static func longestSilence(_ samples: [Float], below threshold: Float = 1e-4) -> Int {
        var (longest, current) = (0, 0)
        samples.withUnsafeBufferPointer { samples in
            for sample in samples {
                current = abs(sample) < threshold ? current + 1 : 0
                longest = max(longest, current)
            }
        }
        return longest
    }

    /// The indices at which a sample reaches `threshold` after at least `apart` samples below it.
    package static func clicks(_ samples: [Float], threshold: Float = 0.25, apart: Int = 480) -> [Int] {
        var clicks: [Int] = []
        var last = -apart
        samples.withUnsafeBufferPointer { samples in
            for index in samples.indices where abs(samples[index]) >= threshold {
                if index - last >= apart { clicks.append(index) }
                last = index
            }
        }
        return clicks
    }

    /// The indices at which neighbouring samples differ by more than `step`: splices, if the original has no such steps.
    package static func jumps(_ samples: [Float], over step: Float) -> [Int] {
        samples.withUnsafeBufferPointer { samples in
            guard samples.count > 1 else { return [] }
            return (1..<samples.count).filter { abs(samples[$0] - samples[$0 - 1]) > step }
        }
    }

    /// The similarity of a window to another run, at the lag that fits best.
    package struct Match: Sendable, Equatable {
        /// The start of the window, in samples.
        package var start: Int
        /// The delay of the other run, in samples.
        package var lag: Int
        /// Normalised cross-correlation, −1…1; 1 means equal up to a factor.
        package var value: Double
    }

    /// Compares each window of `original` with `heard` at the best lag of `lags`. Skips windows below `silence` (dBFS), which have nothing
    /// to compare.
    package static func matches(
        _ original: [Float], in heard: [Float], window: Int, lags: ClosedRange<Int>, silence: Double = -60
    ) -> [Match] {
        guard window > 0 else { return [] }
        return stride(from: 0, through: original.count - window, by: window).compactMap { start in
            guard self.rms(original[start..<(start + window)]) > silence else { return nil }
            // First tries every eighth lag with every eighth sample: most of a voice is below 1 kHz.
            let range = start..<(start + window)
            let coarse = self.best(original, heard, range, Array(stride(from: lags.lowerBound, through: lags.upperBound, by: 8)), 8)
            let near = max(lags.lowerBound, coarse.lag - 8)...max(lags.lowerBound, min(lags.upperBound, coarse.lag + 8))
            return self.best(original, heard, range, Array(near), 1)
        }
    }

    private static func best(_ original: [Float], _ heard: [Float], _ range: Range<Int>, _ lags: [Int], _ step: Int) -> Match {
        var best = Match(start: range.lowerBound, lag: lags.first ?? 0, value: -1)
        original.withUnsafeBufferPointer { original in
            heard.withUnsafeBufferPointer { heard in
                for lag in lags {
                    var (product, one, two) = (0.0 as Float, 1e-12 as Float, 1e-12 as Float)
                    var index = range.lowerBound
                    while index < range.upperBound {
                        let sample = original[index]
                        let other = index + lag
                        if other >= 0, other < heard.count {
                            product += sample * heard[other]
                            two += heard[other] * heard[other]
                        }
                        one += sample * sample
                        index += step
                    }
                    let value = Double(product) / Double(one * two).squareRoot()
                    if value > best.value { best = Match(start: range.lowerBound, lag: lag, value: value) }
                }
            }
        }
        return best
    }
}
