package import Rooms
import Support
import Synchronization

/// The rooms of a server that keeps none: everybody pushes and plays everything, and what happens is forgotten.
package final class OpenRooms: LiveRooms {
    private let last = Atomic<Int64>(0)

    package init() {}

    package var now: Int64 { WallClock.ms }
    package var nodeNumber: Int64 { 0 }
    package func admitPush(
        _ request: PushRequest, mayMakeRoom: @escaping @Sendable () -> Double?, isWanted: @escaping @Sendable () -> Bool
    ) async -> Result<PushGrant, PushRefusal> {
        let sequence = PushSequence(self.last.add(1, ordering: .relaxed).newValue)
        return .success(
            PushGrant(sequence: sequence, roomID: RoomID(stored: request.path.name), slot: 1, path: request.path, policy: RoomPolicy()))
    }
    package func isHeldElsewhere(_ path: StreamPath, by claim: PushClaim) -> Bool? { nil }
    package func playRefusal(_ path: String) -> StateReason? { nil }
    package func playBan(_ path: String) -> BanTerms? { nil }
    package func keptOut(_ user: String, of path: String) -> Int64? { nil }
    package func room(_ id: String) throws(RegistryError) -> Room { throw .noSuchRoom(id) }
    package func mayBeDevice(_ name: String) -> Bool { false }
    package func stream(named path: StreamPath) -> StreamPath { path }
    package func room(ofStream path: StreamPath) -> Room? { nil }
    package func drop(_ sequence: PushSequence, by actor: Actor) -> Bool { false }
    package func kick(_ kick: SessionKick, by actor: Actor) {}
    package func onOutcome(_ body: @escaping @Sendable ([RoomOutcome]) -> Void) {}
    package func pushReturned(_ grant: PushGrant) {}
    package func mediaArrived(_ sequence: PushSequence, _ media: MediaSummary) {}
    package func mediaIdle(_ sequence: PushSequence) {}
    package func pauseAnnounced(_ sequence: PushSequence) {}
    package func healthChanged(_ sequence: PushSequence, _ health: HealthRecord) {}
    package func pushEnded(_ sequence: PushSequence, _ end: PushEnd, returns: Int) {}
    package func reportViewers(_ peaks: [RoomID: Int]) -> Bool { true }
}
