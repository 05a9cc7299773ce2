import Logging
import Media
import NIOCore
import Relay
import Rooms
import Synchronization
import Upstream

/// One relay task as it runs: its link, and what joins that to the stream here. Any thread.
///
/// A push runs while its stream is live; a pull runs always, or while somebody plays.
final class RelayLink: Sendable {
    let task: RelayTask
    private let core: ServerCore
    private let link: Mutex<UpstreamTask?>
    private let state = Mutex(State())

    private struct State {
        var tap: PushTap?
        var publisher: PullPublisher?
        /// Frames that came while the room was being asked.
        var early: [Frame] = []
        var earlyBytes = 0
        var isOpening = false
        /// A connection's number, so that a late answer does not count for the next one.
        var run = 0
        /// Why the pull is not published here.
        var refusal: String?
        var lastWantedMs: Int64 = 0
        var isDeleted = false

        /// Headers stay: what comes next is decoded with them.
        mutating func forgetEarly() {
            self.early.removeAll { !$0.isSequenceHeader && $0.kind != .data }
            self.earlyBytes = 0
        }
    }

    /// A pull on demand without a viewer ends after this long.
    private static let idleMs: Int64 = 30_000
    private static let earlyLimit = (frames: 2_000, bytes: 16 << 20)

    init(_ task: RelayTask, core: ServerCore) throws(UpstreamError) {
        self.task = task
        self.core = core
        self.link = Mutex(nil)
        let url = try UpstreamURL(parsing: task.url)
        let rules = TargetRules(allowPrivate: core.config.outbound.allowPrivate)
        let options = UpstreamOptions { rules.objection(to: $0) }
        let tell: @Sendable (UpstreamState) -> Void = { [weak self] in self?.changed(to: $0) }
        switch task.direction {
        case .push:
            let made = UpstreamTask.push(url, options: options, name: "push \(task.id)", onState: tell)
            self.link.withLock { $0 = made }
        case .pull:
            let made = UpstreamTask.pull(url, options: options, name: "pull \(task.id)", onState: tell) { [weak self] in self?.take($0) }
            self.link.withLock { $0 = made }
        }
    }

    private var upstream: UpstreamTask? { self.link.withLock { $0 } }
    var status: UpstreamStatus? { self.upstream?.status }
    /// Why it is not published here; nil when it is, or is a push.
    var refusal: String? { self.state.withLock { $0.refusal } }

    var isPublishing: Bool { self.state.withLock { $0.publisher != nil } }

    private func changed(to state: UpstreamState) {
        var metadata: Logger.Metadata = [
            "task": "\(self.task.id)", "direction": "\(self.task.direction.rawValue)", "stream": "\(self.task.path)",
            "state": "\(state.word)",
        ]
        if let error = self.upstream?.status.lastError, state.word != "running" { metadata["lastError"] = "\(error)" }
        self.core.log.info("Relay task", metadata: metadata)
    }

    // MARK: Life

    /// When the server starts or the task is made.
    func begin() {
        switch self.task.direction {
        case .pull: if !self.task.onDemand { self.upstream?.start() }
        case .push: self.streamBegan()
        }
    }

    /// For good.
    func delete() {
        self.state.withLock { $0.isDeleted = true }
        self.upstream?.stop()
        self.endTap()
        self.endPublisher(.clientStopped)
    }

    /// The stream here has a publisher: a push begins.
    func streamBegan() {
        guard self.task.direction == .push, self.state.withLock({ $0.tap == nil && !$0.isDeleted }) else { return }
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

    /// Somebody wants to play the stream.
    func wanted() {
        guard self.task.direction == .pull, self.task.onDemand else { return }
        let isDeleted = self.state.withLock { state in
            state.lastWantedMs = LoopSweeper.nowMs
            return state.isDeleted
        }
        if !isDeleted { self.upstream?.start() }
    }

    /// Every second or so.
    func sweep(nowMs: Int64) {
        let path = self.task.path.description
        let stream = self.core.registry.find(path)
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
                self.upstream?.stop()
            }
        case .pull:
            guard self.task.onDemand, let link = self.upstream else { return }
            if (stream?.viewerCount ?? 0) > 0 { self.state.withLock { $0.lastWantedMs = nowMs } }
            let isIdle = self.state.withLock { nowMs - $0.lastWantedMs >= Self.idleMs }
            if isIdle, link.state != .idle, link.state != .stopped { link.stop() }
        }
    }

    private func endTap() {
        let tap = self.state.withLock { state in
            defer { state.tap = nil }
            return state.tap
        }
        guard let tap else { return }
        RelayLoop.remove(tap, from: tap.stream)
        self.core.registry.release(tap.stream)
    }

    // MARK: Pulling, on the link's thread

    private func take(_ event: PullEvent) {
        switch event {
        case .started: break
        case .frame(let frame):
            let publisher = self.state.withLock { state -> PullPublisher? in
                guard state.publisher == nil else { return state.publisher }
                guard !state.isDeleted, state.refusal == nil else { return nil }
                state.early.append(frame)
                state.earlyBytes += frame.payload.readableBytes
                if state.early.count > Self.earlyLimit.frames || state.earlyBytes > Self.earlyLimit.bytes { state.forgetEarly() }
                guard !state.isOpening else { return nil }
                state.isOpening = true
                self.open(state.run)
                return nil
            }
            publisher?.publish(frame)
        case .ended(let error):
            self.state.withLock { state in
                state.run += 1
                state.early = []
                state.isOpening = false
                state.refusal = nil
            }
            // In words, it is the stream's end, not the link's.
            let isClean = if case .ended = error { true } else { false }
            self.endPublisher(isClean ? .clientStopped : .connectionLost)
        }
    }

    private func open(_ run: Int) {
        Task {
            do throws(PullRefusal) {
                let publisher = try await PullPublisher.begin(
                    self.task.path, task: self.task.id, from: self.status?.remoteAddress ?? "", core: self.core
                ) { [weak self] end in self?.ended(by: end) }
                let isCurrent = self.state.withLock { state in
                    guard state.run == run, !state.isDeleted else { return false }
                    // Under the lock, so that the next frame does not overtake them.
                    for frame in state.early { publisher.publish(frame) }
                    state.early = []
                    state.publisher = publisher
                    return true
                }
                if !isCurrent { publisher.leave(.connectionLost) }
            } catch {
                self.state.withLock { state in
                    guard state.run == run else { return }
                    state.refusal = error.text
                    state.early = []
                }
                self.core.log.warning("Relay task", metadata: ["task": "\(self.task.id)", "refused": "\(error.text)"])
            }
        }
    }

    /// Dropped, forbidden or taken over here. What still comes is not published; a drop may begin anew with the next connection.
    private func ended(by end: PushEnd) {
        self.state.withLock { state in
            state.publisher = nil
            state.refusal = "ended here: \(end.rawValue)"
        }
        self.upstream?.stop()
    }

    private func endPublisher(_ end: PushEnd) {
        let publisher = self.state.withLock { state in
            defer { state.publisher = nil }
            return state.publisher
        }
        publisher?.leave(end)
    }
}
