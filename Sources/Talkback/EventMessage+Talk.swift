import Notifications
package import Rooms
import Talk

extension EventMessage {
    /// The members of a room's talk channel: who speaks, and how loudly. Sent to present subscribers only, and never stored.
    package static func talkMembers(_ room: RoomID, _ members: [TalkSnapshot.Member]) -> String {
        // User ids have no characters that JSON escapes.
        let list = members.map { member in
            let level = member.report.map { String(Int($0.levelDB.rounded())) } ?? "null"
            return #"{"userId":"\#(member.userID)","speaking":\#(member.report?.isSpeaking ?? false),"levelDb":\#(level),"#
                + #""hasFloor":\#(member.hasFloor),"muted":\#(member.isMuted)}"#
        }
        return #"{"type":"talk.members","roomId":"\#(room)","members":[\#(list.joined(separator: ","))]}"#
    }
}
