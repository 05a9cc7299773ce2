/// Loops over a block's samples, by plain pointers: without optimisation they take a tenth of the time of collections.
enum Loudness {
    /// Whether no sample is beyond ± `most`, nor no number at all.
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

    /// The sum of squares, and the largest sample without its sign.
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

    /// Adds samples to others.
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
