import Access
import Logging
import Rooms
import ServerConfiguration

/// Recordings of a room's talk, in a file beside the stream's recording. They contain the mix of all.
extension ServerCore {
    /// Records the talk along with a stream's recording that has begun.
    func recordTalk(beside stream: StreamPath, of roomID: RoomID?) async {
        guard self.config.recording.talk, let roomID, stream.app != TalkStreamName.app else { return }
        do {
            let room = try await self.rooms.room(roomID.rawValue)
            guard room.allowsTalk(always: true) else { return }
            let channel = try await self.talkChannel(of: room)
            guard await channel.hold(for: stream) else { return }
            await self.recordings.beginBeside(Self.talkMix(of: roomID), roomID: roomID, core: self)
            // The stream's recording may have ended meanwhile.
            if !self.recordings.isRecording(stream) { await self.endTalk(beside: stream, of: roomID) }
        } catch {
            self.log.error("Talk is not recorded", metadata: ["room": "\(roomID)", "error": "\(error)"])
        }
    }

    /// Ends the talk's recording when the last stream's recording has ended.
    func endTalk(beside stream: StreamPath, of roomID: RoomID?) async {
        guard let roomID, stream.app != TalkStreamName.app, let channel = self.talk.find(roomID), channel.letGo(for: stream) else { return }
        _ = await self.recordings.stop(Self.talkMix(of: roomID), core: self)
    }

    private static func talkMix(of roomID: RoomID) -> StreamPath { StreamPath(app: TalkStreamName.app, name: "\(roomID)/mix") }
}
