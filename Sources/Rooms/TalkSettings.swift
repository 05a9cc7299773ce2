/// The settings of a room's talk channel. A value; rooms without their own use the server's.
package struct TalkSettings: Sendable, Equatable {
    package enum Mode: String, Sendable, CaseIterable {
        /// All talkers are heard, up to ``maxOpen``.
        case open
        /// One at a time: push to talk.
        case ptt
    }

    package var mode = Mode.open
    /// Maximum participants who may send voice, at a time.
    package var talkers = 8
    package var listeners = 50
    /// Maximum open microphones at a time, in mode open.
    package var maxOpen = 8
    /// How long the floor may be held, in mode ptt.
    package var maxHoldMs: Int64 = 30_000
    /// Whether a higher role takes the floor at once.
    package var preempts = false
    /// Whether listeners hear less of the others while they speak themselves.
    package var ducks = false

    package init() {}

    package static let talkerRange = 1...32
    package static let listenerRange = 1...1_000
    package static let holdRange: ClosedRange<Int64> = 1_000...600_000
}

extension StoreAccess {
    func talkSettings(_ id: RoomID) throws -> TalkSettings? {
        try self.all(
            "SELECT mode, talkers, listeners, max_open, max_hold_ms, preempts, ducks FROM talk_settings WHERE room_id = ?", [id.rawValue]
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
            VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (room_id) DO UPDATE SET
            mode = excluded.mode, talkers = excluded.talkers, listeners = excluded.listeners, max_open = excluded.max_open,
            max_hold_ms = excluded.max_hold_ms, preempts = excluded.preempts, ducks = excluded.ducks
            """,
            [
                id.rawValue, settings.mode.rawValue, settings.talkers, settings.listeners, settings.maxOpen, settings.maxHoldMs,
                settings.preempts ? 1 : 0, settings.ducks ? 1 : 0,
            ])
    }
}

extension RoomRegistry {
    /// Nil if the room has none of its own.
    package nonisolated func talkSettings(_ id: RoomID) async throws(RegistryError) -> TalkSettings? {
        try await self.store.read { try $0.talkSettings(id) }
    }

    /// Changes a room's settings, between any two other changes. A room without its own starts from `standard`. They last as long as the
    /// room. Calls `stored` once they are on disk, in the order of all changes, on the registry's queue; it must not block.
    package nonisolated func changeTalkSettings(
        of id: RoomID, from standard: TalkSettings, _ change: @escaping @Sendable (inout TalkSettings) -> Void,
        stored: @escaping @Sendable (TalkSettings) -> Void
    ) async throws(RegistryError) {
        _ = try await self.perform(stored: stored) { work in
            guard try work.store.room(id.rawValue) != nil else { throw RegistryError.noSuchRoom(id.rawValue) }
            var settings = try work.store.talkSettings(id) ?? standard
            change(&settings)
            try work.store.set(settings, of: id)
            return settings
        }
    }

    /// Calls `told` with a room's talk settings, in the order of all changes to them. It runs on the registry's queue and must not block.
    package nonisolated func notifyTalk(
        of id: RoomID, to told: @escaping @Sendable (TalkSettings?, [TalkMemberSetting]) -> Void
    ) async throws(RegistryError) {
        _ = try await self.perform(stored: { told($0.0, $0.1) }) { work in
            (try work.store.talkSettings(id), try work.store.talkMembers(id))
        }
    }
}
