package import Listening
package import Logging
package import ServerConfiguration
package import Support
import Synchronization

/// The drain: the time between SIGTERM, or a call to drain, and the end. Any thread.
///
/// Running pushes go on, new publishers and viewers are refused, `/readyz` says "draining", and clients that can are asked to reconnect. It ends when
/// the last push has ended, when its time limit has passed, or at a second signal.
/// ```
/// running --signal or call--> draining --last push ended, time passed, second signal--> over
/// ```
/// Before a restart, the listeners stop accepting when clients are asked to reconnect, so that reconnecting and new clients wait in the backlog for
/// the next program. Unless `drain.reconnectTo` sends them elsewhere, they are therefore asked at the end of the drain.
package final class ServerDrain: Sendable {
    private struct State {
        var begunAt: ContinuousClock.Instant?
        var end = ContinuousClock.now
        /// How many clients were asked to connect again; nil until all loops have asked theirs.
        var asked: Int?
        /// Signals since the drain began, including one that began it.
        var signals = 0
        var isOver = false
        var restarts = false
    }

    private let config: Live<ServerConfig>
    private let streams: LiveStreams
    private let publishers: ConnectionAdmission
    private let sockets: ListeningSockets
    private let log: Logger
    private let state = Mutex(State())
    private let followers = Mutex(Followers())

    /// Whether all players that ask for segments have been sent the ends of their streams, and recordings are finished.
    private let haveFinished: @Sendable () -> Bool

    private struct Followers {
        var begun: @Sendable (_ ms: Int64, _ restarts: Bool) -> Void = { _, _ in }
        var over: @Sendable () async -> Void = {}
    }

    private static let pollInterval = Duration.milliseconds(200)
    /// How long that may take once the last push has ended: a clean stop's grace, and time for two segments.
    private static let finishing = Duration.seconds(10)
    private static let reporting = Duration.seconds(10)
    /// Delay in which a call that ends the server at once still gets its answer.
    private static let answering = Duration.milliseconds(300)

    /// `publishers`: who is waited for, talkers included. `haveFinished`: whether players that ask for segments have been sent the ends of their
    /// streams, and recordings are finished.
    package init(
        _ config: Live<ServerConfig>, _ streams: LiveStreams, publishers: ConnectionAdmission, _ sockets: ListeningSockets, log: Logger,
        haveFinished: @escaping @Sendable () -> Bool
    ) {
        self.config = config
        self.streams = streams
        self.publishers = publishers
        self.sockets = sockets
        self.log = log
        self.haveFinished = haveFinished
    }

    private var pushes: Int { self.publishers.current.publishers }

    /// Sets the callbacks: `begun` when a call has begun a drain, with its time limit in milliseconds and whether the server starts again, and
    /// `over` at the end. Call before the ports open.
    package func follow(begun: @escaping @Sendable (_ ms: Int64, _ restarts: Bool) -> Void, over: @escaping @Sendable () async -> Void) {
        self.followers.withLock { $0 = Followers(begun: begun, over: over) }
        // A call ended the server before the callbacks were set.
        if self.state.withLock({ $0.isOver }) { Task { await over() } }
    }

    /// Nil before the drain begins.
    package var current: DrainState? {
        let state = self.state.withLock { $0 }
        guard state.begunAt != nil else { return nil }
        return DrainState(
            leftMs: max(0, Int64((state.end - .now) / .milliseconds(1))), pushes: self.pushes,
            viewers: self.streams.viewers,
            asked: state.asked ?? 0, restarts: state.restarts)
    }

    /// The first signal begins the drain, or joins a drain that a call has begun; the next one ends it.
    package func signalled() async {
        let (isUnderWay, signals, wasToRestart) = self.state.withLock { state in
            state.signals += 1
            defer { state.restarts = false }
            return (state.begunAt != nil, state.signals, state.restarts)
        }
        if wasToRestart { self.log.info("A signal asks for the end: the server does not start again") }
        guard isUnderWay else {
            _ = await self.begin(DrainRequest(), by: "signal", isByCall: false)
            return
        }
        guard signals == 1 else { return }
        self.log.info(
            "Draining already; a second signal ends it", metadata: ["secondsLeft": "\((self.current?.leftMs ?? 0) / 1_000)"])
    }

    /// Returns once all clients that support it were asked to reconnect; at once if there is no push to wait for.
    package func begin(_ request: DrainRequest, by who: String, isByCall: Bool) async -> DrainStart {
        let settings = self.config.drain
        let limitMs = request.timeoutMs ?? settings.timeoutMs
        let limit = Duration.milliseconds(limitMs)
        let isFirst = self.state.withLock { state in
            guard state.begunAt == nil else { return false }
            state.begunAt = .now
            state.end = .now + limit
            state.restarts = request.restarts
            return true
        }
        if let current, !isFirst { return .alreadyUnderWay(current) }
        let waits = limitMs > 0 && self.pushes > 0
        // Stop accepting first: new connections wait in the kernel for the next program. Then refuse new pushes and plays on open connections.
        if request.restarts, !waits { await self.sockets.close() }
        // Readiness must change first.
        self.streams.closeDoors()
        if isByCall { self.followers.withLock { $0 }.begun(limitMs, request.restarts) }
        let elsewhere = request.reconnectTo ?? settings.reconnectTo
        let asksAtEnd = waits && request.restarts && elsewhere == nil
        let asking = asksAtEnd ? nil : Task { await self.ask(elsewhere) }
        // The time limit runs even if the loops that ask the clients are late.
        Task { await self.run(waits, isByCall, asksAtEnd: asksAtEnd) }
        if waits {
            await asking?.value
            self.log.info(
                "Draining: nobody new is let in, running pushes may go on",
                metadata: [
                    "pushes": "\(self.pushes)", "asked": "\(self.current?.asked ?? 0)",
                    "seconds": "\(limit.components.seconds)", "by": "\(who)", "then": request.restarts ? "start again" : "end",
                ])
        } else {
            await self.requestsSent(within: Self.answering / 3)
            self.log.info(
                request.restarts ? "Ending, to start again: no push has to be waited for" : "Ending: no push has to be waited for",
                metadata: ["asked": "\(self.current?.asked ?? 0)", "by": "\(who)"])
        }
        return .begun(self.current ?? DrainState(leftMs: limitMs, pushes: 0, viewers: 0, asked: 0, restarts: request.restarts))
    }

    private func ask(_ elsewhere: String?) async {
        let asked = await self.streams.beginDrain(reconnectTo: elsewhere)
        self.state.withLock { $0.asked = asked }
    }

    private func run(_ waited: Bool, _ isByCall: Bool, asksAtEnd: Bool) async {
        if isByCall {
            try? await Task.sleep(for: Self.answering)
        } else if !waited {
            await self.requestsSent(within: Self.answering)
        }
        let why = await self.wait()
        if waited { await self.finish() }
        if self.state.withLock({ $0.restarts }) { await self.sockets.close() }
        if asksAtEnd {
            Task { await self.ask(nil) }
            await self.requestsSent(within: Self.answering)
        }
        if waited { self.log.info("Drained", metadata: ["why": "\(why)", "pushes": "\(self.pushes)"]) }
        self.state.withLock { $0.isOver = true }
        await self.followers.withLock { $0 }.over()
    }

    /// Waits until all clients have been asked to reconnect, because their connections may close at once afterwards.
    private func requestsSent(within limit: Duration) async {
        let end = ContinuousClock.now + limit
        while self.state.withLock({ $0.asked == nil }), .now < end { try? await Task.sleep(for: .milliseconds(5)) }
    }

    private func wait() async -> String {
        let clock = ContinuousClock()
        var next = clock.now + Self.reporting
        while self.pushes > 0 {
            let (end, signals) = self.state.withLock { ($0.end, $0.signals) }
            guard clock.now < end else { return "the time has passed" }
            guard signals < 2 else { return "a second signal" }
            if clock.now >= next {
                next += Self.reporting
                self.log.info(
                    "Draining",
                    metadata: ["pushes": "\(self.pushes)", "secondsLeft": "\((end - clock.now).components.seconds)"])
            }
            do { try await Task.sleep(for: Self.pollInterval) } catch { return "cancelled" }
        }
        return "all pushes have ended"
    }

    /// Lets HLS players fetch the last segments and the playlist that says so, and recordings become seekable. A restart does neither: it goes on
    /// with the streams.
    private func finish() async {
        let last = ContinuousClock.now + Self.finishing
        while !self.haveFinished() {
            let (end, signals, restarts) = self.state.withLock { ($0.end, $0.signals, $0.restarts) }
            guard !restarts, signals < 2, .now < min(end, last) else { return }
            do { try await Task.sleep(for: Self.pollInterval) } catch { return }
        }
    }
}
