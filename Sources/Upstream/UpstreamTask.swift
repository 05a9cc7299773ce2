internal import Dispatch
package import Media
internal import NIOCore
internal import Synchronization

/// A link to another server that is kept up: it connects, runs, waits and connects again, on a thread of its own from `start` to `stop`.
///
/// Every method may be called from any thread, event loops included; none waits. The callbacks come on the link's thread and should not
/// take long; they may call back into the task.
package final class UpstreamTask: Sendable {
    private enum Direction: Sendable {
        case pull(@Sendable (PullEvent) -> Void)
        case push(PushQueue)
    }

    private struct Shared {
        var state = UpstreamState.idle
        var sinceMs = System.unixMs()
        var attempts: UInt64 = 0
        var connections: UInt64 = 0
        var lastError: UpstreamError?
        var lastErrorMs: Int64?
        /// The running thread's; nil without one.
        var control: LinkControl?
        /// The thread is done with its link and reports its last state.
        var isEnding = false
        /// There was no thread for it: it is to be tried again, unless that has changed.
        var retry: Int?
        var retries = 0
        /// Started again while the thread before is on its way out: it begins anew instead.
        var isWantedAgain = false
    }

    /// Milliseconds for the goodbye of a link that was stopped.
    private static let goodbyeMs = 1_000

    private let url: UpstreamURL
    private let options: UpstreamOptions
    private let name: String
    private let direction: Direction
    private let onState: @Sendable (UpstreamState) -> Void
    private let counters = LinkCounters()
    private let shared = Mutex(Shared())

    private init(
        _ url: UpstreamURL, _ options: UpstreamOptions, _ name: String, _ direction: Direction,
        _ onState: @escaping @Sendable (UpstreamState) -> Void
    ) {
        self.url = url
        self.options = options
        self.name = name
        self.direction = direction
        self.onState = onState
    }

    /// A link that plays a stream. `name` is what its thread is called, 15 bytes of it.
    package static func pull(
        _ url: UpstreamURL, options: UpstreamOptions, name: String = "pull",
        onState: @escaping @Sendable (UpstreamState) -> Void = { _ in },
        onEvent: @escaping @Sendable (PullEvent) -> Void
    ) -> UpstreamTask {
        UpstreamTask(url, options, name, .pull(onEvent), onState)
    }

    /// A link that publishes what is offered to it.
    package static func push(
        _ url: UpstreamURL, options: UpstreamOptions, name: String = "push", onState: @escaping @Sendable (UpstreamState) -> Void = { _ in }
    ) -> UpstreamTask {
        UpstreamTask(url, options, name, .push(PushQueue(options)), onState)
    }

    // MARK: Any thread

    package var state: UpstreamState { self.shared.withLock { $0.state } }

    package var status: UpstreamStatus {
        let numbers = self.counters.now
        let queue = if case .push(let queue) = self.direction { queue.counts } else { PushBacklog.Counts() }
        return self.shared.withLock { shared in
            UpstreamStatus(
                state: shared.state, sinceMs: shared.sinceMs, attempts: shared.attempts, connections: shared.connections,
                bytesIn: numbers.bytesIn, bytesOut: numbers.bytesOut, framesIn: numbers.framesIn, framesOut: numbers.framesOut,
                malformed: numbers.malformed, droppedVideo: queue.droppedVideo, droppedAudio: queue.droppedAudio, queuedBytes: queue.bytes,
                queuedMs: queue.ageMs, lastError: shared.lastError, lastErrorMs: shared.lastErrorMs, remoteAddress: numbers.remote,
                tls: numbers.tls)
        }
    }

    /// Pushing: the next frame of the stream, headers included. The payload is kept until it is sent or dropped, not copied.
    package func offer(_ frame: Frame) {
        if case .push(let queue) = self.direction { queue.offer(frame, nowMs: System.nowMs()) }
    }

    /// Pushing: the stream that was offered is over; its headers and what waits are forgotten.
    package func clear() {
        if case .push(let queue) = self.direction { queue.clear() }
    }

    /// Connects, unless the link is up or on its way already.
    package func start() {
        let control: LinkControl?? = self.shared.withLock { shared in
            if let control = shared.control {
                if control.isStopping || shared.isEnding { shared.isWantedAgain = true }
                return .none
            }
            shared.retry = nil
            shared.control = self.options.shortage(2) == nil ? LinkControl() : nil
            return .some(shared.control)
        }
        if let control { self.launch(control) }
    }

    /// Ends the link: in words when the server has agreed to something, cut after a second otherwise. The state becomes `stopped` when the
    /// thread is done with it.
    package func stop() {
        let (control, waited) = self.shared.withLock { shared in
            defer { shared.retry = nil }
            shared.isWantedAgain = false
            return (shared.control, shared.retry != nil)
        }
        if waited, control == nil { self.set(.stopped) }
        guard let control else { return }
        if control.stop() {
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(Self.goodbyeMs)) { control.cut() }
        }
    }

    /// nil: the system has no descriptors left.
    private func launch(_ control: LinkControl?) {
        if let control, LinkThread(name: self.name, { self.run(control) }) != nil { return }
        let pauseMs = self.options.reconnect.maxMs
        let (retry, untilMs) = self.shared.withLock { shared in
            shared.control = nil
            shared.retries += 1
            shared.retry = shared.retries
            shared.lastError = .system("no thread or descriptor for a link; the limit of open files may be nearly reached")
            shared.lastErrorMs = System.unixMs()
            return (shared.retries, System.unixMs() + Int64(pauseMs))
        }
        self.set(.waiting(untilMs: untilMs))
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(pauseMs)) { [weak self] in
            guard let self, self.shared.withLock({ $0.retry == retry }) else { return }
            self.start()
        }
    }

    // MARK: The link's thread

    private func run(_ control: LinkControl) {
        let last = self.keepUp(control)
        self.shared.withLock { $0.isEnding = true }
        // While this is reported no other thread can begin: reports come in order.
        self.set(last)
        let again: LinkControl?? = self.shared.withLock { shared in
            shared.isEnding = false
            shared.control = nil
            guard shared.isWantedAgain else { return .none }
            shared.isWantedAgain = false
            shared.control = self.options.shortage(2) == nil ? LinkControl() : nil
            return .some(shared.control)
        }
        if let again { self.launch(again) }
    }

    /// Until it is stopped or fails; returns the last state.
    private func keepUp(_ control: LinkControl) -> UpstreamState {
        var machine = SupervisorMachine(self.options.reconnect)
        var connected = machine
        while true {
            machine.connecting()
            self.shared.withLock { $0.attempts &+= 1 }
            self.set(.connecting)
            connected = machine
            let error = self.connection(control) {
                connected.running(nowMs: System.nowMs())
                self.shared.withLock { $0.connections &+= 1 }
                self.set(.running)
            }
            machine = connected
            self.counters.connected(nil, tls: nil)
            let next = machine.ended(error, nowMs: System.nowMs(), random: Double.random(in: 0..<1))
            if next == .stop { return .stopped }
            self.shared.withLock { shared in
                shared.lastError = error
                shared.lastErrorMs = System.unixMs()
            }
            switch next {
            case .stop: return .stopped
            case .fail(let permanent): return .failed(reason: error.description, permanent: permanent)
            case .wait(let milliseconds):
                self.set(.waiting(untilMs: System.unixMs() + Int64(milliseconds)))
                do throws(UpstreamError) {
                    try control.sleep(until: System.nowMs() + Int64(milliseconds))
                } catch {
                    return .stopped
                }
                control.forgive()
            }
        }
    }

    private func connection(_ control: LinkControl, onRunning: () -> Void) -> UpstreamError {
        let run = LinkRun(url: self.url, options: self.options, control: control, counters: self.counters)
        do throws(UpstreamError) {
            switch self.direction {
            case .pull(let onEvent): try PullLink(run: run).perform(onRunning: onRunning, onEvent: onEvent)
            case .push(let queue): try PushLink(run: run, queue: queue).perform(onRunning: onRunning)
            }
        } catch {
            return control.isStopping ? .cancelled : error
        }
        return .closed(while: "at its end")
    }

    private func set(_ state: UpstreamState) {
        self.shared.withLock { shared in
            shared.state = state
            shared.sinceMs = System.unixMs()
        }
        self.onState(state)
    }
}
