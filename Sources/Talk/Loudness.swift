/// Loops over a block's samples through plain pointers. Without optimisation they take a tenth of the time of collections.
enum Loudness {
    /// Whether all samples are within ± `most`; false for NaN.
    static func isWithin(_ samples: [Float], _ most: Float) -> Bool {
        samples.withUnsafeBufferPointer { Self.isWithin($0, most) }
    }

    static func isWithin(_ samples: UnsafeBufferPointer<Float>, _ most: Float) -> Bool {
        guard let start = samples.baseAddress else { return true }
        var index = 0
        while index < samples.count {
            let sample = start[index]
            // Written so that NaN is out of range.
            if !(sample <= most && sample >= -most) { return false }
            index &+= 1
        }
        return true
    }

    /// The sum of squares, and the largest magnitude.
    static func measure(_ samples: [Float]) -> (sum: Float, peak: Float) {
        samples.withUnsafeBufferPointer { samples in
            guard let start = samples.baseAddress else { return (0, 0) }
            var (sum, highest, lowest, index) = (Float(0), Float(0), Float(0), 0)
            while index < samples.count {
                let sample = start[index]
                sum += sample * sample
                if sample > highest { highest = sample }
                if sample < lowest { lowest = sample }
                index &+= 1
            }
            return (sum, max(highest, -lowest))
        }
    }

    /// Adds `samples` to `sum`, as far as both reach.
    static func add(_ samples: [Float], to sum: inout [Float]) {
        samples.withUnsafeBufferPointer { samples in
            sum.withUnsafeMutableBufferPointer { sum in
                guard let from = samples.baseAddress, let to = sum.baseAddress else { return }
                let count = min(samples.count, sum.count)
                var index = 0
                while index < count {
                    to[index] += from[index]
                    index &+= 1
                }
            }
        }
    }
}
