import NIOCore
import Rooms

/// The store's events as a feed sends them. Any thread.
struct StoredEvents: Sendable {
    /// Some events in a row.
    struct Page: Sendable {
        /// Whole frames.
        let frames: ByteBuffer
        /// Nil for an empty page.
        let last: Int64?
        /// There may be more after it.
        let isFull: Bool
    }

    static let pageLimit = 100

    let rooms: RoomRegistry
    /// Nil: of all.
    let room: RoomID?

    /// Nil: the store could not be read.
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
