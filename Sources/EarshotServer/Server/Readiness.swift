import Rooms

/// Whether the server can do its work, for load balancers. Any thread.
///
/// What may take long (the store's disk) is asked off the event loops, and once a second at most, however many ask.
struct Readiness: Sendable {
    /// Why the server is not ready, in a line without secrets or paths; nil: it is. The log has it from ``StoreWatch``.
    func problem(of core: ServerCore) async -> String? {
        if core.draining { return "draining" }
        let problem = await core.rooms.storeProblem()
        // It may have begun to end meanwhile: the store refuses then.
        if core.draining { return "draining" }
        let status = core.rooms.storeStatus
        core.storeWatch.probed(problem, status, commits: core.rooms.counters.commits)
        // A disk that is short lets what runs go on, but nothing new can begin.
        return (problem ?? status.problem).map { "store: \($0)" }
    }
}
