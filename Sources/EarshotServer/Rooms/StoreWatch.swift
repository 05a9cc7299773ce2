import Logging
import Rooms
import Synchronization

/// Says in the log that the store is in trouble, once when that begins and once when it is over, whoever has found out: the registry by a
/// commit that failed, or a probe of the server's readiness. Any thread.
final class StoreWatch: Sendable {
    private struct State {
        var isInTrouble = false
        /// What the last probe has found, and how many commits there had been then.
        var probe: (problem: String, commits: Int)?
        var toldDropped = 0
    }

    private let log: Logger
    private let state = Mutex(State())

    init(log: Logger) { self.log = log }

    /// A probe has written to the store, or tried to. `problem`: nil when it could.
    func probed(_ problem: String?, _ status: StoreStatus, commits: Int) {
        self.state.withLock { $0.probe = problem.map { (problem: $0, commits: commits) } }
        self.look(status, commits: commits)
    }

    /// `commits`: of the registry, since the start.
    func look(_ status: StoreStatus, commits: Int) {
        self.state.withLock { state in
            // Something was written since: the probe is out of date.
            if let probe = state.probe, !status.isFailing, commits > probe.commits { state.probe = nil }
            switch (status.problem ?? state.probe?.problem, state.isInTrouble) {
            case (let problem?, false):
                state.isInTrouble = true
                self.log.error("The store is in trouble; what runs goes on, nothing new begins", metadata: ["problem": "\(problem)"])
            case (nil, true):
                state.isInTrouble = false
                self.log.notice("The store is well again", metadata: ["droppedFacts": "\(status.droppedFacts - state.toldDropped)"])
                state.toldDropped = status.droppedFacts
            default: break
            }
        }
    }
}
