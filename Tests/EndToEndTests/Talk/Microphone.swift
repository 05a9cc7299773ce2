import FFmpeg
import Media
import NIOCore
import RTMP
import Relay
import ServerTestSupport
import TestSupport

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
