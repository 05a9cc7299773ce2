import Access
import Listening
package import Logging
import NIOCore
import RTMP
import Relay
import ServerConfiguration
package import Streaming
package import Support
import Synchronization
package import Trace

/// A viewer over HLS: requests that carry its token, without a connection. It counts as gone after a silence. It is counted, listed and ended as a
/// viewer of its stream.
///
/// Lives on its stream's home loop; requests arrive on any thread and touch only what the lock protects.
package final class HLSSession: LiveConnection, Sendable {
    package let id: UInt64
    package let path: String
    /// The stream's name in the addresses of its files, as the player asked for it.
    var asked: String { self.play.request.asked.path }
    package let token: String
    /// Hexadecimal digits.
    static let tokenLength = 32
    /// The form of its segments, by the address that it asked for.
    let container: ServerConfig.HLS.Container
    /// Nil for a viewer that its address alone admitted.
    package let caller: VerifiedCaller?
    private let play: PlaySession
    private let client: String?
    private let sessions: HLSSessions
    private let connections: Connections
    private let loop: LoopContext
    private let openedMs: Int64
    private let state: Mutex<State>
    /// Its flight recorder. On the loop.
    private let recorder: NIOLoopBoundBox<SessionTrace?>

    private struct State {
        var lastSeenMs: Int64
        /// Time of the last request that its place knows of.
        var rankedMs: Int64 = 0
        /// The spelling of its folder that it last asked with.
        var folder: String?
        /// Requests that its recorder does not know yet.
        var untraced: [Traced] = []
        package var requests = 0
        package var bytesOut: UInt64 = 0
        package var isOver = false
        /// Last segment in the last playlist sent for a request without directives.
        package var lastListed: Int?
        var hasStart: Bool?
        var hasFinalPlaylist = false
    }

    /// A request and its answer.
    private struct Traced {
        let atMs: Int64
        let method: String
        let uri: String
        let status: Int
    }

    /// A viewer without a request for this long counts as gone. Players ask at least once per target duration.
    private static let silenceMs: Int64 = 30_000
    /// A player without a request for this long after the final playlist has what it wants, or is gone.
    private static let finishedMs: Int64 = 2_000
    private static let rankMs: Int64 = 1_000

    /// The caller has taken its place. On `loop`, where `play` has begun.
    init(
        _ play: PlaySession, _ container: ServerConfig.HLS.Container, client: String?, caller: VerifiedCaller?, sessions: HLSSessions,
        connections: Connections, loop: LoopContext
    ) {
        self.id = play.request.session
        self.path = play.stream.path
        self.token = SecretText.hex((0..<Self.tokenLength / 2).map { _ in UInt8.random(in: 0...255) })
        self.container = container
        self.caller = caller
        self.play = play
        self.client = client
        self.sessions = sessions
        self.connections = connections
        self.loop = loop
        self.openedMs = loop.relay.nowMs
        self.state = Mutex(State(lastSeenMs: loop.relay.nowMs))
        self.recorder = NIOLoopBoundBox(nil, eventLoop: loop.relay.eventLoop)
    }

    /// Any thread.
    var isOver: Bool { self.state.withLock { $0.isOver } }

    /// Records a request of the player, or the bytes of its answer. Any thread.
    package func touch(bytes: Int = 0) {
        let nowMs = LoopSweeper.nowMs
        let isNews = self.state.withLock { state in
            guard !state.isOver else { return false }
            state.lastSeenMs = self.loop.relay.nowMs
            state.requests += bytes == 0 ? 1 : 0
            state.bytesOut &+= UInt64(bytes)
            // All players share one table of places.
            let isNews = nowMs - state.rankedMs >= Self.rankMs
            if isNews { state.rankedMs = nowMs }
            return isNews
        }
        if isNews { self.connections.hls.seen(self.id, nowMs: nowMs) }
    }

    /// Last segment that a playlist without directives has shown the player. Any thread.
    package var lastListed: Int? { self.state.withLock { $0.lastListed } }

    /// Whether its playlists have EXT-X-START; nil before the first. Any thread.
    var hasStart: Bool? { self.state.withLock { $0.hasStart } }

    /// Any thread.
    func gotPlaylist(hasStart: Bool, isFinal: Bool) {
        self.state.withLock { state in
            state.hasStart = hasStart
            if isFinal { state.hasFinalPlaylist = true }
        }
    }

    var folder: String? {
        get { self.state.withLock { $0.folder } }
        set { self.state.withLock { $0.folder = newValue } }
    }

    /// Whether the player has the playlist that ends the stream, and asks for no more segments. Any thread.
    func hasFinished(nowMs: Int64) -> Bool {
        self.state.withLock { $0.isOver || $0.hasFinalPlaylist && nowMs - $0.lastSeenMs >= Self.finishedMs }
    }

    package func listed(_ last: Int) { self.state.withLock { $0.lastListed = last } }

    // MARK: LiveConnection

    package func sweep(nowMs: Int64) {
        let oldestMs = self.state.withLock { $0.untraced.first?.atMs }
        if let oldestMs, self.loop.relay.nowMs - oldestMs > Self.untracedMs { self.recordRequests() }
        if self.recorder.value?.isQuiet(nowMs: nowMs) == true { self.recorder.value = nil }
        if self.state.withLock({ nowMs - $0.lastSeenMs >= Self.silenceMs }) { self.close(.clientClosed, detail: nil) }
    }

    package func shutDown(_ reason: CloseReason) { self.close(reason, detail: nil) }

    /// Closes the session. Any thread.
    package func end(_ reason: CloseReason) {
        self.loop.relay.eventLoop.execute { self.close(reason, detail: nil) }
    }

    package func close(_ reason: CloseReason, detail: String?) {
        let wasOpen = self.state.withLock { state in
            defer { state.isOver = true }
            return !state.isOver
        }
        guard wasOpen else { return }
        self.sessions.remove(self)
        self.loop.remove(self)
        self.connections.hls.leave(self.id)
        let (requests, bytes) = self.state.withLock { ($0.requests, $0.bytesOut) }
        self.play.end(reason, PlaySession.Figures(bytes: bytes))
        self.connections.counters.update { $0.closed[reason, default: 0] += 1 }
        // A session without a connection has no abnormal end that a trace could explain.
        self.recorder.value = nil
        guard self.connections.closes.pass(reason, from: HostKey.of(self.play.request.remote), nowMs: self.loop.relay.nowMs) else { return }
        var metadata = self.metadata
        metadata["reason"] = "\(reason.rawValue)"
        metadata["requests"] = "\(requests)"
        metadata["bytesOut"] = "\(bytes)"
        metadata["seconds"] = "\((self.loop.relay.nowMs - self.openedMs) / 1_000)"
        if let detail { metadata["detail"] = "\(detail)" }
        self.connections.log.info("HLS session closed", metadata: metadata)
    }

    package func count(into figures: inout LoopFigures) {
        figures.connected(by: .hls)
        figures.sent(self.state.withLock { $0.bytesOut }, of: self.play.stream)
    }

    package var metadata: Logger.Metadata {
        [
            "conn": "\(self.id)", "remote": "\(self.remote)", "role": "play", "transport": "hls", "app": "\(self.play.request.address.app)",
            "stream": "\(self.play.request.address.name)",
        ]
    }

    package var trace: SessionTrace? {
        self.recordRequests()
        return self.recorder.value
    }

    /// The recorder learns of requests this late, or when somebody reads it.
    private static let untracedMs: Int64 = 5_000
    /// As many requests as the recorder holds.
    private static let mostUntraced = 10

    /// Records a request and its answer. Any thread. A low-latency player asks ten times a second and the recorder holds a few requests, so only the
    /// newest reach it: writing each down cost a sixth of all that such a player costs.
    func trace(_ method: String, _ uri: String, _ status: Int) {
        let nowMs = self.loop.relay.nowMs
        self.state.withLock { state in
            guard !state.isOver else { return }
            if state.untraced.count == Self.mostUntraced { state.untraced.removeFirst() }
            let shown = uri.utf8.count <= EventRing.longestText ? uri : String(uri.prefix(EventRing.longestText))
            state.untraced.append(Traced(atMs: nowMs, method: method, uri: shown, status: status))
        }
    }

    private func recordRequests() {
        let untraced = self.state.withLock { state in
            defer { state.untraced.removeAll(keepingCapacity: true) }
            return state.untraced
        }
        guard let first = untraced.first else { return }
        if self.recorder.value == nil { self.recorder.value = self.connections.traces.begin(nowMs: first.atMs) }
        guard let trace = self.recorder.value else { return }
        for one in untraced where !trace.isFull(nowMs: one.atMs) {
            trace.add(TraceEntry(atMs: one.atMs, .received, .request, one.method, "\(TraceRedaction.address(one.uri)), \(one.status)"))
        }
    }

    package var remote: String { self.play.request.remote?.ipAddress ?? "unknown" }

    package func plays(as user: String, _ paths: Set<ExactText>) -> Bool {
        self.play.pass.user?.exact == user.exact && paths.contains(self.path.exact)
    }
    package func publishes(as user: String, _ paths: Set<ExactText>) -> Bool { false }

    package func snapshot() -> SessionSnapshot {
        let state = self.state.withLock { ($0.requests, $0.bytesOut) }
        let viewer = ViewerSnapshot(
            path: self.path, behindMs: 0, isSlow: false, skippedFrames: 0, bytesSent: state.1, messagesSent: UInt64(state.0),
            isPaused: false)
        return SessionSnapshot(
            id: self.id, remote: self.remote, transport: .hls, app: self.play.request.address.app, client: self.client,
            user: self.play.pass.user, bytesIn: 0, bytesOut: state.1, seconds: (self.loop.relay.nowMs - self.openedMs) / 1_000,
            publishing: [], viewers: [viewer])
    }
}
