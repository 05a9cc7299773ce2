package import FFmpeg
package import NIOCore

/// A signal coded in runs of 1,024 samples. Each run has the moment at which a device could send it. The signal maps an index to its
/// sample. One thread only.
package final class CodedVoice {
    package struct Run {
        /// The run's first sample, as an index of the signal.
        package let position: Int64
        /// Seconds after the start at which the run is sent: when its last sample was recorded, plus its delay.
        package let due: Double
        package let message: ByteBuffer

        package var timestamp: UInt32 { UInt32(max(0, self.position) * 1_000 / 48_000) }
    }

    package let header: ByteBuffer
    private let encoder: AudioEncoder
    private let blocks: Int
    private let jitterMs: Double
    private let isLost: (Int64) -> Bool
    private let signal: (Int) -> Float
    private var block = 0
    private var random: UInt64
    private var last = 0.0
    private var waiting: ArraySlice<Run> = []

    /// Without `seconds` the voice has no end. `jitterMs` is the largest extra delay of a run. Runs for which `losing` returns true are
    /// left out.
    package init(
        _ codec: AudioEncoder.Codec = .aac, seconds: Double? = nil, jitterMs: Double = 0, seed: UInt64 = 1,
        losing: @escaping (Int64) -> Bool = { _ in false }, _ signal: @escaping (Int) -> Float
    ) throws {
        self.encoder = try AudioEncoder(codec: codec, sampleRate: 48_000, channels: 1, bitRate: 64_000)
        self.header = self.encoder.sequenceMessage
        self.blocks = seconds.map { Int($0 * 48_000 / 1_024) } ?? .max
        self.jitterMs = jitterMs
        self.random = seed
        self.isLost = losing
        self.signal = signal
    }

    package func next() throws -> Run? {
        while self.waiting.isEmpty {
            guard self.block < self.blocks else { return nil }
            let samples = (0..<1_024).map { self.signal(self.block * 1_024 + $0) }
            self.block += 1
            for run in try self.encoder.encode(PCM(sampleRate: 48_000, planes: [samples])) {
                self.random = self.random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                let delay = self.jitterMs / 1_000 * Double(self.random >> 40) / Double(1 << 24)
                self.last = max(self.last, Double(self.block * 1_024) / 48_000 + delay)
                if self.isLost(run.position / 1_024) { continue }
                self.waiting.append(Run(position: run.position, due: self.last, message: self.encoder.message(run)))
            }
        }
        return self.waiting.popFirst()
    }

    /// Returns all remaining runs. Only for a voice that ends.
    package func all() throws -> [Run] {
        var runs: [Run] = []
        while let run = try self.next() { runs.append(run) }
        return runs
    }
}
