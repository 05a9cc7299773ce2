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
    package static let mostPerRoom = 512
}

/// A participant's settings after a change, and those of the whole room. A value.
package struct TalkMemberChange: Sendable, Equatable {
    package let setting: TalkMemberSetting
    /// Ordered by user.
    package let all: [TalkMemberSetting]

    package init(setting: TalkMemberSetting, all: [TalkMemberSetting]) {
        self.setting = setting
        self.all = all
    }
}
