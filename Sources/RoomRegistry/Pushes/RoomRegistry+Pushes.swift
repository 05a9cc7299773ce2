package import Rooms
import Store

/// Pushes: their admission, and what happens to them. Any thread.
extension RoomRegistry {
    /// Admits or refuses a push. `mayMakeRoom` runs on the registry's queue before a room is created for it. It returns the seconds to
    /// wait; nil allows it now. `isWanted` is asked when its turn has come: a device that has given up takes its stream from nobody. While the store
    /// is away, a device goes on with the push that it has here: see ``RunningPushes``.
    package nonisolated func admitPush(
        _ request: PushRequest, mayMakeRoom: @escaping @Sendable () -> Double? = { nil },
        isWanted: @escaping @Sendable () -> Bool = { true }
    ) async -> Result<PushGrant, PushRefusal> {
        let pushes = self.runningPushes
        let answer = await self.result(stored: { pushes.admitted($0, request) }) { work in
            guard isWanted() else { throw PushRefusal.gone }
            return try work.admit(request, mayMakeRoom: mayMakeRoom)
        }
        switch answer {
        case .success(let grant): return .success(grant)
        case .failure(let refusal as PushRefusal): return .failure(refusal)
        case .failure(let error):
            if let grant = await self.goOn(request) { return .success(grant) }
            return .failure(.unavailable("\(RegistryError(of: error))"))
        }
    }

    /// On the registry's queue: an end in a transaction whose fate is unknown may be in the store, one that waits is not.
    private func goOn(_ request: PushRequest) -> PushGrant? {
        guard self.isFailing, !self.isStopping, !self.wasFenced, self.store.membership?.lease.isFenced != true else { return nil }
        let now = self.clock.now()
        return self.runningPushes.goOn(request, nowMs: self.clock.steadyMs) { grant, end in
            if let end, self.lost?.batch.contains(where: { $0.end === end }) == true { return false }
            if self.playTable.refusal(grant.path.description) != nil { return false }
            return request.user.flatMap { self.kickTable.until($0, room: grant.roomID, now: now) } == nil
        }
    }

    /// A device that came back to its push while the store was away has claimed the stream.
    package nonisolated func pushReturned(_ grant: PushGrant) {
        guard let request = self.runningPushes.claimed(grant.sequence, returns: grant.returns) else { return }
        self.submit { try $0.pushReturned(grant.sequence.rawValue, request) }
    }

    // Facts: any thread, in submission order, without waiting.

    package nonisolated func mediaArrived(_ sequence: PushSequence, _ media: MediaSummary) {
        self.submit { try $0.mediaArrived(sequence.rawValue, media) }
    }

    package nonisolated func mediaIdle(_ sequence: PushSequence) {
        self.submit { try $0.streamWent(sequence.rawValue, isPause: false) }
    }

    /// The verdict on a push changed. The caller limits how often.
    package nonisolated func healthChanged(_ sequence: PushSequence, _ health: HealthRecord) {
        self.submit { try $0.healthChanged(sequence.rawValue, health) }
    }

    package nonisolated func pauseAnnounced(_ sequence: PushSequence) {
        self.submit { try $0.streamWent(sequence.rawValue, isPause: true) }
    }

    /// `returns`: of the connection's grant. A connection that another one of the same push has replaced ends nothing.
    package nonisolated func pushEnded(_ sequence: PushSequence, _ end: PushEnd, returns: Int = 0) {
        let pushes = self.runningPushes
        switch pushes.ended(sequence, end, returns: returns, nowMs: self.clock.steadyMs) {
        case .outdated: break
        case .unknown: self.submit { try $0.pushEnded(sequence.rawValue, end) }
        case .ends(let end):
            self.submitFact { now in
                Operation(
                    kind: .fact, end: end, now: now,
                    run: { work in
                        if !end.isWithdrawn { try work.pushEnded(sequence.rawValue, end.end) }
                        return { pushes.settled(sequence, end) }
                    },
                    fail: { _ in pushes.settled(sequence, end) })
            }
        }
    }
}
