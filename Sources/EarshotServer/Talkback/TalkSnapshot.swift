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
        let isMuted: Bool
        let gainDB: Double
        let hasFloor: Bool
        let report: VoiceReport?
        let leftOut: TalkSeat.Counts?

        init(_ member: TalkMember, hasFloor: Bool, report: VoiceReport?, leftOut: TalkSeat.Counts?) {
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
    /// What was set for participants, there or not.
    var set: [TalkMemberSetting] = []
    let holders: [String]
    let queue: [String]
    let members: [Member]
    let listeners: Int
    let mixes: Int
    let encodes: Int
}

extension TalkSnapshot {
    /// Of a channel that nobody has used.
    init(settings: TalkSettings) {
        self.init(settings: settings, holders: [], queue: [], members: [], listeners: 0, mixes: 0, encodes: 0)
    }
}
