import Logging
import NIOCore
package import Relay
import ServerConfiguration
package import Sockets
package import Support
import Synchronization
package import Trace

/// A connection that publishes or plays, in any protocol. Loop-bound.
package protocol LiveConnection: AnyObject {
    /// The id in `GET /sessions`.
    var id: UInt64 { get }
    /// Checks the deadlines, every 250 ms.
    func sweep(nowMs: Int64)
    /// Asks the client to connect again, to `tcURL` or to the same address. Returns false if the client cannot be asked: the protocol has no such
    /// request, the client has not announced support for it, or the connection is ending.
    func askToReconnect(to tcURL: String?) -> Bool
    /// Announces the shutdown in the connection's protocol, then closes.
    func shutDown(_ reason: CloseReason)
    func close(_ reason: CloseReason, detail: String?)
    /// Whether it plays one of these streams as this user.
    func plays(as user: String, _ paths: Set<ExactText>) -> Bool
    /// Whether it publishes one of them as this user.
    func publishes(as user: String, _ paths: Set<ExactText>) -> Bool
    func snapshot() -> SessionSnapshot
    /// Adds what it has sent and received so far.
    func count(into figures: inout LoopFigures)
    /// Its flight recorder; nil while nothing has happened to it lately.
    var trace: SessionTrace? { get }
}

extension LiveConnection {
    /// Only RTMP can ask a client to reconnect.
    package func askToReconnect(to tcURL: String?) -> Bool { false }
}

extension SocketLoop: TurnTaking {}

/// The server's state on one event loop: its relay and its connections, whose deadlines the loop's sweeper checks.
///
/// `@unchecked Sendable`: every stored `var` is touched on the relay's event loop only.
package final class LoopContext: Sweepable, @unchecked Sendable {
    package let relay: RelayLoop
    package let sockets: SocketLoop
    package var turns: any TurnTaking { self.sockets }
    /// New viewers that wait until the loop accepts some again.
    package let joins: JoinQueue
    private let log: Logger
    private var overload = OverloadReport()
    private var connections: [UInt64: any LiveConnection] = [:]
    private let sweeper: LoopSweeper
    private var paces: UInt = 0
    /// Bytes of plays and pushes that are over.
    private var endedTraffic: [SessionSnapshot.Transport: LoopFigures.Traffic] = [:]
    /// Streams whose own figures are in its reports.
    private let shown: [StreamPattern]
    private let lastReport = Mutex(LoopReport())

    init(_ eventLoop: SocketLoop, _ policy: RelayPolicy, _ sweeper: LoopSweeper, shown: [StreamPattern], _ log: Logger) {
        self.shown = shown
        self.log = log
        self.sweeper = sweeper
        self.sockets = eventLoop
        self.relay = RelayLoop(eventLoop: eventLoop, encoder: RTMPEncoder(), policy: policy, turns: eventLoop)
        self.joins = JoinQueue(self.relay)
    }

    func start() {
        self.relay.start()
        self.relay.run { _ in
            self.relay.whenSwept = { [weak self] in self?.keepPace() }
            self.sweeper.add(self)
        }
    }

    func stop() {
        self.relay.stop()
        self.relay.run { _ in
            self.sweeper.remove(self)
            self.relay.whenSwept = nil
            self.joins.close()
        }
    }

    package func add(_ connection: any LiveConnection) { self.connections[connection.id] = connection }

    package func remove(_ connection: any LiveConnection) { self.connections[connection.id] = nil }

    package func sweep(nowMs: Int64) {
        for connection in Array(self.connections.values) { connection.sweep(nowMs: nowMs) }
    }

    /// Logs when overload begins or ends, and serves the join queue. Runs with each sweep of the relay.
    private func keepPace() {
        let nowMs = self.relay.nowMs
        let pressure = self.relay.pressure
        switch self.overload.note(isOverloaded: pressure.level == .overloaded, nowMs: nowMs) {
        case .began:
            self.log.warning(
                "An event loop is overloaded: new viewers wait, and are refused after two seconds", metadata: ["lagMs": "\(pressure.lagMs)"]
            )
        case .ended: self.log.info("The event loop is no longer overloaded", metadata: ["lagMs": "\(pressure.lagMs)"])
        case nil: break
        }
        self.joins.sweep(nowMs: nowMs)
        if self.paces % Self.reportPaces == 0 { self.makeReport(nowMs: nowMs) }
        self.paces &+= 1
    }

    // MARK: Reports

    /// Relay sweeps between two reports; ten are one second.
    private static let reportPaces: UInt = 10

    /// The figures as of the last second. Any thread.
    package var report: LoopReport { self.lastReport.withLock { $0 } }

    /// Counts what an ended play or push has transferred. On the loop, when the connection no longer counts it.
    func ended(_ transport: SessionSnapshot.Transport, received: UInt64 = 0, sent: UInt64 = 0) {
        self.endedTraffic[transport, default: LoopFigures.Traffic()].received &+= received
        self.endedTraffic[transport, default: LoopFigures.Traffic()].sent &+= sent
    }

    private func makeReport(nowMs: Int64) {
        var figures = LoopFigures(isByStream: false)
        self.countConnections(into: &figures)
        let report = LoopReport(atMs: nowMs, figures, ended: self.endedTraffic, self.relay, shown: self.shown)
        self.lastReport.withLock { $0 = report }
    }

    // MARK: Connections

    /// Returns how many clients were asked.
    func askAllToReconnect(to tcURL: String?) -> Int {
        Array(self.connections.values).count { $0.askToReconnect(to: tcURL) }
    }

    /// Asks the matching connections. On the loop.
    func ask(to tcURL: String?, where matches: (any LiveConnection) -> Bool) -> ReconnectOutcome {
        var outcome = ReconnectOutcome()
        for connection in self.connections.values.filter(matches) {
            if connection.askToReconnect(to: tcURL) { outcome.asked += 1 } else { outcome.unable += 1 }
        }
        return outcome
    }

    func closeAll(_ reason: CloseReason) {
        for connection in Array(self.connections.values) { connection.shutDown(reason) }
    }

    /// Closes the matching connections and returns their number. On the loop.
    func close(_ reason: CloseReason, _ detail: String, where matches: (any LiveConnection) -> Bool) -> Int {
        let due = self.connections.values.filter(matches)
        for connection in due { connection.close(reason, detail: detail) }
        return due.count
    }

    func countConnections(into figures: inout LoopFigures) {
        for connection in self.connections.values { connection.count(into: &figures) }
    }

    /// The trace of this connection if it is one of the loop's; without entries if it has none. On the loop.
    package func trace(of id: UInt64) -> TraceReport? {
        self.connections[id].map { TraceReport($0.trace, of: id, nowMs: self.relay.nowMs) }
    }

    /// The connection with this id; nil if it is on another loop, or gone. On the loop.
    func sessionSnapshot(of id: UInt64) -> SessionSnapshot? { self.connections[id]?.snapshot() }

    /// One entry per connection, for the API. On the loop.
    package func sessionSnapshots() -> [SessionSnapshot] { self.connections.values.map { $0.snapshot() } }
}
