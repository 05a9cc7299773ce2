import Support

/// Heartbeats and the owner's presence.
extension RoomRules {
    package static func heartbeat(from sender: String?, _ room: inout Room, _ now: Int64) throws(RoomRefusal) -> [RoomEffect] {
        try self.require(self.notEnded, room)
        room.heartbeatAt = now
        guard let sender, sender.exact == room.owner?.exact else { return [] }
        room.ownerSeenAt = now
        return self.ownerCame(&room)
    }

    package static func memberJoined(_ user: String, _ room: inout Room, _ now: Int64) throws(RoomRefusal) -> [RoomEffect] {
        try self.require(self.notEnded, room)
        guard user.exact == room.owner?.exact else { return [] }
        if room.ownerSeenAt != nil { room.ownerSeenAt = now }
        return self.ownerCame(&room)
    }

    package static func memberLeft(_ user: String, _ room: inout Room, _ now: Int64) -> [RoomEffect] {
        guard user.exact == room.owner?.exact, !room.state.isTerminal, room.ownerAwaySince == nil else { return [] }
        return self.ownerWent(&room, at: now)
    }

    private static func ownerCame(_ room: inout Room) -> [RoomEffect] {
        guard room.ownerAwaySince != nil else { return [] }
        room.ownerAwaySince = nil
        return [.event(.ownerOnline, from: room.state)]
    }

    static func ownerWent(_ room: inout Room, at instant: Int64) -> [RoomEffect] {
        room.ownerSeenAt = nil
        room.ownerAwaySince = instant
        return [.event(.ownerOffline, from: room.state)]
    }
}
