import Logging
import RoomRegistry
import Rooms
import Synchronization

/// Logs once when trouble with the store begins and once when it ends.
///
/// Trouble shows in a failed commit of the registry or in a readiness probe. Any thread.
final class StoreWatch: Sendable {
    private struct State {
        var isInTrouble = false
        /// The last probe's problem, and the number of commits at that time.
        var probe: (problem: String, commits: Int)?
        var reportedDropped = 0
    }

    private let log: Logger
    private let state = Mutex(State())

    init(log: Logger) { self.log = log }

    /// Records a probe that tried to write to the store. `problem` is nil when that worked.
    func probed(_ problem: String?, _ status: StoreStatus, commits: Int) {
        self.state.withLock { $0.probe = problem.map { (problem: $0, commits: commits) } }
        self.check(status, commits: commits)
    }

    /// `commits` counts the registry's commits since the start.
    func check(_ status: StoreStatus, commits: Int) {
        self.state.withLock { state in
            // A later commit succeeded: the probe is out of date.
            if let probe = state.probe, !status.isFailing, commits > probe.commits { state.probe = nil }
            switch (status.problem ?? state.probe?.problem, state.isInTrouble) {
            case (let problem?, false):
                state.isInTrouble = true
                self.log.error(
                    "The store is in trouble: running streams go on, new pushes and rooms are refused", metadata: ["problem": "\(problem)"])
            case (nil, true):
                state.isInTrouble = false
                self.log.notice("The store works again", metadata: ["droppedFacts": "\(status.droppedFacts - state.reportedDropped)"])
                state.reportedDropped = status.droppedFacts
            default: break
            }
        }
    }
}
