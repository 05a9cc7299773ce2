import Logging
import Rooms
import Synchronization

/// Whether the server can do its work, for load balancers and for whoever looks at its log. Any thread.
///
/// What may take long (the store's disk) is asked off the event loops, and once a second at most, however many ask.
final class Readiness: Sendable {
    /// As last told in the log; nil: ready.
    private let told = Mutex<String?>(nil)

    /// Why the server is not ready, in a line without secrets or paths; nil: it is. A change is told once in the log.
    func problem(of core: ServerCore) async -> String? {
        if core.draining { return "draining" }
        let problem = await core.rooms.storeProblem().map { "store: \($0)" }
        // It may have begun to end meanwhile: the store refuses then.
        if core.draining { return "draining" }
        let isNews = self.told.withLock { told in
            defer { told = problem }
            return told != problem
        }
        if isNews {
            if let problem {
                core.log.error("Not ready", metadata: ["problem": "\(problem)"])
            } else {
                core.log.notice("Ready again")
            }
        }
        // Told by ``StoreWatch``: what runs goes on, but nothing new can begin.
        return problem ?? core.rooms.storeStatus.problem.map { "store: \($0)" }
    }
}
