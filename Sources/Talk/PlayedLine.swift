/// The last 30 ms played, followed by the tick being made. Owned by a ``JitterBuffer``; a plain value of fixed size.
///
///     | past: 30 ms | made of this tick | still to be made |
struct PlayedLine: Sendable {
    private var samples = [Float](repeating: 0, count: Concealer.past + TalkFormat.blockSamples)
    /// Samples of this tick made so far.
    private(set) var made = 0

    /// Samples that still fit into the tick.
    var left: Int { TalkFormat.blockSamples - self.made }

    /// Appends the `count` samples that `body` writes; does nothing if they do not fit.
    mutating func append(_ count: Int, _ body: (UnsafeMutablePointer<Float>) -> Void) {
        guard count > 0, count <= self.left else { return }
        let start = Concealer.past + self.made
        self.samples.withUnsafeMutableBufferPointer { samples in
            if let base = samples.baseAddress { body(base + start) }
        }
        self.made += count
    }

    /// Lends the last ``Concealer/past`` samples played, the newest last.
    func withPast(_ body: (UnsafeBufferPointer<Float>) -> Void) {
        let end = Concealer.past + self.made
        self.samples.withUnsafeBufferPointer { body(UnsafeBufferPointer(rebasing: $0[(end - Concealer.past)..<end])) }
    }

    /// Returns the finished tick, which becomes the past.
    mutating func popBlock() -> [Float] {
        let block = Array(self.samples[Concealer.past...])
        self.samples.withUnsafeMutableBufferPointer { samples in
            guard let base = samples.baseAddress else { return }
            base.update(from: base + TalkFormat.blockSamples, count: Concealer.past)
        }
        self.made = 0
        return block
    }
}
