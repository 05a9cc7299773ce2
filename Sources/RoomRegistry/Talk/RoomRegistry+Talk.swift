package import Rooms
import Store
import Support

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
        try await self.call(keeping: keeping, stored: { stored($0.setting) }) { work in
            guard try work.store.room(id.rawValue) != nil else { throw RegistryError.noSuchRoom(id.rawValue) }
            var setting = try work.store.talkMembers(id).first { $0.user.exact == user.exact } ?? TalkMemberSetting(user: user)
            if let until = setting.bannedUntilMs, until <= work.now { setting.bannedUntilMs = nil }
            let old = setting
            change(&setting)
            work.change.talkMember(from: old, to: setting)
            try work.store.set(setting, of: id, at: work.now)
            return TalkMemberChange(setting: setting, all: try work.store.talkMembers(id))
        }
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
        _ = try await self.call(stored: stored) { work in
            guard try work.store.room(id.rawValue) != nil else { throw RegistryError.noSuchRoom(id.rawValue) }
            var settings = try work.store.talkSettings(id) ?? standard
            let old = settings
            change(&settings)
            work.change.talk(from: old, to: settings)
            try work.store.set(settings, of: id)
            return settings
        }
    }

    /// Calls `deliver` with a room's talk settings, in the order of all changes to them. The closure runs on the registry's queue and must not block.
    package nonisolated func notifyTalk(
        of id: RoomID, to deliver: @escaping @Sendable (TalkSettings?, [TalkMemberSetting]) -> Void
    ) async throws(RegistryError) {
        _ = try await self.call(isChange: false, stored: { deliver($0.0, $0.1) }) { work in
            (try work.store.talkSettings(id), try work.store.talkMembers(id))
        }
    }
}
