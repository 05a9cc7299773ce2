package import LinkTransport
import Logging
import Media
import NIOCore
import Outbound
import Relay
import RoomRegistry
package import Rooms
import ServerConfiguration
import Streaming
import Support
import Synchronization

/// A link that is kept up: connects its client to the stream on this server. Any thread.
///
/// A push runs while its stream is live; a pull runs always, or on demand while somebody plays. A pull that this server refuses (forbidden, dropped,
/// the name has another publisher) is held, and retried later.
package final class RunningLink: Sendable {
    package let link: Link
    package let url: LinkURL
    private let table: LinkTable
    private let reporter: LinkReporter
    private let made: Mutex<LinkClient?>
    private let state = Mutex(State())

    private struct State {
        var push: Push?
        var pull = PullMachine<PullPublisher>()
        var need = Need.here
        /// The way of the pulled stream, as the other server states it.
        var way: [String] = []
        /// The last failure that was logged.
        var toldError: LinkError?
    }

    /// A push that runs.
    private struct Push {
        let tap: PushTap
        /// The way last sent to the other server.
        var toldWay: [String]?
    }

    /// For whom a pull runs.
    private enum Need {
        /// For all, on this node or on another that shares the rooms.
        case here, elsewhere
        /// For viewers; when the last was seen, by the steady clock.
        case viewers(lastMs: Int64)
    }

    /// A pull on demand without a viewer ends after this long.
    private static let idleMs: Int64 = 30_000
    /// Servers are set to drop idle publishers after five seconds or more.
    private static let keepAliveMs = 2_000

    init(_ link: Link, of table: LinkTable) throws(LinkError) {
        self.link = link
        self.table = table
        self.made = Mutex(nil)
        let url = try LinkURL(parsing: link.url)
        self.url = url
        self.reporter = LinkReporter(link, target: url.redacted, rooms: table.rooms)
        let rules = TargetRules(allowPrivate: table.config.outbound.allowPrivate)
        var options = LinkOptions { rules.objection(to: $0) }
        // While the stream waits for its publisher, other servers would drop a push that sends nothing: nginx-rtmp after its drop_idle_publisher.
        options.keepAliveMs = Self.keepAliveMs
        options.shortage = { OpenDescriptors.mayOpen($0) ? nil : OpenDescriptors.advice }
        let notify: @Sendable (LinkState) -> Void = { [weak self, reporter = self.reporter] state in
            if let self { self.changed(to: state) } else { reporter.changed(state, error: nil) }
        }
        options.connectProperties = { [weak self] in self.map { [(LoopDetector.property, $0.marks())] } ?? [] }
        switch link.direction {
        case .push:
            let client = LinkClient.push(url, options: options, name: "push \(link.id)", onState: notify)
            self.made.withLock { $0 = client }
        case .pull:
            options.wayObjection = (LoopDetector.property, { [weak self] in self?.objection(to: $0) })
            let client = LinkClient.pull(url, options: options, name: "pull \(link.id)", onState: notify) { [weak self] in self?.receive($0)
            }
            self.made.withLock { $0 = client }
        }
    }

    private var client: LinkClient? { self.made.withLock { $0 } }
    package var status: LinkStatus? { self.client?.status }
    /// The reason why the pull is held; nil when it is not.
    package var heldFor: String? { self.state.withLock { $0.pull.heldFor } }

    var isPublishing: Bool { self.state.withLock { $0.pull.publisher != nil } }
    var received: (path: String, bytes: UInt64)? { self.state.withLock { $0.pull.publisher }?.received }

    /// On the link's thread.
    private func changed(to state: LinkState) {
        let error = self.client?.status.lastError
        self.reporter.changed(state, error: error)
        var metadata: Logger.Metadata = [
            "link": "\(self.link.id)", "direction": "\(self.link.direction.rawValue)", "stream": "\(self.link.path)",
            "state": "\(state.word)",
        ]
        if let error, state.word != "running" { metadata["lastError"] = "\(error)" }
        self.table.log.log(level: self.level(of: state, error), "Link", metadata: metadata)
    }

    /// Logs repeated failures at debug level.
    private func level(of state: LinkState, _ error: LinkError?) -> Logger.Level {
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
        self.client?.stop()
    }

    // MARK: Loops

    /// The marks sent to the other server, to find loops. On the link's thread.
    private func marks() -> String {
        let path = self.link.path.description
        guard self.link.direction == .push else { return LoopDetector.text(self.table.streams.origins.sinks(of: path)) }
        let way = self.table.streams.origins.way(of: path)
        self.state.withLock { $0.push?.toldWay = way }
        return LoopDetector.text(way)
    }

    /// Checks the pulled stream's way, as the other server states it; returns the objection, if any. On the link's thread.
    private func objection(to text: String) -> String? {
        let way = LoopDetector.marks(text)
        let path = self.link.path.description
        if let why = self.table.streams.origins.objection(to: way, feeding: path) { return why }
        let changed = self.state.withLock { state -> PullPublisher? in
            defer { state.way = way }
            return state.way == way ? nil : state.pull.publisher
        }
        if let changed {
            self.table.streams.origins.cameIn(path, way, owner: changed.owner)
            self.table.streamBegan(path)
        }
        return nil
    }

    // MARK: Life

    /// Called when the server starts or the link is created.
    package func begin() {
        switch self.link.direction {
        case .pull:
            guard !self.link.onDemand else { return self.state.withLock { $0.need = .viewers(lastMs: -Self.idleMs) } }
            // Where nodes share the rooms, one of them pulls.
            let isElsewhere = !self.table.rooms.isKeeper
            self.state.withLock { $0.need = isElsewhere ? .elsewhere : .here }
            if !isElsewhere { self.client?.start() }
        case .push: self.streamBegan()
        }
    }

    /// Ends the link for good; `reason` goes into its last event.
    package func delete(_ reason: String) {
        let publisher = self.state.withLock { $0.pull.delete() }
        self.reporter.ended(reason)
        self.client?.stop()
        self.endTap()
        publisher?.leave(.clientStopped)
    }

    /// Starts a push when the stream here has a publisher.
    func streamBegan() {
        guard self.link.direction == .push, self.state.withLock({ !$0.pull.isDeleted }) else { return }
        guard self.state.withLock({ $0.push == nil }) else { return self.reportWay() }
        let path = self.link.path.description
        Task {
            let found = await self.table.streams.onHome(of: path) { [streams = self.table.streams] home, stream -> Relay.Stream? in
                guard let snapshot = home.snapshot(of: stream)?.stream, snapshot.phase != .idle else { return nil }
                return streams.registry.acquire(path, on: home)
            }
            guard let found, let stream = found, let client = self.client else { return }
            let tap = PushTap(stream, client)
            let isFirst = self.state.withLock { state in
                guard state.push == nil, !state.pull.isDeleted else { return false }
                state.push = Push(tap: tap)
                return true
            }
            guard isFirst else { return self.table.streams.registry.release(stream) }
            RelayLoop.add(tap, to: stream)
            client.start()
        }
    }

    /// Reconnects if the stream's new publisher came another way.
    private func reportWay() {
        let way = self.table.streams.origins.way(of: self.link.path.description)
        guard self.state.withLock({ $0.push?.toldWay.map { $0 != way } ?? false }) else { return }
        self.stop("way_changed")
        self.client?.start()
    }

    /// Starts an on-demand pull for a player.
    package func wanted() {
        guard self.link.direction == .pull, self.link.onDemand else { return }
        let mayStart = self.state.withLock { state in
            state.need = .viewers(lastMs: LoopSweeper.nowMs)
            return state.pull.mayStart
        }
        if mayStart { self.client?.start() }
    }

    /// Starts and stops the link as needed. Call about once a second.
    package func sweep(nowMs: Int64) {
        let path = self.link.path.description
        switch self.link.direction {
        case .push:
            guard let tap = self.state.withLock({ $0.push?.tap }) else { return }
            // The stream is over or has been replaced: a tap belongs to one stream.
            Task {
                let isLive = await self.table.streams.onHome(of: path) { home, stream in
                    stream === tap.stream && home.snapshot(of: stream).map { $0.stream.phase != .idle } == true
                }
                guard isLive != true else { return }
                self.endTap()
                self.stop("stream_ended")
                // A publisher that arrived meanwhile found the old tap, so check again.
                self.streamBegan()
            }
        case .pull:
            guard let client = self.client else { return }
            if self.link.onDemand, (self.table.streams.registry.find(path)?.viewerCount ?? 0) > 0 {
                self.state.withLock { $0.need = .viewers(lastMs: nowMs) }
            }
            let want = self.want(nowMs: nowMs)
            if self.goesOn(path, nowMs: nowMs) {
                if want == .rests { self.reporter.rests(self.whyNot) } else { client.start() }
            } else if want == .rests, client.state != .idle, client.state != .stopped {
                self.stop(self.whyNot)
            } else if want == .starts {
                client.start()
            }
        }
    }

    private enum Want { case runs, starts, rests }

    /// Why a pull rests, in its events.
    private var whyNot: String { self.link.onDemand ? "no_viewer" : "other_node" }

    /// Whether a pull is to run. It starts, too, when this node takes it over.
    private func want(nowMs: Int64) -> Want {
        let (isHere, isElsewhere) = (self.table.rooms.isKeeper, self.table.rooms.isKeptElsewhere)
        return self.state.withLock { state in
            switch state.need {
            case .viewers(let lastMs): return nowMs - lastMs < Self.idleMs ? .runs : .rests
            case .elsewhere:
                guard isHere else { return .rests }
                state.need = .here
                return state.pull.mayStart ? .starts : .runs
            // Media does not wait for the database: what runs goes on until another node is known to have it.
            case .here:
                guard isElsewhere else { return .runs }
                state.need = .elsewhere
                return .rests
            }
        }
    }

    private func endTap() {
        let tap = self.state.withLock { state in
            defer { state.push = nil }
            return state.push?.tap
        }
        guard let tap else { return }
        RelayLoop.remove(tap, from: tap.stream)
        self.table.streams.registry.release(tap.stream)
    }

    // MARK: Holding a pull

    /// Stops a pull that is refused here; retries as if its connection had broken.
    private func hold(_ reason: String, _ words: String) {
        let (nowMs, random) = (LoopSweeper.nowMs, Double.random(in: 0..<1))
        let isNew = self.state.withLock { $0.pull.hold(words, nowMs: nowMs, random: random) }
        guard isNew else { return }
        self.reporter.held(reason, words)
        self.client?.stop()
        self.table.log.warning("Link held", metadata: ["link": "\(self.link.id)", "stream": "\(self.link.path)", "why": "\(words)"])
    }

    /// Ends an expired hold; returns whether there was one.
    private func goesOn(_ path: String, nowMs: Int64) -> Bool {
        guard self.table.rooms.playRefusal(path) == nil else { return false }
        return self.state.withLock { $0.pull.goesOn(nowMs: nowMs) }
    }

    // MARK: Pulling, on the link's thread

    private func receive(_ event: PullEvent) {
        switch event {
        case .started: break
        case .frame(let frame):
            let (action, way) = self.state.withLock { ($0.pull.received(frame), $0.way) }
            switch action {
            case .publish(let publisher): publisher.publish(frame)
            case .open(let run): self.open(run, way: way)
            case .wait: break
            }
        case .ended(let error):
            let publisher = self.state.withLock { $0.pull.connectionEnded() }
            // The other server announced the stream's end; the connection did not break.
            let isClean = if case .ended = error { true } else { false }
            publisher?.leave(isClean ? .clientStopped : .connectionLost)
        }
    }

    private func open(_ run: Int, way: [String]) {
        Task {
            do throws(PullRefusal) {
                let publisher = try await PullPublisher.begin(
                    self.link.path, link: self.link.id, from: self.status?.remoteAddress ?? "", way: way, for: self.table
                ) { [weak self] end in self?.ended(by: end) }
                let nowMs = LoopSweeper.nowMs
                let isCurrent = self.state.withLock { state in
                    guard let early = state.pull.opened(publisher, run: run, nowMs: nowMs) else { return false }
                    // Under the lock, so that the next frame does not overtake them.
                    for frame in early { publisher.publish(frame) }
                    return true
                }
                if !isCurrent { publisher.leave(.connectionLost) }
            } catch {
                guard self.state.withLock({ $0.pull.isCurrent(run) }) else { return }
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
}
