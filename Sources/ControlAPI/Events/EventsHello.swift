import HTTPAPI
import HTTPServer
import NIOCore
import Notifications
import RoomRegistry
import Rooms
import Streaming
import Support
import Synchronization

/// Makes the feed's first message: the newest event's id, and the open rooms. Any thread.
///
/// The id is read before the rooms, so an event may be in both but is never missing from both.
final class EventsHello: Sendable {
    struct Message: Sendable {
        /// Shared by all recipients.
        let frame: ByteBuffer
        let lastEventID: Int64
        /// The rooms in the message.
        let rooms: Set<RoomID>
    }

    static let roomLimit = 1_000
    /// Lifetime of the cached hello of all rooms, so that a crowd of reconnecting clients costs one hello a second.
    private static let keep = TimeAmount.seconds(1)
    private static let states: [RoomState] = [.live, .interrupted, .created, .forbidden]

    private let rooms: RoomRegistry
    private let isRecording: @Sendable (StreamPath) -> Bool
    private let kept = Mutex<(message: Message, madeAt: NIODeadline)?>(nil)

    init(_ rooms: RoomRegistry, isRecording: @escaping @Sendable (StreamPath) -> Bool) {
        self.rooms = rooms
        self.isRecording = isRecording
    }

    /// The hello of one room, or of all rooms in the scope. `atLeast`: the last event that the client has seen, if any.
    func message(room id: String?, scope: TokenScope = .all, atLeast: Int64) async throws(RegistryError) -> Message {
        if let id {
            let last = try await self.rooms.lastEventID()
            let room = try await self.rooms.room(id)
            guard scope.holds(room) else { throw .noSuchRoom(id) }
            return self.message(last, [room], isTruncated: false)
        }
        if scope.isLimited {
            let last = try await self.rooms.lastEventID()
            let (open, isTruncated) = try await self.openRooms(scope)
            return self.message(last, open, isTruncated: isTruncated)
        }
        if let kept = self.kept.withLock({ $0 }), NIODeadline.now() - kept.madeAt < Self.keep, kept.message.lastEventID >= atLeast {
            return kept.message
        }
        let last = try await self.rooms.lastEventID()
        let (open, isTruncated) = try await self.openRooms(.all)
        let message = self.message(last, open, isTruncated: isTruncated)
        self.kept.withLock { $0 = (message, .now()) }
        return message
    }

    /// Open rooms, the live ones first.
    private func openRooms(_ scope: TokenScope) async throws(RegistryError) -> ([Room], isTruncated: Bool) {
        var open: [Room] = []
        for state in Self.states {
            var query = RoomQuery()
            query.states = [state]
            query.scope = scope
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

    private func message(_ last: Int64, _ rooms: [Room], isTruncated: Bool) -> Message {
        let hello: JSONValue = [
            "type": "hello", "lastEventId": .integer(last), "heartbeatSeconds": .integer(Int64(EventsConnection.heartbeatSeconds)),
            "roomsTruncated": .bool(isTruncated),
            "rooms": .array(
                rooms.map { room in Self.snapshot.write((room, room.slots.contains { self.isRecording($0.path) })) }),
        ]
        return Message(frame: WebSocketWriter.text(hello.text), lastEventID: last, rooms: Set(rooms.map(\.id)))
    }

    /// The fields that events change; `GET /rooms/{id}` has the others. `number` is that of the room's newest event.
    private static let snapshot = OutputType<(room: Room, isRecording: Bool)>.object(
        nil,
        [
            .field("roomId", .text, "", \.room.id.rawValue),
            .field("instance", .count, "", \.room.instance),
            .field("state", .choice(), "", \.room.state),
            .field("stateReason", .choice(), "", \.room.reason),
            .field("liveStatus", .count, "") { $0.room.liveStatus(isRecording: $0.isRecording) },
            .field("title", .text, "", \.room.title),
            .field("owner", .nullable(.text), "", \.room.owner),
            .field("createdAt", .instant, "", \.room.createdAt),
            .field("liveSince", .nullable(.instant), "", \.room.liveSince),
            .field("number", .count, "", \.room.lastEvent),
        ])
}
