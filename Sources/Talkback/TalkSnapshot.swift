import LibC
package import Rooms
import Support
package import Talk

/// A talk channel as the API shows it.
package struct TalkSnapshot: Sendable {
    package struct Member: Sendable {
        package let userID: String
        package let role: TalkRole
        /// Monotonic milliseconds.
        package let sinceMs: Int64
        package fileprivate(set) var isMuted: Bool
        package fileprivate(set) var gainDB: Double
        package let hasFloor: Bool
        package let report: VoiceReport?
        package let leftOut: LeftOut?

        package init(_ member: TalkMember, hasFloor: Bool, report: VoiceReport?, leftOut: LeftOut?) {
            self.userID = member.id.rawValue
            self.role = member.role
            self.sinceMs = member.sinceMs
            self.isMuted = member.isMuted
            self.gainDB = 20 * log10(Double(max(member.gain, 0.001)))
            self.hasFloor = hasFloor
            self.report = report
            self.leftOut = leftOut
        }
    }

    /// A talker's frames that were dropped.
    package struct LeftOut: Sendable, Equatable {
        /// Because the talker did not have the floor.
        package var muted: UInt64 = 0
        /// Because they were not audio.
        package var notAudio: UInt64 = 0
    }

    package let settings: TalkSettings
    /// Settings of participants, present or not.
    package var set: [TalkMemberSetting] = []
    package let holders: [String]
    package let queue: [String]
    package fileprivate(set) var members: [Member]
    package let listeners: Int
    package let mixes: Int
    package let encodes: Int
}

extension TalkSnapshot {
    /// The channel once a change of a participant's settings has reached it: a banned one has left.
    package func after(_ change: TalkMemberChange, nowMs: Int64) -> TalkSnapshot {
        var after = self
        let setting = change.setting
        after.set = change.all
        if let until = setting.bannedUntilMs, until > nowMs { after.members.removeAll { $0.userID.exact == setting.user.exact } }
        for index in after.members.indices where after.members[index].userID.exact == setting.user.exact {
            after.members[index].isMuted = setting.isMuted
            after.members[index].gainDB = setting.gainDB
        }
        return after
    }

    /// A channel that nobody has used.
    package init(settings: TalkSettings) {
        self.init(settings: settings, holders: [], queue: [], members: [], listeners: 0, mixes: 0, encodes: 0)
    }
}
