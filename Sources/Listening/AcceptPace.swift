import NIOCore
package import Support
import Synchronization

/// Limits how many connections are admitted at a time while the loops are late. Any thread.
///
/// A join costs a loop as much as tens of sends. While all loops are late, their windows limit how many connections are on their way to a
/// stream; the next ones wait in the listener's backlog, which costs nothing.
package final class AcceptPace: Sendable {
    private let pressures: [LoopPressure]
    /// Multiplies the loops' windows: connections of some kinds cost less.
    private let factor: Int
    /// Longest time that a connection counts, so that an inactive one does not keep others out.
    private let openingMs: Int64
    /// Arrival times of connections that neither play nor publish yet.
    private let opening = Mutex<[ObjectIdentifier: Int64]>([:])
    /// Resumes listeners that have no room.
    private let waiting = Mutex<[@Sendable () -> Void]>([])

    package init(_ pressures: [LoopPressure], factor: Int = 1, openingMs: Int64 = 500) {
        self.pressures = pressures
        self.factor = factor
        self.openingMs = openingMs
    }

    /// How many may be admitted now; nil: any number.
    package func room(nowMs: Int64) -> Int? {
        // A loop that is not late can serve them: see ``Placement``.
        guard !self.pressures.isEmpty, self.pressures.allSatisfy({ $0.level > .calm }) else { return nil }
        let window = self.pressures.reduce(0) { $0 + $1.window } * self.factor
        let open = self.opening.withLock { opening in opening.values.count { nowMs - $0 < self.openingMs } }
        return max(0, window - open)
    }

    package func opened(_ connection: ObjectIdentifier, nowMs: Int64) { self.opening.withLock { $0[connection] = nowMs } }

    /// Called when the connection plays, publishes or has closed.
    package func settled(_ connection: ObjectIdentifier) {
        guard self.opening.withLock({ $0.removeValue(forKey: connection) }) != nil else { return }
        for resume in self.waiting.exchange([]) { resume() }
    }

    /// If all loops are overloaded, calls `resume` once when a connection has settled. Returns whether it will.
    ///
    /// Overloaded loops refuse viewers, so connections are handled one after the other, as fast as the loops manage beside their viewers: a
    /// few hundred a second on a fast core. Publishers among them are admitted. Otherwise every look of the listener admits some viewers.
    func whenSettled(_ resume: @escaping @Sendable () -> Void) -> Bool {
        guard self.pressures.allSatisfy({ $0.level == .overloaded }) else { return false }
        self.waiting.withLock { $0.append(resume) }
        return true
    }
}
