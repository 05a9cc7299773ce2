import FFmpeg
import Media
import NIOCore
import RTMP
import Relay

/// A signal coded in runs of 1,024 samples. Each run has the moment at which a device could send it. The signal maps an index to its
/// sample. One thread only.
final class CodedVoice {
    struct Run {
        /// The run's first sample, as an index of the signal.
        let position: Int64
        /// Seconds after the start at which the run is sent: when its last sample was recorded, plus its delay.
        let due: Double
        let message: ByteBuffer

        var timestamp: UInt32 { UInt32(max(0, self.position) * 1_000 / 48_000) }
    }

    let header: ByteBuffer
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
    init(
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

    func next() throws -> Run? {
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
    func all() throws -> [Run] {
        var runs: [Run] = []
        while let run = try self.next() { runs.append(run) }
        return runs
    }
}

/// Sends a signal as a phone would, in AAC-LC or Opus: each run once its samples are recorded, from its own thread.
struct Microphone: Sendable {
    struct Sent: Sendable {
        /// The run's first sample, as an index of the signal.
        let position: Int64
        /// The time at which the system accepted it.
        let at: ContinuousClock.Instant
    }

    let sent = LockedList<Sent>()
    private let client: RawClient
    private let streamID: UInt32
    private let codec: AudioEncoder.Codec

    init(_ client: RawClient, on streamID: UInt32 = 1, codec: AudioEncoder.Codec = .aac) {
        self.client = client
        self.streamID = streamID
        self.codec = codec
    }

    /// Speaks for this many seconds. If something else must happen meanwhile, use ``speaking(jitterMs:losing:_:_:)``.
    @discardableResult
    func speak(
        seconds: Double, jitterMs: Double = 0, _ signal: @escaping @Sendable (Int) -> Float
    ) async throws -> PacedSender.Lateness {
        try await self.start(seconds: seconds, jitterMs: jitterMs, losing: { _ in false }, signal).ended()
    }

    /// Speaks until the body returns, however long that takes on a busy machine.
    func speaking<Result>(
        jitterMs: Double = 0, losing: @escaping @Sendable (Int64) -> Bool = { _ in false }, _ signal: @escaping @Sendable (Int) -> Float,
        _ body: () async throws -> Result
    ) async throws -> Result {
        let sender = self.start(seconds: nil, jitterMs: jitterMs, losing: losing, signal)
        let outcome: Swift.Result<Result, any Error>
        do {
            outcome = .success(try await body())
        } catch {
            outcome = .failure(error)
        }
        sender.stop()
        let lateness = try await sender.ended()
        do {
            return try outcome.get()
        } catch {
            throw TimedOut(description: "\(error); \(lateness)")
        }
    }

    /// Sends `seconds` of the signal in one burst.
    func speakAtOnce(seconds: Double, _ signal: @escaping @Sendable (Int) -> Float) throws {
        let voice = try CodedVoice(self.codec, seconds: seconds, signal)
        let runs = try voice.all().map { self.message($0.message, $0.timestamp) }
        self.client.send([self.message(voice.header, 0)] + runs)
    }

    private func message(_ payload: ByteBuffer, _ timestamp: UInt32) -> Message {
        Message(type: .audio, streamID: self.streamID, timestamp: timestamp, payload: payload)
    }

    private func start(
        seconds: Double?, jitterMs: Double, losing: @escaping @Sendable (Int64) -> Bool, _ signal: @escaping @Sendable (Int) -> Float
    ) -> PacedSender {
        PacedSender {
            let voice = try CodedVoice(self.codec, seconds: seconds, jitterMs: jitterMs, losing: losing, signal)
            self.client.send(self.message(voice.header, 0))
            return {
                try voice.next().map { run in
                    PacedSender.Step(due: .seconds(run.due)) { _ in
                        self.client.send(self.message(run.message, run.timestamp))
                        self.client.channel.eventLoop.execute { self.sent.append(Sent(position: run.position, at: .now)) }
                    }
                }
            }
        }
    }
}
