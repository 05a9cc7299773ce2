import Delivery
import Logging
import Media
import NIOCore
import Outbound
import Relay
import RoomRegistry
package import Rooms
import ServerConfiguration
import Support
import Synchronization
package import Upstream

/// A running relay task: connects its link to the stream on this server. Any thread.
///
/// A push runs while its stream is live; a pull runs always, or on demand while somebody plays. A pull that this server refuses (forbidden, dropped,
/// the name has another publisher) is held, and retried later.
package final class ForwardLink: Sendable {
    package let task: RelayTask
    package let url: UpstreamURL
    private let tasks: RelayTasks
    private let reporter: ForwardReporter
    private let link: Mutex<UpstreamTask?>
    private let state = Mutex(State())

    private struct State {
        var tap: PushTap?
        /// The way last sent to the other server.
        var toldWay: [String]?
        package var publisher: PullPublisher?
        /// Milliseconds of the steady clock.
        var publishingSinceMs: Int64 = 0
        /// The way of the pulled stream, as the other server states it.
        var way: [String] = []
        /// Frames that arrived while the room was being asked.
        var early = EarlyFrames()
        var isOpening = false
        /// Number of the connection; a late answer must not apply to the next.
        package var run = 0
        var hold: Hold?
        /// The last failure that was logged.
        var toldError: UpstreamError?
        /// Consecutive holds.
        package var holds = 0
        var lastWantedMs: Int64 = 0
        var isDeleted = false
        /// Another node that shares the rooms pulls.
        var isElsewhere = false
    }

    /// The reason and duration of a hold.
    private struct Hold {
        let words: String
        /// By the steady clock; the hold also lasts while the stream may not be played here.
        let untilMs: Int64
    }

    /// A pull on demand without a viewer ends after this long.
    private static let idleMs: Int64 = 30_000
    /// Servers are set to drop idle publishers after five seconds or more.
    private static let keepAliveMs = 2_000
    /// Held pulls are retried like broken connections.
    private static let policy = ReconnectPolicy()

    init(_ task: RelayTask, of tasks: RelayTasks) throws(UpstreamError) {
        self.task = task
        self.tasks = tasks
        self.link = Mutex(nil)
        let url = try UpstreamURL(parsing: task.url)
        self.url = url
        self.reporter = ForwardReporter(task, target: url.redacted, rooms: tasks.rooms)
        let rules = TargetRules(allowPrivate: tasks.config.outbound.allowPrivate)
        var options = UpstreamOptions { rules.objection(to: $0) }
        // While the stream waits for its publisher, other servers would drop a push that sends nothing: nginx-rtmp after its drop_idle_publisher.
        options.keepAliveMs = Self.keepAliveMs
        options.shortage = { OpenDescriptors.mayOpen($0) ? nil : OpenDescriptors.advice }
        let notify: @Sendable (UpstreamState) -> Void = { [weak self, reporter = self.reporter] state in
            if let self { self.changed(to: state) } else { reporter.changed(state, error: nil) }
        }
        options.connectProperties = { [weak self] in self.map { [(LoopDetector.property, $0.marks())] } ?? [] }
        switch task.direction {
        case .push:
            let made = UpstreamTask.push(url, options: options, name: "push \(task.id)", onState: notify)
            self.link.withLock { $0 = made }
        case .pull:
            options.wayObjection = (LoopDetector.property, { [weak self] in self?.objection(to: $0) })
            let made = UpstreamTask.pull(url, options: options, name: "pull \(task.id)", onState: notify) { [weak self] in self?.receive($0)
            }
            self.link.withLock { $0 = made }
        }
    }

    private var upstream: UpstreamTask? { self.link.withLock { $0 } }
    package var status: UpstreamStatus? { self.upstream?.status }
    /// The reason why the pull is held; nil when it is not.
    package var heldFor: String? { self.state.withLock { $0.hold?.words } }

    var isPublishing: Bool { self.state.withLock { $0.publisher != nil } }
    var received: (path: String, bytes: UInt64)? { self.state.withLock { $0.publisher }?.received }

    /// On the link's thread.
    private func changed(to state: UpstreamState) {
        let error = self.upstream?.status.lastError
        self.reporter.changed(state, error: error)
        var metadata: Logger.Metadata = [
            "task": "\(self.task.id)", "direction": "\(self.task.direction.rawValue)", "stream": "\(self.task.path)",
            "state": "\(state.word)",
        ]
        if let error, state.word != "running" { metadata["lastError"] = "\(error)" }
        self.tasks.log.log(level: self.level(of: state, error), "Relay task", metadata: metadata)
    }

    /// Logs repeated failures at debug level.
    private func level(of state: UpstreamState, _ error: UpstreamError?) -> Logger.Level {
        switch state {
        case .failed: return .warning
        case .connecting: return error == nil ? .info : .debug
        case .waiting:
            let isNews = self.state.withLock { state in
                defer { state.toldError = error }
                return state.toldError != error
            }
            return isNews ? .info : .debug
        default:
            self.state.withLock { $0.toldError = nil }
            return .info
        }
    }

    private func stop(_ reason: String) {
        self.reporter.stopping(reason)
        self.upstream?.stop()
    }

    // MARK: Loops

    /// The marks sent to the other server, to find loops. On the link's thread.
    private func marks() -> String {
        let path = self.task.path.description
        guard self.task.direction == .push else { return LoopDetector.text(self.tasks.streams.origins.sinks(of: path)) }
        let way = self.tasks.streams.origins.way(of: path)
        self.state.withLock { $0.toldWay = way }
        return LoopDetector.text(way)
    }

    /// Checks the pulled stream's way, as the other server states it; returns the objection, if any. On the link's thread.
    private func objection(to text: String) -> String? {
        let way = LoopDetector.marks(text)
        let path = self.task.path.description
        if let why = self.tasks.streams.origins.objection(to: way, feeding: path) { return why }
        let changed = self.state.withLock { state -> PullPublisher? in
            defer { state.way = way }
            return state.way == way ? nil : state.publisher
        }
        if let changed {
            self.tasks.streams.origins.cameIn(path, way, owner: changed.owner)
            self.tasks.streamBegan(path)
        }
        return nil
    }

    // MARK: Life

    /// Called when the server starts or the task is created.
    package func begin() {
        switch self.task.direction {
        case .pull:
            guard !self.task.onDemand else { return }
            // Where nodes share the rooms, one of them pulls.
            let isElsewhere = !self.tasks.rooms.isKeeper
            self.state.withLock { $0.isElsewhere = isElsewhere }
            if !isElsewhere { self.upstream?.start() }
        case .push: self.streamBegan()
        }
    }

    /// Ends the task for good; `reason` goes into its last event.
    package func delete(_ reason: String) {
        self.state.withLock { $0.isDeleted = true }
        self.reporter.ended(reason)
        self.upstream?.stop()
        self.endTap()
        self.endPublisher(.clientStopped)
    }

    /// Starts a push when the stream here has a publisher.
    func streamBegan() {
        guard self.task.direction == .push, self.state.withLock({ !$0.isDeleted }) else { return }
        guard self.state.withLock({ $0.tap == nil }) else { return self.reportWay() }
        let path = self.task.path.description
        Task {
            let found = await self.tasks.streams.onHome(of: path) { [streams = self.tasks.streams] home, stream -> Relay.Stream? in
                guard let snapshot = home.snapshot(of: stream)?.stream, snapshot.phase != .idle else { return nil }
                return streams.registry.acquire(path, on: home)
            }
            guard let found, let stream = found, let link = self.upstream else { return }
            let tap = PushTap(stream, link)
            let isFirst = self.state.withLock { state in
                guard state.tap == nil, !state.isDeleted else { return false }
                state.tap = tap
                return true
            }
            guard isFirst else { return self.tasks.streams.registry.release(stream) }
            RelayLoop.add(tap, to: stream)
            link.start()
        }
    }

    /// Reconnects if the stream's new publisher came another way.
    private func reportWay() {
        let way = self.tasks.streams.origins.way(of: self.task.path.description)
        guard self.state.withLock({ $0.toldWay.map { $0 != way } ?? false }) else { return }
        self.stop("way_changed")
        self.upstream?.start()
    }

    /// Starts an on-demand pull for a player.
    package func wanted() {
        guard self.task.direction == .pull, self.task.onDemand else { return }
        let mayStart = self.state.withLock { state in
            state.lastWantedMs = LoopSweeper.nowMs
            return !state.isDeleted && state.hold == nil
        }
        if mayStart { self.upstream?.start() }
    }

    /// Starts and stops the link as needed. Call about once a second.
    package func sweep(nowMs: Int64) {
        let path = self.task.path.description
        switch self.task.direction {
        case .push:
            guard let tap = self.state.withLock({ $0.tap }) else { return }
            // The stream is over or has been replaced: a tap belongs to one stream.
            Task {
                let isLive = await self.tasks.streams.onHome(of: path) { home, stream in
                    stream === tap.stream && home.snapshot(of: stream).map { $0.stream.phase != .idle } == true
                }
                guard isLive != true else { return }
                self.endTap()
                self.stop("stream_ended")
                // A publisher that arrived meanwhile found the old tap, so check again.
                self.streamBegan()
            }
        case .pull:
            guard let link = self.upstream else { return }
            if self.task.onDemand, (self.tasks.streams.registry.find(path)?.viewerCount ?? 0) > 0 {
                self.state.withLock { $0.lastWantedMs = nowMs }
            }
            let want = self.want(nowMs: nowMs)
            if self.goesOn(path, nowMs: nowMs) {
                if want == .rests { self.reporter.rests(self.whyNot) } else { link.start() }
            } else if want == .rests, link.state != .idle, link.state != .stopped {
                self.stop(self.whyNot)
            } else if want == .starts {
                link.start()
            }
        }
    }

    private enum Want { case runs, starts, rests }

    /// Why a pull rests, in its events.
    private var whyNot: String { self.task.onDemand ? "no_viewer" : "other_node" }

    /// Whether a pull is to run. It starts, too, when this node takes it over.
    private func want(nowMs: Int64) -> Want {
        guard !self.task.onDemand else { return self.state.withLock { nowMs - $0.lastWantedMs < Self.idleMs } ? .runs : .rests }
        let (isHere, isElsewhere) = (self.tasks.rooms.isKeeper, self.tasks.rooms.isKeptElsewhere)
        return self.state.withLock { state in
            if state.isElsewhere {
                state.isElsewhere = !isHere
                guard isHere else { return .rests }
                return state.hold == nil && !state.isDeleted ? .starts : .runs
            }
            // Media does not wait for the database: what runs goes on until another node is known to have it.
            state.isElsewhere = isElsewhere
            return isElsewhere ? .rests : .runs
        }
    }

    private func endTap() {
        let tap = self.state.withLock { state in
            defer { state.tap = nil }
            state.toldWay = nil
            return state.tap
        }
        guard let tap else { return }
        RelayLoop.remove(tap, from: tap.stream)
        self.tasks.streams.registry.release(tap.stream)
    }

    // MARK: Holding a pull

    /// Stops a pull that is refused here; retries as if its connection had broken.
    private func hold(_ reason: String, _ words: String) {
        let nowMs = LoopSweeper.nowMs
        let isNew = self.state.withLock { state in
            guard !state.isDeleted else { return false }
            if state.publisher != nil, nowMs - state.publishingSinceMs >= Int64(Self.policy.stableMs) { state.holds = 0 }
            state.holds += 1
            let pauseMs = Self.policy.delayMs(failures: state.holds, random: Double.random(in: 0..<1))
            state.hold = Hold(words: words, untilMs: nowMs + Int64(pauseMs))
            state.publisher = nil
            state.early = EarlyFrames()
            return true
        }
        guard isNew else { return }
        self.reporter.held(reason, words)
        self.upstream?.stop()
        self.tasks.log.warning("Relay task held", metadata: ["task": "\(self.task.id)", "stream": "\(self.task.path)", "why": "\(words)"])
    }

    /// Ends an expired hold; returns whether there was one.
    private func goesOn(_ path: String, nowMs: Int64) -> Bool {
        self.state.withLock { state in
            guard let hold = state.hold, nowMs >= hold.untilMs, !state.isDeleted, self.tasks.rooms.playRefusal(path) == nil else {
                return false
            }
            state.hold = nil
            return true
        }
    }

    // MARK: Pulling, on the link's thread

    private func receive(_ event: PullEvent) {
        switch event {
        case .started: break
        case .frame(let frame):
            let publisher = self.state.withLock { state -> PullPublisher? in
                guard state.publisher == nil else { return state.publisher }
                guard !state.isDeleted, state.hold == nil else { return nil }
                state.early.append(frame)
                guard !state.isOpening else { return nil }
                state.isOpening = true
                self.open(state.run, way: state.way)
                return nil
            }
            publisher?.publish(frame)
        case .ended(let error):
            self.state.withLock { state in
                state.run += 1
                state.early = EarlyFrames()
                state.isOpening = false
            }
            // The other server announced the stream's end; the connection did not break.
            let isClean = if case .ended = error { true } else { false }
            self.endPublisher(isClean ? .clientStopped : .connectionLost)
        }
    }

    private func open(_ run: Int, way: [String]) {
        Task {
            do throws(PullRefusal) {
                let publisher = try await PullPublisher.begin(
                    self.task.path, task: self.task.id, from: self.status?.remoteAddress ?? "", way: way, for: self.tasks
                ) { [weak self] end in self?.ended(by: end) }
                let isCurrent = self.state.withLock { state in
                    guard state.run == run, !state.isDeleted, state.hold == nil else { return false }
                    // Under the lock, so that the next frame does not overtake them.
                    for frame in state.early.frames { publisher.publish(frame) }
                    state.early = EarlyFrames()
                    state.publisher = publisher
                    state.publishingSinceMs = LoopSweeper.nowMs
                    return true
                }
                if !isCurrent { publisher.leave(.connectionLost) }
            } catch {
                guard self.state.withLock({ $0.run == run }) else { return }
                if error.reason == CloseReason.serverShutdown.rawValue { return self.stop(error.reason) }
                self.hold(error.reason, error.text)
            }
        }
    }

    /// This server dropped, forbade or replaced the push.
    private func ended(by end: PushEnd) {
        guard end != .serverShutdown else { return self.stop(CloseReason.serverShutdown.rawValue) }
        self.hold(end.rawValue, "ended by this server: \(end.rawValue)")
    }

    private func endPublisher(_ end: PushEnd) {
        let publisher = self.state.withLock { state in
            defer { state.publisher = nil }
            return state.publisher
        }
        publisher?.leave(end)
    }
}
