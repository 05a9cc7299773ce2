internal import Media
internal import NIOCore
internal import Synchronization

/// What waits to be pushed: filled from any thread, never blocking, and emptied by the link's. Bounded in bytes and in time.
final class PushQueue: Sendable {
    private struct State {
        var backlog: PushBacklog
        /// The link that has found nothing and sleeps.
        var sleeper: LinkControl?
        var control: LinkControl?
    }

    private let state: Mutex<State>

    init(_ options: UpstreamOptions) {
        self.state = Mutex(
            State(backlog: PushBacklog(maxBytes: options.queueBytes, maxMs: options.queueMs, maxAudioMs: options.queueAudioMs)))
    }

    /// Any thread. The payload is kept, not copied.
    func offer(_ frame: Frame, nowMs: Int64) {
        let sleeper = self.state.withLock { state in
            state.backlog.offer(frame, nowMs: nowMs)
            defer { state.sleeper = nil }
            return state.sleeper
        }
        sleeper?.wake()
    }

    /// The stream is over: another one may follow, which has nothing to do with it.
    func clear() { self.state.withLock { $0.backlog.clear() } }

    var counts: PushBacklog.Counts { self.state.withLock { $0.backlog.counts(nowMs: System.nowMs()) } }

    /// A connection begins: headers first, then from a keyframe on.
    func attach(_ control: LinkControl, nowMs: Int64) {
        self.state.withLock { state in
            state.control = control
            state.backlog.attach(nowMs: nowMs)
        }
    }

    func detach() {
        self.state.withLock { state in
            state.control = nil
            state.sleeper = nil
            state.backlog.detach()
        }
    }

    /// What is to be sent next. nil: nothing; the link is woken when that changes.
    func next(nowMs: Int64) -> Frame? {
        self.state.withLock { state in
            let frame = state.backlog.next(nowMs: nowMs)
            state.sleeper = frame == nil ? state.control : nil
            return frame
        }
    }
}
