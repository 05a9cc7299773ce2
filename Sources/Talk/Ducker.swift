/// Lowers a listener's mix by 18 dB while the listener's own microphone is active. Otherwise a loudspeaker's sound would come back through
/// it. One per mix that is ducked; a plain value.
package struct Ducker: Sendable {
    /// −18 dB.
    package static let gain: Float = 0.125893
    /// Ramps in samples: 40 ms down to ducked, 300 ms back up.
    private static let attack: Float = 1_920
    private static let release: Float = 14_400

    private var now: Float = 1

    /// Whether samples pass unchanged when the microphone is not active.
    package var isIdle: Bool { self.now == 1 }

    /// Applies the gain, with an even ramp, to the samples that follow the last call's.
    package mutating func process(_ samples: inout [Float], isActive: Bool) {
        guard isActive || !self.isIdle else { return }
        let span = 1 - Self.gain
        let target: Float = isActive ? Self.gain : 1
        let slope = isActive ? -span / Self.attack : span / Self.release
        var gain = self.now
        samples.withUnsafeMutableBufferPointer { samples in
            for index in samples.indices {
                if gain != target {
                    gain += slope
                    if isActive ? gain < target : gain > target { gain = target }
                }
                samples[index] *= gain
            }
        }
        self.now = gain
    }

    /// Advances by this many samples of a silent mix.
    package mutating func skip(_ count: Int, isActive: Bool) {
        let span = (1 - Self.gain) * Float(count)
        self.now = isActive ? max(Self.gain, self.now - span / Self.attack) : min(1, self.now + span / Self.release)
    }
}
