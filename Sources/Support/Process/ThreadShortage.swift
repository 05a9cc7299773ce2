import LibC
import Synchronization

/// Ends a process whose runtime waits for a thread that the system refuses to make (pthread_create(3), EAGAIN). Dispatch tries it again every second, for
/// ever; nothing else runs meanwhile, and no signal is heard. A thread of its own, which is there from the start, notices that. Any thread.
package enum ThreadShortage {
    /// When a task ran last, on the steady clock.
    private static let beatMs = Atomic<Int64>(0)
    /// How long tasks may stand still before somebody asks why.
    static let patienceMs: Int64 = 10_000
    private static let pauseMs: Int64 = 1_000
    private static let stackBytes = 128 << 10

    /// Begins to watch. Ends the process if there is no thread for that. Call once, at the start.
    package static func watch() {
        self.beatMs.store(LoopSweeper.nowMs, ordering: .relaxed)
        let isWatched = self.start(stackBytes: self.stackBytes) { _ in
            ThreadShortage.poll()
            return nil
        }
        if !isWatched { self.giveUp() }
        Task.detached {
            while !Task.isCancelled {
                self.beatMs.store(LoopSweeper.nowMs, ordering: .relaxed)
                try? await Task.sleep(for: .milliseconds(self.pauseMs))
            }
        }
    }

    /// Whether the process can go on. `canStart` is asked only if tasks stand still: on a busy machine they do, and threads can be made.
    static func isHopeless(beatMs: Int64, nowMs: Int64, canStart: () -> Bool) -> Bool {
        nowMs - beatMs >= self.patienceMs && !canStart()
    }

    private static func poll() {
        while true {
            usleep(UInt32(self.pauseMs * 1_000))
            let isHopeless = self.isHopeless(beatMs: self.beatMs.load(ordering: .relaxed), nowMs: LoopSweeper.nowMs) {
                self.start { _ in nil }
            }
            if isHopeless { self.giveUp() }
        }
    }

    private typealias Body = @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?

    /// Starts a thread, by default with the usual stack. False if the system refuses.
    private static func start(stackBytes: Int? = nil, _ body: Body) -> Bool {
        let attributes = UnsafeMutablePointer<pthread_attr_t>.allocate(capacity: 1)
        pthread_attr_init(attributes)
        defer {
            pthread_attr_destroy(attributes)
            attributes.deallocate()
        }
        if let stackBytes { pthread_attr_setstacksize(attributes, stackBytes) }
        pthread_attr_setdetachstate(attributes, Int32(PTHREAD_CREATE_DETACHED))
        var id = pthread_t()
        return pthread_create(&id, attributes, body, nil) == 0
    }

    /// Neither log nor exit handlers: they may wait for threads.
    private static func giveUp() -> Never {
        let words =
            "earshot: the system makes no more threads, so the server ends. Raise what limits them: LimitAS= and TasksMax= in the systemd unit, "
            + "ulimit -v and -u, the control group's pids.max\n"
        _ = words.utf8.withContiguousStorageIfAvailable { write(STDERR_FILENO, $0.baseAddress, $0.count) }
        _exit(1)
    }
}
