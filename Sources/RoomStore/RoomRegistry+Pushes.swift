package import Rooms

/// Pushes: their admission, and what happens to them. Any thread.
extension RoomRegistry {
    /// Admits or refuses a push. `mayMakeRoom` runs on the registry's queue before a room is created for it. It returns the seconds to
    /// wait; nil allows it now.
    package nonisolated func admitPush(
        _ request: PushRequest, mayMakeRoom: @escaping @Sendable () -> Double? = { nil }
    ) async -> Result<PushGrant, PushRefusal> {
        switch await self.result({ try $0.admit(request, mayMakeRoom: mayMakeRoom) }) {
        case .success(let grant): .success(grant)
        case .failure(let refusal as PushRefusal): .failure(refusal)
        case .failure(let error): .failure(.unavailable("\(RegistryError(of: error))"))
        }
    }

    // Facts: any thread, in submission order, without waiting.

    package nonisolated func mediaArrived(_ sequence: PushSequence, _ media: PushMedia) {
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

    package nonisolated func pushEnded(_ sequence: PushSequence, _ end: PushEnd) {
        self.submit { try $0.pushEnded(sequence.rawValue, end) }
    }
}
