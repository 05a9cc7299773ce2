import Logging
import Media
import NIOCore
import Relay
import Rooms
import Synchronization
import Upstream

/// One relay task as it runs: its link, and what joins that to the stream here. Any thread.
///
/// A push runs while its stream is live; a pull runs always, or while somebody plays. A pull that is not taken here (forbidden, dropped, the
/// name has another publisher) is held: it waits, and goes on by itself.
final class RelayLink: Sendable {
    let task: RelayTask
    let url: UpstreamURL
    private let core: ServerCore
    private let teller: RelayTeller
    private let link: Mutex<UpstreamTask?>
    private let state = Mutex(State())

    private struct State {
        var tap: PushTap?
        /// What the other server was told of the stream's way.
        var toldWay: [String]?
        var publisher: PullPublisher?
        /// Steady clock.
        var publishingSinceMs: Int64 = 0
        /// The way that what is pulled has come, as the other server tells it.
        var way: [String] = []
        /// Frames that came while the room was being asked.
        var early = EarlyFrames()
        var isOpening = false
        /// A connection's number, so that a late answer does not count for the next one.
        var run = 0
        var hold: Hold?
        /// Why the last attempt failed, as the log has it.
        var toldError: UpstreamError?
        /// One after the other.
        var holds = 0
        var lastWantedMs: Int64 = 0
        var isDeleted = false
    }

    /// Why a pull waits.
    private struct Hold {
        let words: String
        /// Steady clock; not before it is allowed here either.
        let untilMs: Int64
    }

    /// A pull on demand without a viewer ends after this long.
    private static let idleMs: Int64 = 30_000
    /// Holds are tried again as broken connections are.
    private static let policy = ReconnectPolicy()

    init(_ task: RelayTask, core: ServerCore) throws(UpstreamError) {
        self.task = task
        self.core = core
        self.link = Mutex(nil)
        let url = try UpstreamURL(parsing: task.url)
        self.url = url
        self.teller = RelayTeller(task, target: url.redacted, rooms: core.rooms)
        let rules = TargetRules(allowPrivate: core.config.outbound.allowPrivate)
        var options = UpstreamOptions { rules.objection(to: $0) }
        options.shortage = { OpenDescriptors.mayOpen($0) ? nil : OpenDescriptors.advice }
        let tell: @Sendable (UpstreamState) -> Void = { [weak self, teller = self.teller] state in
            if let self { self.changed(to: state) } else { teller.heard(state, error: nil) }
        }
        options.connectProperties = { [weak self] in self.map { [(StreamOrigins.property, $0.marks())] } ?? [] }
        switch task.direction {
        case .push:
            let made = UpstreamTask.push(url, options: options, name: "push \(task.id)", onState: tell)
            self.link.withLock { $0 = made }
        case .pull:
            options.wayObjection = (StreamOrigins.property, { [weak self] in self?.objection(to: $0) })
            let made = UpstreamTask.pull(url, options: options, name: "pull \(task.id)", onState: tell) { [weak self] in self?.take($0) }
            self.link.withLock { $0 = made }
        }
    }

    private var upstream: UpstreamTask? { self.link.withLock { $0 } }
    var status: UpstreamStatus? { self.upstream?.status }
    /// Why it waits although the link could run; nil when it does not.
    var heldFor: String? { self.state.withLock { $0.hold?.words } }

    var isPublishing: Bool { self.state.withLock { $0.publisher != nil } }

    /// On the link's thread.
    private func changed(to state: UpstreamState) {
        let error = self.upstream?.status.lastError
        self.teller.heard(state, error: error)
        var metadata: Logger.Metadata = [
            "task": "\(self.task.id)", "direction": "\(self.task.direction.rawValue)", "stream": "\(self.task.path)",
            "state": "\(state.word)",
        ]
        if let error, state.word != "running" { metadata["lastError"] = "\(error)" }
        self.core.log.log(level: self.level(of: state, error), "Relay task", metadata: metadata)
    }

    /// What is the same with each attempt is told once.
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
        self.teller.stopping(reason)
        self.upstream?.stop()
    }

    // MARK: Loops

    /// What this connection tells the other server, for finding loops. On the link's thread.
    private func marks() -> String {
        let path = self.task.path.description
        guard self.task.direction == .push else { return StreamOrigins.text(self.core.origins.sinks(of: path)) }
        let way = self.core.origins.way(of: path)
        self.state.withLock { $0.toldWay = way }
        return StreamOrigins.text(way)
    }

    /// The other server has told the way of what is pulled: what speaks against it. On the link's thread.
    private func objection(to text: String) -> String? {
        let way = StreamOrigins.marks(text)
        let path = self.task.path.description
        if let why = self.core.origins.objection(to: way, feeding: path) { return why }
        let changed = self.state.withLock { state -> PullPublisher? in
            defer { state.way = way }
            return state.way == way ? nil : state.publisher
        }
        if let changed {
            self.core.origins.cameIn(path, way, owner: changed.owner)
            self.core.relayTasks.streamBegan(path, of: self.core)
        }
        return nil
    }

    // MARK: Life

    /// When the server starts or the task is made.
    func begin() {
        switch self.task.direction {
        case .pull: if !self.task.onDemand { self.upstream?.start() }
        case .push: self.streamBegan()
        }
    }

    /// For good. The word is for whoever is told.
    func delete(_ reason: String) {
        self.state.withLock { $0.isDeleted = true }
        self.teller.ended(reason)
        self.upstream?.stop()
        self.endTap()
        self.endPublisher(.clientStopped)
    }

    /// The stream here has a publisher: a push begins.
    func streamBegan() {
        guard self.task.direction == .push, self.state.withLock({ !$0.isDeleted }) else { return }
        guard self.state.withLock({ $0.tap == nil }) else { return self.tellWay() }
        let path = self.task.path.description
        Task {
            let found = await self.core.onHome(of: path) { [core = self.core] home, stream -> Relay.Stream? in
                guard let snapshot = home.snapshot(of: stream)?.stream, snapshot.phase != .idle else { return nil }
                return core.registry.acquire(path, on: home)
            }
            guard let found, let stream = found, let link = self.upstream else { return }
            let tap = PushTap(stream, link)
            let isFirst = self.state.withLock { state in
                guard state.tap == nil, !state.isDeleted else { return false }
                state.tap = tap
                return true
            }
            guard isFirst else { return self.core.registry.release(stream) }
            RelayLoop.add(tap, to: stream)
            link.start()
        }
    }

    /// The stream goes on with another publisher, and has perhaps come another way.
    private func tellWay() {
        let way = self.core.origins.way(of: self.task.path.description)
        guard self.state.withLock({ $0.toldWay.map { $0 != way } ?? false }) else { return }
        self.stop("way_changed")
        self.upstream?.start()
    }

    /// Somebody wants to play the stream.
    func wanted() {
        guard self.task.direction == .pull, self.task.onDemand else { return }
        let mayStart = self.state.withLock { state in
            state.lastWantedMs = LoopSweeper.nowMs
            return !state.isDeleted && state.hold == nil
        }
        if mayStart { self.upstream?.start() }
    }

    /// Every second or so.
    func sweep(nowMs: Int64) {
        let path = self.task.path.description
        switch self.task.direction {
        case .push:
            guard let tap = self.state.withLock({ $0.tap }) else { return }
            // Over, or another life of it: a tap is of one stream.
            Task {
                let isLive = await self.core.onHome(of: path) { home, stream in
                    stream === tap.stream && home.snapshot(of: stream).map { $0.stream.phase != .idle } == true
                }
                guard isLive != true else { return }
                self.endTap()
                self.stop("stream_ended")
                // Whoever came meanwhile found the tap there.
                self.streamBegan()
            }
        case .pull:
            guard let link = self.upstream else { return }
            if self.task.onDemand, (self.core.registry.find(path)?.viewerCount ?? 0) > 0 {
                self.state.withLock { $0.lastWantedMs = nowMs }
            }
            let isWanted = self.state.withLock { !self.task.onDemand || nowMs - $0.lastWantedMs < Self.idleMs }
            if self.goesOn(path, nowMs: nowMs) {
                if isWanted { link.start() } else { self.teller.rests("no_viewer") }
            } else if !isWanted, link.state != .idle, link.state != .stopped {
                self.stop("no_viewer")
            }
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
        self.core.registry.release(tap.stream)
    }

    // MARK: Holding a pull

    /// What comes is not taken here: the link ends, and is tried again later, as if its connection had broken.
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
        self.teller.held(reason, words)
        self.upstream?.stop()
        self.core.log.warning("Relay task held", metadata: ["task": "\(self.task.id)", "stream": "\(self.task.path)", "why": "\(words)"])
    }

    /// Whether a hold has just come to its end.
    private func goesOn(_ path: String, nowMs: Int64) -> Bool {
        self.state.withLock { state in
            guard let hold = state.hold, nowMs >= hold.untilMs, !state.isDeleted, self.core.rooms.playRefusal(path) == nil else {
                return false
            }
            state.hold = nil
            return true
        }
    }

    // MARK: Pulling, on the link's thread

    private func take(_ event: PullEvent) {
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
            // In words, it is the stream's end, not the link's.
            let isClean = if case .ended = error { true } else { false }
            self.endPublisher(isClean ? .clientStopped : .connectionLost)
        }
    }

    private func open(_ run: Int, way: [String]) {
        Task {
            do throws(PullRefusal) {
                let publisher = try await PullPublisher.begin(
                    self.task.path, task: self.task.id, from: self.status?.remoteAddress ?? "", way: way, core: self.core
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
                self.hold(error.reason, error.text)
            }
        }
    }

    /// Dropped, forbidden or taken over here.
    private func ended(by end: PushEnd) {
        guard end != .serverShutdown else { return self.stop("server_shutdown") }
        self.hold(end.rawValue, "ended here: \(end.rawValue)")
    }

    private func endPublisher(_ end: PushEnd) {
        let publisher = self.state.withLock { state in
            defer { state.publisher = nil }
            return state.publisher
        }
        publisher?.leave(end)
    }
}
