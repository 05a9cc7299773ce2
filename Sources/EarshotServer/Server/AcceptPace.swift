import NIOCore
import Relay
import Synchronization

/// How many new connections are let in at a time, by how late the loops are. Any thread.
///
/// A join costs a loop as much as tens of sends. Where all loops are late, only so many may be on their way to a stream at a time as the
/// loops' windows say; the next ones wait in the listener's backlog, which costs nothing.
final class AcceptPace: Sendable {
    private let pressures: [LoopPressure]
    /// Of the loops' windows: connections of some kinds cost less.
    private let factor: Int
    /// A connection counts for so long at most: one that does nothing must not keep others out.
    private let openingMs: Int64
    /// When connections came that neither play nor publish yet.
    private let opening = Mutex<[ObjectIdentifier: Int64]>([:])
    /// Listeners that have no room, to be called when there is some.
    private let waiting = Mutex<[@Sendable () -> Void]>([])

    init(_ pressures: [LoopPressure], factor: Int = 1, openingMs: Int64 = 500) {
        self.pressures = pressures
        self.factor = factor
        self.openingMs = openingMs
    }

    /// How many may be let in now; nil: as many as come.
    func room(nowMs: Int64) -> Int? {
        // A loop that is not late takes them: see ``Placement``.
        guard !self.pressures.isEmpty, self.pressures.allSatisfy({ $0.level > .calm }) else { return nil }
        let window = self.pressures.reduce(0) { $0 + $1.window } * self.factor
        let open = self.opening.withLock { opening in opening.values.count { nowMs - $0 < self.openingMs } }
        return max(0, window - open)
    }

    func opened(_ connection: ObjectIdentifier, nowMs: Int64) { self.opening.withLock { $0[connection] = nowMs } }

    /// It plays or publishes, or has gone.
    func settled(_ connection: ObjectIdentifier) {
        guard self.opening.withLock({ $0.removeValue(forKey: connection) }) != nil else { return }
        for resume in self.waiting.withLock({ waiting in
            defer { waiting = [] }
            return waiting
        }) { resume() }
    }

    /// Calls `resume`, once, when a connection has settled; not at all when the loops take viewers, who come in at each look.
    ///
    /// Where all are refused, one after the other is: as many as the loops get done beside their viewers, a few hundred a second on a fast
    /// core. Among them are publishers, who are let in.
    /// Returns whether it will be called.
    func whenSettled(_ resume: @escaping @Sendable () -> Void) -> Bool {
        guard self.pressures.allSatisfy({ $0.level == .overloaded }) else { return false }
        self.waiting.withLock { $0.append(resume) }
        return true
    }
}
