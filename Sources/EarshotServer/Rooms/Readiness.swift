import RoomRegistry
import Rooms
import Streaming

/// Whether the server can do its work, for load balancers. Any thread.
///
/// Slow checks (the store's disk) run off the event loops, at most once a second for any number of requests.
struct Readiness: Sendable {
    let rooms: RoomRegistry
    let streams: LiveStreams
    let storeWatch: StoreWatch

    /// What a load balancer may send a server that is not ready for all.
    enum Role: Sendable {
        /// New pushes, and calls that read or change rooms.
        case publish
        /// Players, who need no store.
        case play
    }

    /// The reason why the server is not ready for the role, in one line without secrets or paths; nil when it is ready. ``StoreWatch`` logs it.
    func problem(for role: Role = .publish) async -> String? {
        if self.streams.draining { return "draining" }
        guard role == .publish else { return nil }
        let problem = await self.rooms.storeProblem()
        // Shutdown may have begun meanwhile; the store then refuses writes.
        if self.streams.draining { return "draining" }
        let status = self.rooms.storeStatus
        self.storeWatch.probed(problem, status, commits: self.rooms.counters.commits)
        // When the disk is short, running streams continue but nothing new can begin.
        return (problem ?? status.problem).map { "store: \($0)" }
    }
}
