import LibC

/// Resamples a few samples more or fewer than 1,024 to 1,024. A windowed sinc of 16 taps, tabulated for each of the 1,024 positions between
/// two samples, which are all that occur.
enum Interpolator {
    /// Samples that it also reads before and after those to be played.
    static let reach = 8
    private static let taps = 16
    private static let phases = TalkFormat.blockSamples

    /// `input` is ``reach`` samples, the samples to be played, and ``reach`` samples again. `output` is 1,024 samples.
    static func fill(_ output: UnsafeMutableBufferPointer<Float>, from input: UnsafeBufferPointer<Float>) {
        let span = input.count - 2 * Self.reach
        guard output.count == Self.phases, span > 0, let target = output.baseAddress, let source = input.baseAddress else { return }
        Self.table.withUnsafeBufferPointer { table in
            guard let table = table.baseAddress else { return }
            for index in 0..<Self.phases {
                // In 1,024ths of a sample, exactly: the next block starts where this one ends.
                let position = index &* span
                // The first tap is 7 samples before the position.
                let x = source + (position >> 10) + 1
                let w = table + (position & 1_023) &* Self.taps
                // Plain pointers and no loop are fastest without optimisation; a debug build must mix in real time.
                let one = x[0] * w[0] + x[1] * w[1] + x[2] * w[2] + x[3] * w[3]
                let two = x[4] * w[4] + x[5] * w[5] + x[6] * w[6] + x[7] * w[7]
                let three = x[8] * w[8] + x[9] * w[9] + x[10] * w[10] + x[11] * w[11]
                let four = x[12] * w[12] + x[13] * w[13] + x[14] * w[14] + x[15] * w[15]
                target[index] = (one + two) + (three + four)
            }
        }
    }

    /// The taps' weights, phase by phase; they sum to 1.
    private static let table: [Float] = (0..<Self.phases).flatMap { phase -> [Float] in
        let weights = (0..<Self.taps).map { tap -> Double in
            let distance = Double(tap - 7) - Double(phase) / Double(Self.phases)
            guard abs(distance) > 1e-9 else { return 1 }
            guard abs(distance) < 8 else { return 0 }
            let angle = Double.pi * distance
            // Blackman's window.
            return sin(angle) / angle * (0.42 + 0.5 * cos(angle / 8) + 0.08 * cos(angle / 4))
        }
        let sum = weights.reduce(0, +)
        return weights.map { Float($0 / sum) }
    }
}
