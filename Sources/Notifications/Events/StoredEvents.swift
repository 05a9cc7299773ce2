import HTTPServer
import NIOCore
package import RoomRegistry
package import Rooms

/// Reads stored events as frames of the feed. Any thread.
package struct StoredEvents: Sendable {
    /// Consecutive events.
    struct Page: Sendable {
        /// Whole frames.
        let frames: ByteBuffer
        let rooms: Set<RoomID>
        /// Id of the last event; nil for an empty page.
        let last: Int64?
        /// Whether there may be more after it.
        let isFull: Bool
    }

    static let pageLimit = 100

    package let rooms: RoomRegistry
    /// Nil: all rooms.
    package let room: RoomID?
    /// Empty: all.
    private let kinds: Set<RoomEvent.Kind>
    private let scope: TokenScope

    package init(rooms: RoomRegistry, room: RoomID?, kinds: Set<RoomEvent.Kind> = [], scope: TokenScope = .all) {
        self.rooms = rooms
        self.room = room
        self.kinds = kinds
        self.scope = scope
    }

    /// Returns nil if the store could not be read.
    func page(after: Int64) async -> Page? {
        do throws(RegistryError) {
            let events = try await self.rooms.events(
                after: after, room: self.room?.rawValue, kinds: self.kinds, scope: self.scope, limit: Self.pageLimit)
            var frames = ByteBuffer()
            for event in events { frames.writeImmutableBuffer(WebSocketWriter.text(EventMessage.event(event))) }
            return Page(
                frames: frames, rooms: Set(events.compactMap(\.roomID)), last: events.last?.id, isFull: events.count >= Self.pageLimit)
        } catch {
            return nil
        }
    }
}
