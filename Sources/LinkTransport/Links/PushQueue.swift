internal import Media
internal import NIOCore
internal import Synchronization

/// The queue of a push link. Any thread fills it without blocking; the link's thread drains it. Limited in bytes and time.
final class PushQueue: Sendable {
    private struct State {
        var backlog: PushBacklog
        /// The link to wake, which found the queue empty and sleeps.
        var sleeper: LinkControl?
        var control: LinkControl?
    }

    private let state: Mutex<State>

    init(_ options: LinkOptions) {
        self.state = Mutex(
            State(backlog: PushBacklog(maxBytes: options.queueBytes, maxMs: options.queueMs, maxAudioMs: options.queueAudioMs)))
    }

    /// Adds a frame. Any thread. The payload is retained, not copied.
    func offer(_ frame: Frame, nowMs: Int64) {
        let sleeper = self.state.withLock { state in
            state.backlog.offer(frame, nowMs: nowMs)
            defer { state.sleeper = nil }
            return state.sleeper
        }
        sleeper?.wake()
    }

    /// Forgets the stream that ended; the next one is unrelated.
    func clear() { self.state.withLock { $0.backlog.clear() } }

    var counts: PushBacklog.Counts { self.state.withLock { $0.backlog.counts(nowMs: System.nowMs()) } }

    /// Starts a connection: headers first, then frames from a keyframe on.
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

    /// The next frame to send. When it is nil, the next offer wakes the link.
    func next(nowMs: Int64) -> Frame? {
        self.state.withLock { state in
            let frame = state.backlog.next(nowMs: nowMs)
            state.sleeper = frame == nil ? state.control : nil
            return frame
        }
    }
}
