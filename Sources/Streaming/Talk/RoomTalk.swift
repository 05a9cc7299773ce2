package import Rooms

/// The talk of rooms, as recordings see it. Any thread.
package protocol RoomTalk: AnyObject, Sendable {
    /// The path of the mix of all voices.
    func mix(of roomID: RoomID) -> StreamPath
    /// Starts mixing the talk for a stream's recording that has begun. Returns whether the talk is to be recorded.
    func hold(beside stream: StreamPath, of roomID: RoomID) async -> Bool
    /// Releases a stream recording's hold on the mix. Returns whether this was the last hold; the mix goes on while it has listeners.
    func letGo(beside stream: StreamPath, of roomID: RoomID) -> Bool
}
