import Relay
import Rooms
import Support

/// A stream to record: its place in a room, and who requested the recording.
struct RecordingSource: Equatable, Sendable {
    let path: StreamPath
    let roomID: RoomID?
    let slot: Int
    /// Started by an API call rather than by policy.
    let isByCall: Bool
}

/// Decides when recordings that failed or could not begin are tried again. A value without a clock, owned by ``Recordings``.
///
/// Times are milliseconds of the steady clock.
struct RecordingRetries {
    /// By stream path, like the properties below.
    private var waiting: NameTable<Waiting> = [:]
    /// Publishers that arrived while the name's previous recording was still being written: they start when it ends.
    private var next: NameTable<RecordingSource> = [:]
    /// Consecutive failures.
    private var failures: NameTable<Int> = [:]

    private struct Waiting {
        weak var stream: Relay.Stream?
        let source: RecordingSource
        let dueMs: Int64
    }

    /// Delay before the first retry; doubles after each failure, up to about a quarter of an hour.
    static let firstMs: Int64 = 30_000
    private static let mostDoublings = 5
    /// A recording that ran this long resets the delays when it fails.
    static let soundMs: Int64 = 120_000

    /// Whether the stream's recording will be tried again.
    func isWaiting(_ path: String) -> Bool { self.waiting[path] != nil }

    /// A recording could not begin.
    mutating func refused(_ source: RecordingSource, of stream: Relay.Stream, nowMs: Int64) {
        self.wait(source, of: stream, until: nowMs + Self.firstMs)
    }

    /// Waits for the name's previous recording, which is still being written; this one begins after it.
    mutating func queued(_ source: RecordingSource) { self.next[source.path.description] = source }

    mutating func began(_ path: String) {
        self.waiting[path] = nil
        self.next[path] = nil
    }

    /// Handles a recording that has ended, completely written, after `ranMs`. Returns the recording that begins in its place. Failures are retried,
    /// except of media that cannot be recorded.
    mutating func ended(
        _ source: RecordingSource, of stream: Relay.Stream, _ end: RecordingEnd, ranMs: Int64, nowMs: Int64
    ) -> RecordingSource? {
        let path = source.path.description
        let next = self.next.removeValue(forKey: path)
        let failures = ranMs >= Self.soundMs ? 0 : self.failures[path] ?? 0
        self.failures[path] = nil
        guard end.isFailure, end != .unsupportedMedia else { return end == .streamEnded ? next : nil }
        self.failures[path] = failures + 1
        let pauseMs = Self.firstMs << Int64(min(failures, Self.mostDoublings))
        self.wait(source, of: stream, until: nowMs + pauseMs)
        return nil
    }

    /// Gives up retries, for a call that stops the recording. Returns whether one was waiting.
    mutating func stopped(_ path: String) -> Bool {
        self.next[path] = nil
        return self.waiting.removeValue(forKey: path) != nil
    }

    /// Gives up a retry that the present policy no longer wants.
    mutating func unwanted(_ path: String) {
        if self.waiting[path]?.source.isByCall == false { self.waiting[path] = nil }
    }

    /// Removes and returns the due retries. If the name has a new stream by now, that begins by policy or by its own call.
    mutating func due(nowMs: Int64, find: (String) -> Relay.Stream?) -> [RecordingSource] {
        var due: [RecordingSource] = []
        for (path, waiting) in self.waiting where nowMs >= waiting.dueMs {
            self.waiting[path] = nil
            if let stream = waiting.stream, stream === find(path) {
                due.append(waiting.source)
            } else {
                self.failures[path] = nil
            }
        }
        return due
    }

    private mutating func wait(_ source: RecordingSource, of stream: Relay.Stream, until dueMs: Int64) {
        self.waiting[source.path.description] = Waiting(stream: stream, source: source, dueMs: dueMs)
    }
}
