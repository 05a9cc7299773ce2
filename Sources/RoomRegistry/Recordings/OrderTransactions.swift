package import Rooms
import Store
import Support

/// Ends of pushes and connections requested by callers.
extension RoomTransaction {
    /// Ends a running push. False if it has ended.
    func drop(_ sequence: Int64, by actor: Actor) throws -> Bool {
        guard let push = try self.store.push(sequence) else { return false }
        self.change.roomID = push.roomID
        guard push.end == nil else { return false }
        try self.pushEnded(sequence, .dropped, by: actor)
        // Where it runs on another node. The caller cuts it here.
        if self.store.node != nil { self.notify(.cut(push.path, sequence: PushSequence(sequence), .dropped, endsViewers: false)) }
        return true
    }

    /// Ends the connection's pushes. Adds the event to the room of its first stream that has one.
    func kick(_ kick: SessionKick, by actor: Actor) throws {
        for sequence in try self.store.openPushes(ofSession: kick.sessionID) { _ = try self.drop(sequence, by: actor) }
        self.change.object = "session/\(kick.sessionID)"
        // Names the connection's client, because the connection's number means nothing once it is gone.
        self.change.add("clientAddress", from: .string(kick.clientAddress), to: nil)
        self.change.add("transport", from: .string(kick.transport), to: nil)
        var data: [JSONValue.Member] = []
        data.add("by", actor.name)
        data.add("sessionId", Int64(clamping: kick.sessionID))
        data.add("transport", kick.transport)
        data.add("clientAddress", kick.clientAddress)
        data.add("publishing", kick.publishing.prefix(SessionKick.mostNamed).map(\.description))
        data.add("playing", kick.playing.prefix(SessionKick.mostNamed).map(\.description))
        for path in (kick.publishing + kick.playing).prefix(2 * SessionKick.mostNamed) {
            guard var room = try self.store.room(ofStream: path) else { continue }
            self.change.roomID = room.id
            let old = room
            try self.event(.sessionKicked, of: &room, data)
            return try self.save(from: old, to: room)
        }
        guard let path = (kick.publishing + kick.playing).first else { return try self.event(.sessionKicked, data) }
        try self.event(.sessionKicked, of: path, data)
    }
}

extension RoomRegistry {
    /// Ends a push for a caller. False if it has ended already.
    package nonisolated func drop(_ sequence: PushSequence, by actor: Actor) async throws(RegistryError) -> Bool {
        try await self.call { try $0.drop(sequence.rawValue, by: actor) }
    }

    /// Ends the pushes of a connection that a call ends, and stores the event.
    package nonisolated func kick(_ kick: SessionKick, by actor: Actor) async throws(RegistryError) {
        try await self.call { try $0.kick(kick, by: actor) }
    }
}

extension StoreAccess {
    func openPushes(ofSession id: UInt64) throws -> [Int64] {
        try self.all(
            "SELECT sequence FROM pushes WHERE ended_at IS NULL AND session = $1 ORDER BY sequence", [Int64(bitPattern: id)]
        ) { row in row.next() }
    }
}
