package import Rooms

/// Whoever keeps the rooms of live streams: who may push and play them, and what the rooms have decided. The registry of rooms is one; a server
/// without rooms has one of its own. Any thread; nothing blocks.
package protocol LiveRooms: PushFacts {
    /// Room time, in milliseconds since 1970.
    var now: Int64 { get }
    /// This server's number among those that share the rooms; 0 if it has them to itself.
    var nodeNumber: Int64 { get }

    /// `mayMakeRoom`: seconds to wait until the push may make a room, nil if it may now. `isWanted`: false once its connection is gone.
    func admitPush(
        _ request: PushRequest, mayMakeRoom: @escaping @Sendable () -> Double?, isWanted: @escaping @Sendable () -> Bool
    ) async -> Result<PushGrant, PushRefusal>
    /// Whether the stream is pushed to another server: true if by a client with the same claim, false by another; nil if it is not.
    func isHeldElsewhere(_ path: StreamPath, by claim: PushClaim) async throws(RegistryError) -> Bool?
    /// Why nobody may play the stream now; nil if it may be played.
    func playRefusal(_ path: String) -> StateReason?
    /// The ban of a stream that is forbidden; nil for others.
    func playBan(_ path: String) -> BanTerms?
    /// Until when the user may not come back to the stream's room, in milliseconds since 1970; nil: comes and goes at will.
    func keptOut(_ user: String, of path: String) -> Int64?
    func room(_ id: String) async throws(RegistryError) -> Room
    /// Whether the name may be a device's; one that is not stands for itself.
    func mayBeDevice(_ name: String) -> Bool
    /// The stream that a name stands for: a device's name stands for a stream of its room.
    func stream(named path: StreamPath) async -> StreamPath
    /// Nil if the stream has no room.
    func room(ofStream path: StreamPath) async throws(RegistryError) -> Room?

    /// Ends the push for a caller. False if it had ended.
    func drop(_ sequence: PushSequence, by actor: Actor) async throws(RegistryError) -> Bool
    func kick(_ kick: SessionKick, by actor: Actor) async throws(RegistryError)
    /// Sets who hears of the rooms' decisions, in their order.
    func onOutcome(_ body: @escaping @Sendable ([RoomOutcome]) -> Void)
}

/// Hears what happens to pushes. Any thread; nothing blocks.
package protocol PushFacts: AnyObject, Sendable {
    /// A connection took over the push that it had left.
    func pushReturned(_ grant: PushGrant)
    func mediaArrived(_ sequence: PushSequence, _ media: MediaSummary)
    /// No media for as long as the stream waits for it.
    func mediaIdle(_ sequence: PushSequence)
    /// The publisher said that it pauses.
    func pauseAnnounced(_ sequence: PushSequence)
    func healthChanged(_ sequence: PushSequence, _ health: HealthRecord)
    /// `returns`: of the connection's grant. A connection that another one of the same push has replaced ends nothing.
    func pushEnded(_ sequence: PushSequence, _ end: PushEnd, returns: Int)
    /// The most viewers since the last call, by room. False if the last report is not stored yet.
    func reportViewers(_ peaks: [RoomID: Int]) -> Bool
}
