import GRDB

/// What calls have set for one participant of a room's talk channel, whether it is there or not. A value.
package struct TalkMemberSetting: Sendable, Equatable {
    package var user: String
    /// Left out of all mixes.
    package var isMuted = false
    package var gainDB: Double = 0
    /// Milliseconds of room time: until when it may not come; nil: it may.
    package var bannedUntilMs: Int64?

    package init(user: String) { self.user = user }

    /// As a participant of whom nothing is set.
    package var isPlain: Bool { self == TalkMemberSetting(user: self.user) }

    /// Of a room; above it those that were set first go.
    static let mostPerRoom = 512
}

/// What is set for a participant after a change, and for all of the room. A value.
package struct TalkMemberChange: Sendable, Equatable {
    package let setting: TalkMemberSetting
    /// By user.
    package let all: [TalkMemberSetting]
}

extension StoreAccess {
    func talkMembers(_ id: RoomID) throws -> [TalkMemberSetting] {
        try self.all("SELECT user, muted, gain_db, banned_until FROM talk_members WHERE room_id = ? ORDER BY user", [id.rawValue]) { row in
            var setting = TalkMemberSetting(user: row.next())
            setting.isMuted = row.next() as Int64 == 1
            setting.gainDB = row.next()
            setting.bannedUntilMs = row.next()
            return setting
        }
    }

    func set(_ setting: TalkMemberSetting, of id: RoomID, at nowMs: Int64) throws {
        guard !setting.isPlain else {
            return try self.run("DELETE FROM talk_members WHERE room_id = ? AND user = ?", [id.rawValue, setting.user])
        }
        try self.run(
            """
            INSERT INTO talk_members (room_id, user, muted, gain_db, banned_until, set_at) VALUES (?, ?, ?, ?, ?, ?)
            ON CONFLICT (room_id, user) DO UPDATE SET
            muted = excluded.muted, gain_db = excluded.gain_db, banned_until = excluded.banned_until, set_at = excluded.set_at
            """,
            [id.rawValue, setting.user, setting.isMuted ? 1 : 0, setting.gainDB, setting.bannedUntilMs, nowMs])
        try self.run(
            """
            DELETE FROM talk_members WHERE room_id = ?1 AND user IN
            (SELECT user FROM talk_members WHERE room_id = ?1 ORDER BY set_at DESC, user LIMIT -1 OFFSET ?2)
            """,
            [id.rawValue, TalkMemberSetting.mostPerRoom])
    }
}

extension RoomRegistry {
    /// By user. Bans that are over are among them until something else is set.
    package nonisolated func talkMembers(_ id: RoomID) async throws(RegistryError) -> [TalkMemberSetting] {
        try await self.store.read { try $0.talkMembers(id) }
    }

    /// Changes what is set for a participant, between any two other changes. Kept for as long as the room is; a ban that is over is none.
    /// `stored` is told it when it is on disk, in the order of all changes, on the registry's queue; it must not block.
    package nonisolated func changeTalkMember(
        _ user: String, of id: RoomID, keeping: KeptAnswer<TalkMemberChange>? = nil,
        _ change: @escaping @Sendable (inout TalkMemberSetting) -> Void, stored: @escaping @Sendable (TalkMemberSetting) -> Void
    ) async throws(RegistryError) -> TalkMemberChange {
        try await self.perform(keeping: keeping, stored: { stored($0.setting) }) { work in
            guard try work.store.room(id.rawValue) != nil else { throw RegistryError.noSuchRoom(id.rawValue) }
            var setting = try work.store.talkMembers(id).first { $0.user == user } ?? TalkMemberSetting(user: user)
            if let until = setting.bannedUntilMs, until <= work.now { setting.bannedUntilMs = nil }
            change(&setting)
            try work.store.set(setting, of: id, at: work.now)
            return TalkMemberChange(setting: setting, all: try work.store.talkMembers(id))
        }
    }
}
