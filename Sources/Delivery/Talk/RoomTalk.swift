package import Rooms

/// The talk of rooms, as recordings see it. Any thread.
package protocol RoomTalk: AnyObject, Sendable {
    /// The stream of the mix of all.
    func mix(of roomID: RoomID) -> StreamPath
    /// Has the talk mixed along with a stream's recording that has begun. Returns whether it is to be recorded.
    func hold(beside stream: StreamPath, of roomID: RoomID) async -> Bool
    /// Returns whether it was the last stream's recording that ended.
    func letGo(beside stream: StreamPath, of roomID: RoomID) -> Bool
}
