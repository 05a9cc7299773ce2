package import FFmpeg
import LinkTransport
import Media
import NIOCore
import Synchronization

/// One end of a room's talk channel over librtmp, for the talk commands.
package enum TalkLine {
    /// Milliseconds to connect and to be admitted.
    private static let patienceMs = 10_000

    private static func options() -> LinkOptions {
        var options = LinkOptions { _ in nil }
        options.connectTimeoutMs = self.patienceMs
        options.handshakeTimeoutMs = self.patienceMs
        options.bufferMs = 100
        // A person is waiting: try once.
        options.reconnect.maxAttempts = 1
        return options
    }

    private static func url(_ text: String) throws -> LinkURL {
        do throws(LinkError) { return try LinkURL(parsing: text) } catch {
            throw CommandFailure(.failed, "the server's talk address cannot be used: \(error)")
        }
    }

    /// Waits until `isReady`, for `seconds` or 20 s at most; false on a timeout. Throws the reason when the link fails.
    private static func wait(for task: LinkClient, seconds: Double? = nil, until isReady: (LinkClient) -> Bool) async throws -> Bool {
        let end = ContinuousClock.now + .seconds(min(seconds ?? .infinity, Double(2 * self.patienceMs) / 1_000))
        while !isReady(task) {
            if case .failed(let reason, _) = task.state { throw self.refused(task.status.lastError.map { "\($0)" } ?? reason) }
            guard ContinuousClock.now < end else { return false }
            try await Task.sleep(for: .milliseconds(20))
        }
        return true
    }

    /// Maps the server's reason, whose code stands in brackets before the text.
    private static func refused(_ reason: String) -> CommandFailure {
        let inState = ["room_closed", "no_room", "forbidden", "name_taken", "flapping", "too_many_publishers", "too_many_viewers"]
        let status: ExitStatus =
            inState.contains { reason.contains("[\($0)]") } ? .conflict : reason.contains("[credential_") ? .unauthorised : .failed
        // Drop the advice to check the address: the user did not type one.
        let words = reason.split(separator: "; check app").first.map(String.init) ?? reason
        return CommandFailure(status, "the talk channel refused this: \(DisplayText.escaped(words))")
    }

    // MARK: Listening

    /// Writes the channel's sound until the time is over or the channel ends. Returns the seconds written.
    package static func listen(_ text: String, to writer: sending WAVWriter, seconds: Double?) async throws -> Double {
        let ear = Ear(writer)
        let task = LinkClient.pull(try self.url(text), options: self.options()) { ear.receive($0) }
        task.start()
        defer { task.stop() }
        guard try await self.wait(for: task, seconds: seconds, until: { _ in ear.hasBegun || ear.end != nil }) else {
            _ = ear.finish()
            throw CommandFailure(.failed, "nothing was heard; does anybody speak there?")
        }
        let limit = seconds.map { Int($0 * 48_000) } ?? .max
        while ear.samples < limit, ear.end == nil { try await Task.sleep(for: .milliseconds(20)) }
        return Double(ear.finish()) / 48_000
    }

    /// Decodes the received audio and writes it, on the link's thread. The lock lets the command read the state.
    private final class Ear: Sendable {
        private struct State: ~Copyable {
            package let writer: WAVWriter
            package var decoder = TrackDecoder()
            package var samples = 0
            package var end: String?
            package var isFinished = false
        }

        private let state: Mutex<State>

        package init(_ writer: sending WAVWriter) { self.state = Mutex(State(writer: writer)) }

        package var hasBegun: Bool { self.state.withLock { $0.samples > 0 } }
        package var samples: Int { self.state.withLock { $0.samples } }
        package var end: String? { self.state.withLock { $0.end } }

        /// Finishes the file; returns all samples written.
        package func finish() -> Int {
            self.state.withLock { state in
                if !state.isFinished {
                    state.isFinished = true
                    do throws(FFmpegError) { try state.writer.finish() } catch { state.end = "\(error)" }
                }
                return state.samples
            }
        }

        package func receive(_ event: PullEvent) {
            self.state.withLock { state in
                guard !state.isFinished else { return }
                switch event {
                case .started: break
                case .ended(let error): state.end = "\(error)"
                case .frame(let frame):
                    do throws(FFmpegError) { try Self.write(frame, &state) } catch { state.end = "\(error)" }
                }
            }
        }

        private static func write(_ frame: Frame, _ state: inout State) throws(FFmpegError) {
            for pcm in try state.decoder.decode(frame) {
                try state.writer.write(pcm)
                state.samples += pcm.count
            }
        }
    }

    // MARK: Speaking

    /// Sends the file in real time; returns the seconds sent. `atEnd` runs before the publisher disconnects.
    package static func speak(_ text: String, from reader: AudioFileReader, atEnd: (_ frames: Int) async throws -> Void) async throws
        -> Double
    {
        let encoder: AudioEncoder
        do throws(FFmpegError) { encoder = try AudioEncoder(sampleRate: 48_000, channels: 1, bitRate: 64_000) } catch {
            throw CommandFailure(.failed, "cannot encode: \(error)")
        }
        var options = self.options()
        options.timestampsFromZero = false
        let task = LinkClient.push(try self.url(text), options: options)
        defer { task.stop() }
        task.offer(try self.frame(encoder.sequenceMessage, 0))
        task.start()
        guard try await self.wait(for: task, until: { $0.state == .running }) else {
            throw CommandFailure(.unreachable, "the talk channel does not answer")
        }
        let resampler = Resampler(channels: 1)
        let start = ContinuousClock.now
        var (spoken, frames) = (0, 0)
        do {
            while let pcm = try reader.next() {
                let pcm = try resampler.convert(pcm)
                for run in try encoder.encode(pcm) {
                    // Send a run once its last sample would have been spoken. It lasts 21 ms.
                    let saidMs = max(0, run.position) * 1_000 / 48_000
                    try await Task.sleep(until: start + .milliseconds(saidMs + 21), clock: .continuous)
                    task.offer(try self.frame(encoder.message(run), saidMs))
                    frames += 1
                }
                spoken += pcm.count
                if case .failed(let reason, _) = task.state { throw self.refused(task.status.lastError.map { "\($0)" } ?? reason) }
            }
        } catch let error as FFmpegError {
            throw CommandFailure(.failed, "the file cannot be read to its end: \(error)")
        }
        // Let sent frames arrive before the goodbye.
        try await Task.sleep(for: .milliseconds(200))
        try await atEnd(frames)
        return Double(spoken) / 48_000
    }

    private static func frame(_ message: ByteBuffer, _ ms: Int64) throws -> Frame {
        try Frame(kind: .audio, timestamp: ms, payload: message)
    }
}
