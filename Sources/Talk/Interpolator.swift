internal import Glibc

/// Plays a few samples more or less than 1,024 in the time of 1,024: a windowed sinc of 16 taps, 128 phases and straight lines between.
enum Interpolator {
    /// Samples before and behind those to be played that it reads, too.
    static let reach = 8
    private static let taps = 16
    private static let phases = 128

    /// `input` is ``reach`` samples, the samples to be played, and ``reach`` samples again; `output` is 1,024 samples.
    static func fill(_ output: UnsafeMutableBufferPointer<Float>, from input: UnsafeBufferPointer<Float>) {
        let count = output.count
        let span = input.count - 2 * Self.reach
        guard count == TalkFormat.blockSamples, span > 0 else { return }
        Self.table.withUnsafeBufferPointer { table in
            for index in 0..<count {
                // In 1,024ths of a sample, exactly: the next block starts where this one ends.
                let position = index * span
                let (whole, fraction) = (position >> 10, position & 1_023)
                let near = (fraction >> 3) * Self.taps
                let weight = Float(fraction & 7) / 8
                let first = whole + Self.reach - 7
                var (one, two, three, four) = (Float(0), Float(0), Float(0), Float(0))
                var tap = 0
                while tap < Self.taps {
                    let (a, b) = (near + tap, near + tap + Self.taps)
                    one += input[first + tap] * (table[a] + weight * (table[b] - table[a]))
                    two += input[first + tap + 1] * (table[a + 1] + weight * (table[b + 1] - table[a + 1]))
                    three += input[first + tap + 2] * (table[a + 2] + weight * (table[b + 2] - table[a + 2]))
                    four += input[first + tap + 3] * (table[a + 3] + weight * (table[b + 3] - table[a + 3]))
                    tap += 4
                }
                output[index] = (one + two) + (three + four)
            }
        }
    }

    /// For each phase, one more than ``phases``: the taps' weights, 1 in sum.
    private static let table: [Float] = (0...Self.phases).flatMap { phase -> [Float] in
        let fraction = Double(phase) / Double(Self.phases)
        let weights = (0..<Self.taps).map { tap -> Double in
            let distance = Double(tap - 7) - fraction
            guard abs(distance) > 1e-9 else { return 1 }
            guard abs(distance) < 8 else { return 0 }
            let angle = Double.pi * distance
            // Blackman's window.
            let window = 0.42 + 0.5 * cos(angle / 8) + 0.08 * cos(angle / 4)
            return sin(angle) / angle * window
        }
        let sum = weights.reduce(0, +)
        return weights.map { Float($0 / sum) }
    }
}
