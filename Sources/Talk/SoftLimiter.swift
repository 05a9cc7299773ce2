import LibC

/// Keeps a mix within full scale inaudibly. One per mix; a plain value.
///
/// It has two steps, neither of which looks ahead. First a gain follows the peaks: peaks above −6 dBFS are turned down along a soft knee
/// towards −1 dBFS in less than a millisecond, and released within a quarter of a second. Second, samples that are still too loud before
/// the gain has come down are bent towards full scale, which they never reach. Below −6 dBFS, with nothing louder just before, every sample
/// is unchanged.
package struct SoftLimiter: Sendable {
    /// −6 dBFS: quieter samples pass.
    package static let threshold: Float = 0.5
    /// −1 dBFS, at the end of the knee.
    private static let ceiling: Float = 0.9
    /// Samples over which a new gain is reached: 0.7 ms.
    private static let step = 32
    /// Steps of 0.7 ms for which a peak is held. Otherwise the gain would follow a low voice's waveform.
    private static let hold = 24
    /// Share of the peak that remains after a step.
    private static let release: Float = 0.994

    private var gain: Float = 1
    private var peak: Float = 0
    private var held = 0

    /// Whether quiet samples would pass unchanged.
    package var isIdle: Bool { self.gain == 1 && self.peak <= Self.threshold }

    /// Limits the samples that follow the last call's. The output is within ±1, whatever the input.
    package mutating func process(_ samples: inout [Float]) {
        if self.isIdle, Loudness.isWithin(samples, Self.threshold) { return }
        samples.withUnsafeMutableBufferPointer { samples in
            var start = 0
            while start < samples.count {
                let end = min(start + Self.step, samples.count)
                self.limit(UnsafeMutableBufferPointer(rebasing: samples[start..<end]))
                start = end
            }
        }
    }

    private mutating func limit(_ samples: UnsafeMutableBufferPointer<Float>) {
        var peak: Float = 0
        for index in samples.indices {
            if !samples[index].isFinite { samples[index] = 0 }
            peak = max(peak, abs(samples[index]))
        }
        if peak >= self.peak {
            self.peak = peak
            self.held = Self.hold
        } else if self.held > 0 {
            self.held -= 1
        } else {
            self.peak = max(peak, self.peak * Self.release)
        }
        let target = Self.wanted(self.peak)
        guard target < 1 || self.gain < 1 else { return }
        let slope = (target - self.gain) / Float(samples.count)
        var gain = self.gain
        for index in samples.indices {
            gain += slope
            samples[index] = Self.bend(samples[index] * gain)
        }
        self.gain = target
    }

    /// The gain that brings a peak onto the knee.
    private static func wanted(_ peak: Float) -> Float {
        guard peak > Self.threshold else { return 1 }
        let room = Self.ceiling - Self.threshold
        return (Self.threshold + room * (1 - expf((Self.threshold - peak) / room))) / peak
    }

    private static func bend(_ sample: Float) -> Float {
        let size = abs(sample)
        guard size > Self.ceiling else { return sample }
        let room = 1 - Self.ceiling
        let bent = Self.ceiling + room * tanhf((size - Self.ceiling) / room)
        return sample < 0 ? -bent : bent
    }
}
