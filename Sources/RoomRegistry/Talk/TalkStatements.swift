import Rooms
import Store

extension StoreAccess {
    func talkMembers(_ id: RoomID) throws -> [TalkMemberSetting] {
        try self.all(#"SELECT "user", muted, gain_db, banned_until FROM talk_members WHERE room_id = $1 ORDER BY "user""#, [id.rawValue]) {
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
            return try self.run(#"DELETE FROM talk_members WHERE room_id = $1 AND "user" = $2"#, [id.rawValue, setting.user])
        }
        try self.run(
            """
            INSERT INTO talk_members (room_id, "user", muted, gain_db, banned_until, set_at) VALUES ($1, $2, $3, $4, $5, $6)
            ON CONFLICT (room_id, "user") DO UPDATE SET
            muted = excluded.muted, gain_db = excluded.gain_db, banned_until = excluded.banned_until, set_at = excluded.set_at
            """,
            [id.rawValue, setting.user, setting.isMuted ? 1 : 0, setting.gainDB, setting.bannedUntilMs, nowMs])
        try self.run(
            """
            DELETE FROM talk_members WHERE room_id = $1 AND "user" IN
            (SELECT "user" FROM talk_members WHERE room_id = $1 ORDER BY set_at DESC, "user" LIMIT 9223372036854775807 OFFSET $2)
            """,
            [id.rawValue, TalkMemberSetting.mostPerRoom])
    }
}

extension StoreAccess {
    func talkSettings(_ id: RoomID) throws -> TalkSettings? {
        try self.all(
            "SELECT mode, talkers, listeners, max_open, max_hold_ms, preempts, ducks FROM talk_settings WHERE room_id = $1", [id.rawValue]
        ) { row in
            var settings = TalkSettings()
            settings.mode = try row.word()
            settings.talkers = row.next()
            settings.listeners = row.next()
            settings.maxOpen = row.next()
            settings.maxHoldMs = row.next()
            settings.preempts = row.next() as Int64 == 1
            settings.ducks = row.next() as Int64 == 1
            return settings
        }.first
    }

    func set(_ settings: TalkSettings, of id: RoomID) throws {
        try self.run(
            """
            INSERT INTO talk_settings (room_id, mode, talkers, listeners, max_open, max_hold_ms, preempts, ducks)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (room_id) DO UPDATE SET
            mode = excluded.mode, talkers = excluded.talkers, listeners = excluded.listeners, max_open = excluded.max_open,
            max_hold_ms = excluded.max_hold_ms, preempts = excluded.preempts, ducks = excluded.ducks
            """,
            [
                id.rawValue, settings.mode.rawValue, settings.talkers, settings.listeners, settings.maxOpen, settings.maxHoldMs,
                settings.preempts ? 1 : 0, settings.ducks ? 1 : 0,
            ])
    }
}
