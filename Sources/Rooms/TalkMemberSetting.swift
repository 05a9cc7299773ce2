/// API settings for one participant of a room's talk channel, present or not. A value.
package struct TalkMemberSetting: Sendable, Equatable {
    package var user: String
    /// Excluded from all mixes.
    package var isMuted = false
    package var gainDB: Double = 0
    /// Room time in milliseconds until which the participant may not join; nil if not banned.
    package var bannedUntilMs: Int64?

    package init(user: String) { self.user = user }

    /// Whether nothing is set.
    package var isPlain: Bool { self == TalkMemberSetting(user: self.user) }

    /// The limit per room. Above it, the settings made first are dropped.
    static let mostPerRoom = 512
}

/// A participant's settings after a change, and those of the whole room. A value.
package struct TalkMemberChange: Sendable, Equatable {
    package let setting: TalkMemberSetting
    /// Ordered by user.
    package let all: [TalkMemberSetting]
}

extension StoreAccess {
    func talkMembers(_ id: RoomID) throws -> [TalkMemberSetting] {
        try self.all(#"SELECT "user", muted, gain_db, banned_until FROM talk_members WHERE room_id = ? ORDER BY "user""#, [id.rawValue]) {
            row in
            var setting = TalkMemberSetting(user: row.next())
            setting.isMuted = row.next() as Int64 == 1
            setting.gainDB = row.next()
            setting.bannedUntilMs = row.optional()
            return setting
        }
    }

    func set(_ setting: TalkMemberSetting, of id: RoomID, at nowMs: Int64) throws {
        guard !setting.isPlain else {
            return try self.run(#"DELETE FROM talk_members WHERE room_id = ? AND "user" = ?"#, [id.rawValue, setting.user])
        }
        try self.run(
            """
            INSERT INTO talk_members (room_id, "user", muted, gain_db, banned_until, set_at) VALUES (?, ?, ?, ?, ?, ?)
            ON CONFLICT (room_id, "user") DO UPDATE SET
            muted = excluded.muted, gain_db = excluded.gain_db, banned_until = excluded.banned_until, set_at = excluded.set_at
            """,
            [id.rawValue, setting.user, setting.isMuted ? 1 : 0, setting.gainDB, setting.bannedUntilMs, nowMs])
        try self.run(
            """
            DELETE FROM talk_members WHERE room_id = ?1 AND "user" IN
            (SELECT "user" FROM talk_members WHERE room_id = ?1 ORDER BY set_at DESC, "user" LIMIT -1 OFFSET ?2)
            """,
            [id.rawValue, TalkMemberSetting.mostPerRoom])
    }
}

extension RoomRegistry {
    /// A room's settings, ordered by user. Expired bans stay in them until something else is set.
    package nonisolated func talkMembers(_ id: RoomID) async throws(RegistryError) -> [TalkMemberSetting] {
        try await self.store.read { try $0.talkMembers(id) }
    }

    /// Changes a participant's settings, between any two other changes. They last as long as the room; an expired ban counts as none. Calls
    /// `stored` once they are on disk, in the order of all changes, on the registry's queue; it must not block.
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
