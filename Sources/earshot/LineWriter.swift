import Dispatch
import EarshotServer
import NIOPosix
import Synchronization

#if canImport(Glibc)
import Glibc
#endif

/// Writes lines to a descriptor on a thread of its own, so that nobody who logs ever waits for whoever reads. Any thread.
///
/// What waits to be written is bounded. Past the bound lines are dropped and counted, and a line says how many once there is room again.
/// Lines keep their order, and none is torn: as many whole ones as fit into PIPE_BUF go out in one write, which a pipe takes or refuses as
/// a whole; a longer one goes out alone.
final class LineWriter: Sendable {
    struct Limits: Sendable {
        /// That wait, or are being written.
        var bytes = 1 << 20
        var lines = 4_096
    }

    /// Why lines were not written.
    enum Loss: Sendable, Equatable {
        case nobodyReads
        /// errno.
        case failed(CInt)

        var reason: String {
            switch self {
            case .nobodyReads: "because nobody read the log"
            case .failed(let code): "because the log could not be written: \(String(cString: strerror(code)))"
            }
        }
    }

    private struct State {
        /// Whole lines, one after the other, and where each ends.
        var bytes: [UInt8] = []
        var ends: [Int] = []
        /// Taken by the thread, not written yet.
        var bytesInFlight = 0
        var linesInFlight = 0
        /// No line is taken until half of what waits is written: otherwise each one written would let one in, with a note of its own.
        var isFull = false
        /// Lines that have been dropped since the last note.
        var dropped = 0
        /// The thread waits for the semaphore.
        var isIdle = false
        var hasThread = false
        /// Of bytes, whatever became of them.
        var progress: UInt64 = 0

        var isEmpty: Bool { self.ends.isEmpty && self.linesInFlight == 0 && self.dropped == 0 }
    }

    private let descriptor: CInt
    private let limits: Limits
    /// Makes the line that tells of lines which were not written.
    private let note: @Sendable (_ lines: Int, Loss) -> String
    private let state = Mutex(State())
    private let wake = DispatchSemaphore(value: 0)
    private let pool = NIOThreadPool(numberOfThreads: 1)

    /// A pipe takes or refuses so many bytes as a whole (pipe(7)).
    static let pipeBuffer = 4_096
    /// After a write that failed, before the next.
    private static let pauseMs: Int32 = 200

    init(descriptor: CInt, limits: Limits = Limits(), note: @escaping @Sendable (_ lines: Int, Loss) -> String) {
        self.descriptor = descriptor
        self.limits = limits
        self.note = note
    }

    /// Takes a line with its newline, or several that belong together. Never waits.
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

    /// No line is being dropped.
    var isTaking: Bool { self.state.withLock { !$0.isFull } }

    /// Waits until all is written; gives up when nothing moves for `patience`, or after `limit`. For the end of the process.
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
        // The descriptor's last line was cut off.
        var isTorn = false
        while true {
            bytes.removeAll(keepingCapacity: bytes.capacity <= 64 << 10)
            ends.removeAll(keepingCapacity: true)
            guard self.take(&bytes, &ends) else {
                self.wake.wait()
                continue
            }
            var first = 0
            var start = 0
            while first < ends.count {
                // As many lines as one write may take, and one at least.
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

    /// Takes what waits; false when there is nothing.
    private func take(_ bytes: inout [UInt8], _ ends: inout [Int]) -> Bool {
        self.state.withLock { state in
            if state.isFull, state.ends.isEmpty { self.tellDropped(&state) }
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
            if state.isFull, isRoom { self.tellDropped(&state) }
        }
    }

    /// Where the lines would have been: behind what was taken before them.
    private func tellDropped(_ state: inout State) {
        state.isFull = false
        state.bytes.append(contentsOf: self.note(state.dropped, .nobodyReads).utf8)
        state.ends.append(state.bytes.count)
        state.dropped = 0
    }

    /// Writes it all, however long that takes. Returns errno, 0 when it is written.
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
                let count = systemWrite(self.descriptor, buffer.baseAddress.map { $0 + written }, buffer.count - written)
                if count >= 0 {
                    written += count
                    continue
                }
                switch errno {
                case EINTR: continue
                case EAGAIN:
                    // Somebody has made the descriptor non-blocking, which is not this process's alone.
                    var wait = pollfd(fd: self.descriptor, events: Int16(POLLOUT), revents: 0)
                    _ = poll(&wait, 1, 1_000)
                case let code: return (written, code)
                }
            }
            return (written, 0)
        }
    }
}

/// write(2), which a method's name hides.
private func systemWrite(_ descriptor: CInt, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int { write(descriptor, bytes, count) }
