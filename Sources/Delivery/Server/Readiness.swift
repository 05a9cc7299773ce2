import Rooms

/// Whether the server can do its work, for load balancers. Any thread.
///
/// Slow checks (the store's disk) run off the event loops, and at most once a second however many ask.
package struct Readiness: Sendable {
    /// Why the server is not ready, in one line without secrets or paths; nil when it is. ``StoreWatch`` logs it.
    package func problem(of core: ServerCore) async -> String? {
        if core.draining { return "draining" }
        let problem = await core.rooms.storeProblem()
        // Shutdown may have begun meanwhile: the store refuses then.
        if core.draining { return "draining" }
        let status = core.rooms.storeStatus
        core.storeWatch.probed(problem, status, commits: core.rooms.counters.commits)
        // When the disk is short, running streams continue but nothing new can begin.
        return (problem ?? status.problem).map { "store: \($0)" }
    }
}
