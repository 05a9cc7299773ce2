import Access
import Logging
import RoomRegistry
package import Rooms
import Streaming

/// Recordings of a room's talk, in a file beside the stream's recording. They contain the mix of all voices.
extension Talkback: RoomTalk {
    package func mix(of roomID: RoomID) -> StreamPath { StreamPath(app: TalkStreamName.app, name: "\(roomID)/mix") }

    /// Starts mixing the talk for a stream's recording that has begun. Returns whether the talk is to be recorded.
    package func hold(beside stream: StreamPath, of roomID: RoomID) async -> Bool {
        guard stream.app != TalkStreamName.app else { return false }
        do {
            let room = try await self.rooms.room(roomID.rawValue)
            guard room.allowsTalk(always: true) else { return false }
            return await (try await self.channel(of: room)).hold(for: stream)
        } catch {
            self.log.error("Talk is not recorded", metadata: ["room": "\(roomID)", "error": "\(error)"])
            return false
        }
    }

    /// Releases a stream recording's hold on the mix. Returns whether this was the last hold; the mix goes on while it has listeners.
    package func letGo(beside stream: StreamPath, of roomID: RoomID) -> Bool {
        guard stream.app != TalkStreamName.app, let channel = self.find(roomID) else { return false }
        return channel.letGo(for: stream)
    }
}
