import NIOCore
import Rooms
import Synchronization

/// Makes the feed's first message: where the events stand, and the open rooms. Any thread.
///
/// The position is read before the rooms: an event may be in both, none is in neither.
final class EventsHello: Sendable {
    struct Message: Sendable {
        let text: String
        let lastEventID: Int64
    }

    static let roomLimit = 1_000
    /// The whole server's hello is made once a second at most, however many come back at once.
    private static let keep = TimeAmount.seconds(1)
    private static let states: [RoomState] = [.live, .interrupted, .created, .forbidden]

    private let rooms: RoomRegistry
    private let kept = Mutex<(message: Message, madeAt: NIODeadline)?>(nil)

    init(_ rooms: RoomRegistry) { self.rooms = rooms }

    /// Of one room or all. `atLeast`: an event that the client has seen already, if there was such a one.
    func message(room id: String?, atLeast: Int64) async throws(RegistryError) -> Message {
        if let id {
            let last = try await self.rooms.lastEventID()
            return Self.message(last, [try await self.rooms.room(id)], isTruncated: false)
        }
        if let kept = self.kept.withLock({ $0 }), NIODeadline.now() - kept.madeAt < Self.keep, kept.message.lastEventID >= atLeast {
            return kept.message
        }
        let last = try await self.rooms.lastEventID()
        let (open, isTruncated) = try await self.openRooms()
        let message = Self.message(last, open, isTruncated: isTruncated)
        self.kept.withLock { $0 = (message, .now()) }
        return message
    }

    /// The liveliest first.
    private func openRooms() async throws(RegistryError) -> ([Room], isTruncated: Bool) {
        var open: [Room] = []
        for state in Self.states {
            var query = RoomQuery()
            query.state = state
            query.size = RoomQuery.sizes.upperBound
            while true {
                let page = try await self.rooms.rooms(query)
                let left = Self.roomLimit - open.count
                open += page.rooms.prefix(left)
                if page.rooms.count > left { return (open, true) }
                guard let next = page.next else { break }
                query.after = next
            }
        }
        return (open, false)
    }

    private static func message(_ last: Int64, _ rooms: [Room], isTruncated: Bool) -> Message {
        let list = rooms.map(self.text).joined(separator: ",")
        let text =
            #"{"type":"hello","lastEventId":\#(last),"heartbeatSeconds":\#(EventsConnection.heartbeatSeconds),"#
            + #""roomsTruncated":\#(isTruncated),"rooms":[\#(list)]}"#
        return Message(text: text, lastEventID: last)
    }

    private static func text(_ room: Room) -> String {
        #"{"roomId":\#(JSONText.quoted(room.id.rawValue)),"instance":\#(room.instance),"state":"\#(room.state.rawValue)","#
            + #""stateReason":"\#(room.reason.rawValue)","title":\#(JSONText.quoted(room.title)),"owner":\#(JSONText.quoted(room.owner)),"#
            + #""liveStatus":\#(room.liveStatus(isRecording: false)),"createdAt":"\#(JSONText.instant(room.createdAt))","#
            + #""liveSince":\#(room.liveSince.map { "\"\(JSONText.instant($0))\"" } ?? "null"),"number":\#(room.lastEvent)}"#
    }
}
