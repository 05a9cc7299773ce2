internal import Dispatch
package import Media
internal import NIOCore
internal import Support
internal import Synchronization

/// Keeps a link to another server up: connects, runs, waits and reconnects. It has a thread of its own from `start` to `stop`.
///
/// Any thread may call every method, event loops included; none blocks. Callbacks run on the link's thread and should be short; they
/// may call back into the client.
package final class LinkClient: Sendable {
    private enum Direction: Sendable {
        case pull(@Sendable (PullEvent) -> Void)
        case push(PushQueue)
    }

    private struct Shared {
        var state = LinkState.idle
        var sinceMs = WallClock.ms
        var attempts: UInt64 = 0
        var connections: UInt64 = 0
        var lastError: LinkError?
        var lastErrorMs: Int64?
        /// The running thread's control; nil without a thread.
        var control: LinkControl?
        /// The thread has ended its link and is reporting the last state.
        var isEnding = false
        /// The pending retry's number; nil without one. Set when no thread could be started.
        var retry: Int?
        var retries = 0
        /// `start` was called while the previous thread was ending. That thread then launches a new one.
        var isWantedAgain = false
    }

    /// Milliseconds for a stopped link to say goodbye.
    private static let goodbyeMs = 1_000

    private let url: LinkURL
    private let options: LinkOptions
    private let name: String
    private let direction: Direction
    private let onState: @Sendable (LinkState) -> Void
    private let counters = LinkCounters()
    private let shared = Mutex(Shared())

    private init(
        _ url: LinkURL, _ options: LinkOptions, _ name: String, _ direction: Direction,
        _ onState: @escaping @Sendable (LinkState) -> Void
    ) {
        self.url = url
        self.options = options
        self.name = name
        self.direction = direction
        self.onState = onState
    }

    /// Makes a link that plays a stream. `name` names its thread (15 bytes of it).
    package static func pull(
        _ url: LinkURL, options: LinkOptions, name: String = "pull",
        onState: @escaping @Sendable (LinkState) -> Void = { _ in },
        onEvent: @escaping @Sendable (PullEvent) -> Void
    ) -> LinkClient {
        LinkClient(url, options, name, .pull(onEvent), onState)
    }

    /// Makes a link that publishes the offered frames.
    package static func push(
        _ url: LinkURL, options: LinkOptions, name: String = "push", onState: @escaping @Sendable (LinkState) -> Void = { _ in }
    ) -> LinkClient {
        LinkClient(url, options, name, .push(PushQueue(options)), onState)
    }

    // MARK: Any thread

    package var state: LinkState { self.shared.withLock { $0.state } }

    package var status: LinkStatus {
        let numbers = self.counters.now
        let queue = if case .push(let queue) = self.direction { queue.counts } else { PushBacklog.Counts() }
        return self.shared.withLock { shared in
            LinkStatus(
                state: shared.state, sinceMs: shared.sinceMs, attempts: shared.attempts, connections: shared.connections,
                bytesIn: numbers.bytesIn, bytesOut: numbers.bytesOut, framesIn: numbers.framesIn, framesOut: numbers.framesOut,
                malformed: numbers.malformed, droppedVideo: queue.droppedVideo, droppedAudio: queue.droppedAudio, queuedBytes: queue.bytes,
                queuedMs: queue.ageMs, lastError: shared.lastError, lastErrorMs: shared.lastErrorMs, remoteAddress: numbers.remote,
                tls: numbers.tls)
        }
    }

    /// Pushing: adds the stream's next frame, headers included. The payload is retained until it is sent or dropped, not copied.
    package func offer(_ frame: Frame) {
        if case .push(let queue) = self.direction { queue.offer(frame, nowMs: System.nowMs()) }
    }

    /// Pushing: ends the offered stream; its headers and queued frames are forgotten.
    package func clear() { if case .push(let queue) = self.direction { queue.clear() } }

    /// Connects, unless the link is already up or connecting.
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

    /// Ends the link. Once the server has agreed to play or publish, the link says goodbye and is cut after a second; before that it is
    /// cut at once. The state becomes `stopped` when the thread has ended the link.
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

    /// Starts a thread for the link, or schedules a retry. `control` is nil when the system has no descriptors left.
    private func launch(_ control: LinkControl?) {
        if let control, LinkThread(name: self.name, { self.run(control) }) != nil { return }
        let pauseMs = self.options.reconnect.maxMs
        let (retry, untilMs) = self.shared.withLock { shared in
            shared.control = nil
            shared.retries += 1
            shared.retry = shared.retries
            shared.lastError = .system("no thread or descriptor for a link; the limit of open files may be nearly reached")
            shared.lastErrorMs = WallClock.ms
            return (shared.retries, WallClock.ms + Int64(pauseMs))
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
        // No other thread can start during this report, so reports stay in order.
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

    /// Runs until the link is stopped or fails; returns the last state.
    private func keepUp(_ control: LinkControl) -> LinkState {
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
                shared.lastErrorMs = WallClock.ms
            }
            switch next {
            case .stop: return .stopped
            case .fail(let permanent): return .failed(reason: error.description, permanent: permanent)
            case .wait(let milliseconds):
                self.set(.waiting(untilMs: WallClock.ms + Int64(milliseconds)))
                do throws(LinkError) {
                    try control.sleep(until: System.nowMs() + Int64(milliseconds))
                } catch {
                    return .stopped
                }
                control.forgive()
            }
        }
    }

    private func connection(_ control: LinkControl, onRunning: () -> Void) -> LinkError {
        let run = LinkRun(url: self.url, options: self.options, control: control, counters: self.counters)
        do throws(LinkError) {
            switch self.direction {
            case .pull(let onEvent): try PullLink(run: run).runToEnd(onRunning: onRunning, onEvent: onEvent)
            case .push(let queue): try PushLink(run: run, queue: queue).runToEnd(onRunning: onRunning)
            }
        } catch {
            return control.isStopping ? .cancelled : error
        }
        return .closed(while: "at its end")
    }

    private func set(_ state: LinkState) {
        self.shared.withLock { shared in
            shared.state = state
            shared.sinceMs = WallClock.ms
        }
        self.onState(state)
    }
}
