import NIOCore
import Relay
import Support
import Synchronization

/// Buffers a stream's first frames, from the publisher's start, until its recorder exists.
///
/// A recorder begins once the registry has stored that the stream is live. That time depends on the disk and the machine; viewers have seen pictures
/// by then. Bounded like every ``FrameMailbox``. Any thread.
final class RecordingHead: Sendable {
    let mailbox: FrameMailbox
    private let stream: Relay.Stream
    private let registry: StreamRegistry
    private let wake: Wake
    private let madeMs: Int64
    private let isOver = Atomic<Bool>(false)
    /// Whether this holds the stream; false if that was already over. Set on its home loop.
    private let isUser = Atomic<Bool>(false)

    /// Calls the mailbox's taker, or remembers the call until there is one.
    private final class Wake: Sendable {
        private struct State {
            var body: (@Sendable () -> Void)?
            var isDue = false
        }

        private let state = Mutex(State())

        func callAsFunction() {
            let body = self.state.withLock { state in
                if state.body == nil { state.isDue = true }
                return state.body
            }
            body?()
        }

        func set(_ body: @escaping @Sendable () -> Void) {
            let isDue = self.state.withLock { state in
                defer { state = State(body: body) }
                return state.isDue
            }
            if isDue { body() }
        }
    }

    /// Milliseconds after which no recorder is expected any more.
    private static let lifetimeMs: Int64 = 30_000

    /// Call before the publisher's first frame is published, while the publisher holds the stream.
    init(of stream: Relay.Stream, in registry: StreamRegistry, limitBytes: Int, ledger: MemoryLedger) {
        self.stream = stream
        self.registry = registry
        self.madeMs = LoopSweeper.nowMs
        let wake = Wake()
        self.wake = wake
        self.mailbox = FrameMailbox(on: stream.home.eventLoop, limitBytes: limitBytes, ledger: ledger) { wake() }
        stream.home.run { home in
            // Holds the stream for as long as it receives its frames.
            let held = registry.acquire(stream.path, on: home)
            guard held === stream else { return registry.release(held) }
            self.isUser.store(true, ordering: .relaxed)
            RelayLoop.add(self.mailbox, to: stream)
        }
    }

    func isStale(nowMs: Int64) -> Bool { nowMs - self.madeMs >= Self.lifetimeMs }

    /// Whether the frames belong to `stream`.
    func isOf(_ stream: Relay.Stream) -> Bool { self.stream === stream }

    /// Hands the mailbox and its frames to a recorder that has acquired the stream itself. `wake` is called for later frames, and at once
    /// if any are there. Nil: it was already taken or dropped.
    func handOver(wake: @escaping @Sendable () -> Void) -> FrameMailbox? {
        guard !self.isOver.exchange(true, ordering: .relaxed) else { return nil }
        self.wake.set(wake)
        self.release()
        return self.mailbox
    }

    /// Discards the frames, because nobody records the stream.
    func drop() {
        guard !self.isOver.exchange(true, ordering: .relaxed) else { return }
        RelayLoop.remove(self.mailbox, from: self.stream)
        self.release()
    }

    private func release() {
        // On the home loop, hence after the acquire in `init`.
        self.stream.home.run { _ in
            if self.isUser.load(ordering: .relaxed) { self.registry.release(self.stream) }
        }
    }
}
