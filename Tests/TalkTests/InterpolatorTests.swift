import Foundation
import Testing

@testable import Talk

/// Compares the interpolator with its formula: a sinc under a Blackman window over the 16 nearest samples.
@Suite struct InterpolatorTests {
    @Test(arguments: [1_008, 1_023, 1_024, 1_025, 1_040]) func everyTapCounts(_ span: Int) {
        let count = span + 2 * Interpolator.reach
        // No two samples are equal.
        let input = (0..<count).map { Float(sin(Double($0 * $0) * 0.37) * 0.8) }
        var output = [Float](repeating: 9, count: TalkFormat.blockSamples)
        output.withUnsafeMutableBufferPointer { output in input.withUnsafeBufferPointer { Interpolator.fill(output, from: $0) } }
        for index in 0..<TalkFormat.blockSamples {
            let position = Double(index) * Double(span) / Double(TalkFormat.blockSamples) + Double(Interpolator.reach)
            let first = Int(position.rounded(.down)) - 7
            var sum = 0.0, weights = 0.0
            for tap in first..<first + 16 {
                let distance = Double(tap) - position
                let angle = Double.pi * distance
                let window = abs(distance) >= 8 ? 0 : 0.42 + 0.5 * cos(angle / 8) + 0.08 * cos(angle / 4)
                let weight = (abs(distance) < 1e-9 ? 1 : sin(angle) / angle) * window
                sum += weight * Double(input[tap])
                weights += weight
            }
            #expect(abs(Double(output[index]) - sum / weights) < 2e-6, "\(index)")
        }
    }
}
