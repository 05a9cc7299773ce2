import Dispatch
import FFmpeg
import Logging
import Relay
package import Rooms
import ServerConfiguration
import Streaming
import Support
import Synchronization

/// Records one stream: collects its frames, has them made into pieces, and writes these to files.
///
/// An actor with its own thread: a slow disk delays only this recording, which then loses frames beyond its mailbox's limit. Counts as a user of the
/// stream, but not as a viewer.
package actor Recorder {
    package nonisolated let task: RecordingTask
    package nonisolated let startedAt: Int64
    /// Started by an API call rather than by policy.
    nonisolated let isByCall: Bool
    private nonisolated let executor: QueueExecutor
    package nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    private let recordings: Recordings
    private let stream: Relay.Stream
    private let maker: FragmentPackager
    private let writer: RecordingWriter
    private var mailbox: FrameMailbox?
    private var timer: (any DispatchSourceTimer)?
    private var reportedProblems = 0
    private var reportedDrops: UInt64 = 0
    /// The reason why the recording ended; set once.
    private var ending: RecordingEnd?
    /// All files are closed.
    private var isDone = false
    /// The index has stored the end too.
    private var isReported = false
    private var waiters: [CheckedContinuation<Void, Never>] = []
    private let hasEnded = Atomic<Bool>(false)
    private let written = Mutex<(id: String, bytes: Int64)?>(nil)

    private struct Weak: Sendable {
        weak let recorder: Recorder?
    }

    private static let tickMs = 250
    /// Longest time that frames wait for one that completes a fragment.
    private static let holdMs: Int64 = 2_000

    /// `stream` is already acquired on the recorder's behalf.
    init(_ recordings: Recordings, _ stream: Relay.Stream, _ order: RecordingOrder, isByCall: Bool, means: RecordingWriter.Means) {
        self.recordings = recordings
        self.stream = stream
        self.task = order.task
        self.startedAt = order.startedAt
        self.isByCall = isByCall
        let executor = QueueExecutor(label: "record \(stream.path)")
        self.executor = executor
        let holder = Holder()
        self.writer = RecordingWriter(order, means) { id, isStored in
            executor.queue.async { holder.recorder?.assumeIsolated { $0.rowStored(id, isStored: isStored) } }
        }
        self.maker = FragmentPackager(.fmp4, for: self.writer, rebases: true)
        holder.recorder = self
    }

    /// Breaks the cycle between writer and recorder: the writer is made first but calls the recorder. Set once, before the first write.
    private final class Holder: @unchecked Sendable {
        weak var recorder: Recorder?
    }

    /// Starts receiving frames, beginning with those in `head`. Call once.
    func start(with head: RecordingHead?) {
        // A call may have stopped it already.
        guard self.ending == nil else {
            head?.drop()
            return
        }
        let me = Weak(recorder: self)
        let wake = { @Sendable [executor] in
            executor.queue.async { me.recorder?.assumeIsolated { $0.drain() } }
        }
        if let taken = head?.handOver(wake: wake) {
            self.mailbox = taken
        } else {
            let mailbox = FrameMailbox(
                on: self.stream.home.eventLoop, limitBytes: self.recordings.frameQueueBytes, ledger: self.recordings.ledger,
                wake: wake)
            self.mailbox = mailbox
            RelayLoop.add(mailbox, to: self.stream)
        }
        let timer = DispatchSource.makeTimerSource(queue: self.executor.queue)
        timer.schedule(deadline: .now() + .milliseconds(Self.tickMs), repeating: .milliseconds(Self.tickMs))
        timer.setEventHandler { me.recorder?.assumeIsolated { $0.tick() } }
        timer.resume()
        self.timer = timer
    }

    /// The recorder accepts no more frames; another may start.
    nonisolated var isOver: Bool { self.hasEnded.load(ordering: .relaxed) }

    /// The file being written, and its size in whole fragments, in bytes.
    nonisolated var position: (id: String, bytes: Int64)? { self.written.withLock { $0 } }

    // MARK: Frames

    private func drain() {
        while let mailbox = self.mailbox, self.ending == nil {
            self.writer.dropped = mailbox.dropped
            let batch = mailbox.drain()
            let nowMs = LoopSweeper.nowMs
            self.maker.receive(batch.items, nowMs: nowMs, wallMs: self.recordings.rooms.now - batch.idleMs)
            if batch.items.contains(where: { if case .ended = $0 { true } else { false } }) {
                self.finish(.streamEnded)
            } else if batch.isStalled {
                self.maker.closeStalled(nowMs: nowMs)
            }
            self.reportProblems()
            self.poll()
            var patience = self.maker.patience
            patience?.holdMs = Self.holdMs
            if mailbox.rest(patience) { break }
        }
    }

    private func tick() { self.poll() }

    private func rowStored(_ id: String, isStored: Bool) {
        self.writer.rowStored(id, isStored: isStored, nowMs: LoopSweeper.nowMs)
        self.poll()
    }

    /// Publishes the position and completes the end. Called after every write.
    private func poll() {
        let position = self.writer.position
        self.written.withLock { $0 = position }
        if let failure = self.writer.failure { self.finish(failure) }
        guard let ending = self.ending, self.writer.isIdle, !self.isDone else { return }
        self.isDone = true
        self.timer?.cancel()
        self.timer = nil
        let executor = self.executor
        // Queued behind the updates about its files.
        self.recordings.rooms.recordingTaskEnded(self.task, ending, wasStarted: self.writer.hasStarted) {
            executor.queue.async { self.assumeIsolated { $0.reported() } }
        }
        self.recordings.ended(self, ending, of: self.stream)
        // A stopping server does not wait for a store that accepts no writes.
        if ending == .serverShutdown { self.reported() }
    }

    private func reported() {
        guard !self.isReported else { return }
        self.isReported = true
        self.recordings.endStored()
        for waiter in self.waiters { waiter.resume() }
        self.waiters = []
    }

    private func reportProblems() {
        self.maker.leftOut.report(to: self.stream)
        for problem in self.maker.problems[self.reportedProblems...] {
            self.recordings.log.warning("Not recorded", metadata: ["stream": "\(self.task.path)", "problem": "\(problem)"])
        }
        self.reportedProblems = self.maker.problems.count
        guard self.writer.dropped > 0, self.reportedDrops == 0 else { return }
        self.reportedDrops = self.writer.dropped
        self.recordings.limits.hit(.frameQueue)
        self.recordings.log.warning(
            "The disk is too slow: a recording has gaps",
            metadata: [
                "stream": "\(self.task.path)", "frames": "\(self.reportedDrops)",
                "limit": "\(FrameMailbox.words(self.recordings.frameQueueBytes))",
            ])
    }

    // MARK: The end

    /// Writes the frames received so far and closes the file. Returns once the index has stored the end.
    func stop(_ end: RecordingEnd) async {
        self.drain()
        self.finish(end)
        self.poll()
        guard !self.isReported else { return }
        await withCheckedContinuation { self.waiters.append($0) }
    }

    private func finish(_ end: RecordingEnd) {
        guard self.ending == nil else { return }
        self.maker.finish(nowMs: LoopSweeper.nowMs)
        var end = self.writer.failure ?? end
        if end == .streamEnded, !self.writer.hasStarted, !self.maker.problems.isEmpty { end = .unsupportedMedia }
        self.ending = end
        self.writer.end(end)
        if let mailbox = self.mailbox {
            self.mailbox = nil
            RelayLoop.remove(mailbox, from: self.stream)
        }
        self.hasEnded.store(true, ordering: .relaxed)
        self.recordings.streams.registry.release(self.stream)
    }
}
