import Rooms
import Talk

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A talk channel as the API shows it.
struct TalkSnapshot: Sendable {
    struct Member: Sendable {
        let userID: String
        let role: TalkRole
        /// Monotonic milliseconds.
        let sinceMs: Int64
        fileprivate(set) var isMuted: Bool
        fileprivate(set) var gainDB: Double
        let hasFloor: Bool
        let report: VoiceReport?
        let leftOut: TalkPublishSession.Counts?

        init(_ member: TalkMember, hasFloor: Bool, report: VoiceReport?, leftOut: TalkPublishSession.Counts?) {
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

    let settings: TalkSettings
    /// Settings of participants, present or not.
    var set: [TalkMemberSetting] = []
    let holders: [String]
    let queue: [String]
    fileprivate(set) var members: [Member]
    let listeners: Int
    let mixes: Int
    let encodes: Int
}

extension TalkSnapshot {
    /// The channel once a change of a participant's settings has reached it: a banned one has left.
    func after(_ change: TalkMemberChange, nowMs: Int64) -> TalkSnapshot {
        var after = self
        let setting = change.setting
        after.set = change.all
        if let until = setting.bannedUntilMs, until > nowMs { after.members.removeAll { $0.userID == setting.user } }
        for index in after.members.indices where after.members[index].userID == setting.user {
            after.members[index].isMuted = setting.isMuted
            after.members[index].gainDB = setting.gainDB
        }
        return after
    }

    /// A channel that nobody has used.
    init(settings: TalkSettings) {
        self.init(settings: settings, holders: [], queue: [], members: [], listeners: 0, mixes: 0, encodes: 0)
    }
}
