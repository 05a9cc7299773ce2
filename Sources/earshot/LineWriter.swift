import Dispatch
import LibC
import NIOPosix
import Support
import Synchronization

/// Writes lines on its own thread, so that logging never waits for the reader. Any thread.
///
/// The backlog is bounded. Beyond the limit lines are dropped and counted, and a note reports the number once there is room again.
/// Lines keep their order and are never torn: each write holds as many whole lines as fit into PIPE_BUF, which a pipe accepts or
/// refuses as a whole; a longer line is written alone.
final class LineWriter: Sendable {
    struct Limits: Sendable {
        /// Limits for lines that are waiting or being written.
        var bytes = 1 << 20
        var lines = 4_096
    }

    /// The reason why lines were not written.
    enum Loss: Sendable, Equatable {
        case nobodyReads
        /// errno.
        case failed(CInt)

        var reason: String {
            switch self {
            case .nobodyReads: "because nobody read the log"
            case .failed(let code): "because the log could not be written: \(errorText(code))"
            }
        }
    }

    private struct State {
        /// Whole lines back to back, and the end of each.
        var bytes: [UInt8] = []
        var ends: [Int] = []
        /// Bytes and lines that the thread has taken but not written yet.
        var bytesInFlight = 0
        var linesInFlight = 0
        /// Rejects lines until half of the backlog is written. Otherwise each written line would admit one more, with a note of its own.
        var isFull = false
        /// Lines dropped since the last note.
        var dropped = 0
        /// Whether the thread waits for the semaphore.
        var isIdle = false
        var hasThread = false
        /// Bytes handled so far, written or lost.
        var progress: UInt64 = 0

        var isEmpty: Bool { self.ends.isEmpty && self.linesInFlight == 0 && self.dropped == 0 }
    }

    private let descriptor: CInt
    private let limits: Limits
    /// Makes the line that reports unwritten lines.
    private let note: @Sendable (_ lines: Int, Loss) -> String
    private let state = Mutex(State())
    private let wake = DispatchSemaphore(value: 0)
    private let pool = NIOThreadPool(numberOfThreads: 1)

    /// A pipe accepts or refuses up to this many bytes as a whole (pipe(7)).
    static let pipeBuffer = 4_096
    /// The pause after a failed write.
    private static let pauseMs: Int32 = 200

    init(descriptor: CInt, limits: Limits = Limits(), note: @escaping @Sendable (_ lines: Int, Loss) -> String) {
        self.descriptor = descriptor
        self.limits = limits
        self.note = note
    }

    /// Queues a line with its newline, or several lines that belong together. Never waits.
    func write(_ line: String) {
        var line = line
        let (starts, wakes) = line.withUTF8 { bytes in
            self.state.withLock { state -> (Bool, Bool) in
                let lines = state.ends.count + state.linesInFlight
                let isRoom = lines < self.limits.lines && state.bytes.count + state.bytesInFlight + bytes.count <= self.limits.bytes
                guard isRoom, !state.isFull else {
                    state.isFull = true
                    state.dropped += 1
                    LogLoss.lines.add(1, ordering: .relaxed)
                    return (false, false)
                }
                state.bytes.append(contentsOf: bytes)
                state.ends.append(state.bytes.count)
                defer {
                    state.hasThread = true
                    state.isIdle = false
                }
                return (!state.hasThread, state.isIdle)
            }
        }
        if starts {
            self.pool.start()
            self.pool.submit { _ in self.run() }
        }
        if wakes { self.wake.signal() }
    }

    /// Whether new lines are accepted rather than dropped.
    var acceptsLines: Bool { self.state.withLock { !$0.isFull } }

    /// Waits until all lines are written. Gives up after `patience` without progress, or after `limit`. For the end of the process.
    func flush(patience: Duration = .milliseconds(200), limit: Duration = .seconds(2)) {
        let clock = ContinuousClock()
        let begun = clock.now
        var (moved, progress) = (begun, UInt64.max)
        while true {
            let (isEmpty, now) = self.state.withLock { ($0.isEmpty, $0.progress) }
            if isEmpty { return }
            if now != progress { (moved, progress) = (clock.now, now) }
            guard moved.duration(to: clock.now) < patience, begun.duration(to: clock.now) < limit else { return }
            usleep(2_000)
        }
    }

    // MARK: - The thread

    private func run() {
        var bytes: [UInt8] = []
        var ends: [Int] = []
        var failure: (lines: Int, code: CInt)?
        // Whether the descriptor's last line was cut off.
        var isTorn = false
        while true {
            bytes.removeAll(keepingCapacity: bytes.capacity <= 64 << 10)
            ends.removeAll(keepingCapacity: true)
            guard self.popLines(&bytes, &ends) else {
                self.wake.wait()
                continue
            }
            var first = 0
            var start = 0
            while first < ends.count {
                // As many lines as fit into one write, but at least one.
                var next = first + 1
                while next < ends.count, ends[next] - start <= Self.pipeBuffer { next += 1 }
                let end = ends[next - 1]
                var code: CInt = 0
                if let lost = failure {
                    code = self.put(Array(self.note(lost.lines, .failed(lost.code)).utf8)[...], &isTorn)
                    if code == 0 { failure = nil }
                }
                if code == 0 { code = self.put(bytes[start..<end], &isTorn) }
                if code != 0 {
                    failure = ((failure?.lines ?? 0) + next - first, code)
                    LogLoss.lines.add(UInt64(next - first), ordering: .relaxed)
                }
                self.done(bytes: end - start, lines: next - first)
                (first, start) = (next, end)
                if code != 0 { _ = poll(nil, 0, Self.pauseMs) }
            }
        }
    }

    /// Takes the waiting lines; returns false when there are none.
    private func popLines(_ bytes: inout [UInt8], _ ends: inout [Int]) -> Bool {
        self.state.withLock { state in
            if state.isFull, state.ends.isEmpty { self.reportDropped(&state) }
            guard !state.ends.isEmpty else {
                state.isIdle = true
                return false
            }
            swap(&bytes, &state.bytes)
            swap(&ends, &state.ends)
            state.bytesInFlight = bytes.count
            state.linesInFlight = ends.count
            return true
        }
    }

    private func done(bytes: Int, lines: Int) {
        self.state.withLock { state in
            state.bytesInFlight -= bytes
            state.linesInFlight -= lines
            state.progress += UInt64(bytes)
            let isRoom =
                (state.ends.count + state.linesInFlight) * 2 <= self.limits.lines
                && (state.bytes.count + state.bytesInFlight) * 2 <= self.limits.bytes
            if state.isFull, isRoom { self.reportDropped(&state) }
        }
    }

    /// Queues the note in place of the dropped lines: after all lines accepted before them.
    private func reportDropped(_ state: inout State) {
        state.isFull = false
        state.bytes.append(contentsOf: self.note(state.dropped, .nobodyReads).utf8)
        state.ends.append(state.bytes.count)
        state.dropped = 0
    }

    /// Writes all bytes, however long that takes. Returns 0, or the errno of the failure.
    private func put(_ bytes: ArraySlice<UInt8>, _ isTorn: inout Bool) -> CInt {
        if isTorn {
            let (_, code) = self.putAll([UInt8(ascii: "\n")])
            guard code == 0 else { return code }
            isTorn = false
        }
        let (written, code) = self.putAll(bytes)
        if code != 0, written > 0 { isTorn = true }
        return code
    }

    private func putAll(_ bytes: ArraySlice<UInt8>) -> (written: Int, code: CInt) {
        bytes.withUnsafeBytes { buffer in
            var written = 0
            while written < buffer.count {
                let count = LibC.write(self.descriptor, buffer.baseAddress.map { $0 + written }, buffer.count - written)
                if count >= 0 {
                    written += count
                    continue
                }
                switch errno {
                case EINTR: continue
                case EAGAIN:
                    // Another holder of the descriptor has made it non-blocking.
                    var wait = pollfd(fd: self.descriptor, events: Int16(POLLOUT), revents: 0)
                    _ = poll(&wait, 1, 1_000)
                case let code: return (written, code)
                }
            }
            return (written, 0)
        }
    }
}
