import Talk

extension FuzzTarget {
    /// Pushes a talker's runs, with any timestamps at any time, into the jitter buffer. It yields whole blocks and keeps its bounds.
    static let jitter = FuzzTarget("jitter", maxLength: 256, timeoutSeconds: 10) { input in
        var input = input
        var buffer = JitterBuffer()
        var nowUs: Int64 = 0
        var stampMs: Int64 = 0
        while !input.isEmpty {
            let choice = input.byte()
            let step = Int64(Int16(bitPattern: input.word()))
            switch choice & 7 {
            case 0...2:
                stampMs &+= step
                buffer.push(samples(choice), timestampMs: stampMs, arrivalUs: nowUs)
            case 3: buffer.leaveOut(Int(step), timestampMs: stampMs, arrivalUs: nowUs)
            case 4: stampMs = step < 0 ? .min : .max
            case 5: buffer.keep(ms: Int(step) * 8)
            case 6: buffer.reset()
            default: break
            }
            nowUs += choice & 8 == 0 ? 21_333 : step * 100
            let block = buffer.pull(nowUs: nowUs)
            expect(block.samples.count == TalkFormat.blockSamples, "a block of \(block.samples.count) samples")
            let counters = buffer.counters
            // The buffer keeps at most a minute.
            expect((0...61_000).contains(counters.depthMs) && counters.targetMs.isFinite, "\(counters)")
        }
    }
}

/// The samples of a run: normal, very loud, infinite or NaN.
private func samples(_ choice: UInt8) -> [Float] {
    let sample: Float = [0.5, 1e30, .infinity, .nan][Int(choice >> 4 & 3)]
    return Array(repeating: sample, count: [0, 1, 960, 1_024][Int(choice >> 6)])
}
