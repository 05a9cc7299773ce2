/// A consequence for other components, published after the commit and in its order.
package enum RoomOutcome: Sendable {
    case event(RoomEvent)
    /// An event of another node that shares the registry.
    case eventElsewhere(RoomEvent)
    /// The same, where nobody reads it: the registry's `readsEvents`.
    case eventMark(EventMark)
    /// End the push with this sequence (nil: any push) on this path.
    case cut(StreamPath, sequence: PushSequence?, PushEnd, endsViewers: Bool)
    /// The room waits for this stream's publisher. Its viewers' stream continues for the same time.
    case waits(StreamPath, Room.Wait)
    /// A push counts as live: its first media has arrived. With its `stream.begin` event.
    case streamBegan(StreamPath, roomID: RoomID, slot: Int)
    /// A room's policy has changed.
    case policyChanged(RoomID, [StreamPath], from: RoomPolicy, to: RoomPolicy)
    /// Only media that arrives after now resumes the paused push.
    case pauseAnnounced(StreamPath)
    /// A member was kicked; end its sessions.
    case kick(roomID: RoomID, user: String, by: Actor)
    /// Room time followed a leap that held, and moved the times of `rooms` rooms.
    case clockAdopted(byMs: Int64, rooms: Int)
    /// The node that it names ends.
    case drainAsked(DrainOrder)
}
