import Logging
import NIOCore
package import Relay
package import Support

/// A connection that publishes or plays, in any protocol. Loop-bound.
package protocol LiveConnection: AnyObject {
    /// The id in `GET /sessions`.
    var id: UInt64 { get }
    /// Checks the deadlines, every 250 ms.
    func sweep(nowMs: Int64)
    /// Announces the shutdown in the connection's protocol, then closes.
    func shutDown(_ reason: CloseReason)
    func close(_ reason: CloseReason, detail: String?)
    /// Whether it plays one of these streams as this user.
    func plays(as user: String, _ paths: Set<String>) -> Bool
    /// Whether it publishes one of them as this user.
    func publishes(as user: String, _ paths: Set<String>) -> Bool
    func snapshot() -> SessionSnapshot
}

/// The server's state on one event loop: its relay, its connections, and one timer for all their deadlines.
///
/// `@unchecked Sendable`: every stored `var` is touched on the relay's event loop only.
package final class LoopContext: @unchecked Sendable {
    package let relay: RelayLoop
    package let turns: LoopTurns
    /// New viewers that wait until the loop accepts some again.
    package let joins: JoinQueue
    private let log: Logger
    private var overload = OverloadReport()
    private var connections: [UInt64: any LiveConnection] = [:]
    private var sweepTask: RepeatedTask?

    private static let sweepInterval = TimeAmount.milliseconds(250)

    init(_ eventLoop: any EventLoop, _ policy: RelayPolicy, _ log: Logger) {
        self.log = log
        self.turns = LoopTurns(eventLoop)
        self.relay = RelayLoop(eventLoop: eventLoop, encoder: RelayEncoder(), policy: policy, turns: self.turns)
        self.joins = JoinQueue(self.relay)
    }

    func start() {
        self.relay.start()
        self.relay.run { _ in
            self.turns.open()
            self.relay.whenSwept = { [weak self] in self?.keepPace() }
            self.sweepTask = self.relay.eventLoop.scheduleRepeatedTask(
                initialDelay: Self.sweepInterval, delay: Self.sweepInterval
            ) { _ in self.sweep() }
        }
    }

    func stop() {
        self.relay.stop()
        self.relay.run { _ in
            self.sweepTask?.cancel()
            self.sweepTask = nil
            self.turns.close()
            self.relay.whenSwept = nil
            self.joins.close()
        }
    }

    package func add(_ connection: any LiveConnection) {
        self.connections[connection.id] = connection
    }

    package func remove(_ connection: any LiveConnection) {
        self.connections[connection.id] = nil
    }

    private func sweep() {
        let nowMs = self.relay.nowMs
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

    /// One entry per connection, for the API. On the loop.
    package func sessionSnapshots() -> [SessionSnapshot] {
        self.connections.values.map { $0.snapshot() }
    }
}
