import NIOCore
import Relay
import Synchronization

/// The beginning of a stream that is to be recorded: takes its frames from the publisher's start on, until the recorder is there.
///
/// A recorder begins when the registry has stored that the stream is live, which takes as long as the disk and a busy machine make it;
/// viewers have been sent pictures by then. Bounded as every ``FrameMailbox`` is. Any thread.
final class RecordingHead: Sendable {
    let mailbox: FrameMailbox
    private let stream: Relay.Stream
    private let registry: StreamRegistry
    private let wake: Wake
    private let madeMs: Int64
    private let isOver = Atomic<Bool>(false)
    /// The stream was not over already when this began. Set on its home loop.
    private let isUser = Atomic<Bool>(false)

    /// Calls whoever takes the frames, once there is somebody.
    private final class Wake: Sendable {
        private let state = Mutex<(body: (@Sendable () -> Void)?, isDue: Bool)>((nil, false))

        func callAsFunction() {
            let body = self.state.withLock { state in
                if state.body == nil { state.isDue = true }
                return state.body
            }
            body?()
        }

        func set(_ body: @escaping @Sendable () -> Void) {
            let isDue = self.state.withLock { state in
                defer { state = (body, false) }
                return state.isDue
            }
            if isDue { body() }
        }
    }

    /// A recorder that has not come by then does not come. Milliseconds.
    private static let lifetimeMs: Int64 = 30_000

    /// To be called before the publisher's first frame is published; the publisher uses the stream.
    init(of stream: Relay.Stream, in registry: StreamRegistry, limitBytes: Int, ledger: MemoryLedger) {
        self.stream = stream
        self.registry = registry
        self.madeMs = LoopSweeper.nowMs
        let wake = Wake()
        self.wake = wake
        self.mailbox = FrameMailbox(on: stream.home.eventLoop, limitBytes: limitBytes, ledger: ledger) { wake() }
        stream.home.run { home in
            // One of the stream's users, as long as it takes of it.
            let held = registry.acquire(stream.path, on: home)
            guard held === stream else { return registry.release(held) }
            self.isUser.store(true, ordering: .relaxed)
            RelayLoop.add(self.mailbox, to: stream)
        }
    }

    func isStale(nowMs: Int64) -> Bool { nowMs - self.madeMs >= Self.lifetimeMs }

    /// The frames are `stream`'s.
    func isOf(_ stream: Relay.Stream) -> Bool { self.stream === stream }

    /// The mailbox with all that has come, for a recorder that has acquired the stream itself; `wake` is called for what comes from now on, and
    /// at once if anything has. Nil: it was taken or dropped before.
    func take(wake: @escaping @Sendable () -> Void) -> FrameMailbox? {
        guard !self.isOver.exchange(true, ordering: .relaxed) else { return nil }
        self.wake.set(wake)
        self.release()
        return self.mailbox
    }

    /// Nobody records.
    func drop() {
        guard !self.isOver.exchange(true, ordering: .relaxed) else { return }
        RelayLoop.remove(self.mailbox, from: self.stream)
        self.release()
    }

    private func release() {
        // Behind its acquiring.
        self.stream.home.run { _ in
            if self.isUser.load(ordering: .relaxed) { self.registry.release(self.stream) }
        }
    }
}
