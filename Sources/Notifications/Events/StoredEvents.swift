import HTTPServer
import NIOCore
package import RoomStore
package import Rooms

/// Reads stored events as frames of the feed. Any thread.
package struct StoredEvents: Sendable {
    /// Consecutive events.
    struct Page: Sendable {
        /// Whole frames.
        let frames: ByteBuffer
        /// Id of the last event; nil for an empty page.
        let last: Int64?
        /// Whether there may be more after it.
        let isFull: Bool
    }

    static let pageLimit = 100

    package let rooms: RoomRegistry
    /// Nil: all rooms.
    package let room: RoomID?

    package init(rooms: RoomRegistry, room: RoomID?) {
        self.rooms = rooms
        self.room = room
    }

    /// Returns nil if the store could not be read.
    func page(after: Int64) async -> Page? {
        do throws(RegistryError) {
            let events = try await self.rooms.events(after: after, room: self.room?.rawValue, limit: Self.pageLimit)
            var frames = ByteBuffer()
            for event in events { frames.writeImmutableBuffer(WebSocketWriter.text(EventMessage.event(event))) }
            return Page(frames: frames, last: events.last?.id, isFull: events.count >= Self.pageLimit)
        } catch {
            return nil
        }
    }
}
