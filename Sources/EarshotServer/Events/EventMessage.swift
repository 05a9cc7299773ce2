import Rooms

/// What the event feed says, as JSON.
enum EventMessage {
    /// `{"type":"event",…}`: the fields that webhooks and `GET /rooms/{id}/events` have too.
    static func event(_ event: RoomEvent) -> String {
        #"{"type":"event",\#(self.fields(of: event))}"#
    }

    /// The members of an event, without braces, as ``RoomEvent/shape`` has them. Put together from text: every subscriber and webhook of
    /// every event costs one of these. Kinds and room ids have no characters that JSON escapes, and the data is JSON already.
    static func fields(of event: RoomEvent) -> String {
        #""id":\#(event.id),"number":\#(event.number),"kind":"\#(event.kind.rawValue)","#
            + #""roomId":\#(event.roomID.map { "\"\($0)\"" } ?? "null"),"instance":\#(event.instance),"#
            + #""at":"\#(Instant.text(event.at))","data":\#(event.data)"#
    }

    /// Events that cannot be told any more: their ids, both ends included. What a client knows from before is out of date; the hello's
    /// snapshot is what stands.
    static func gap(from: Int64, to: Int64) -> String { #"{"type":"gap","from":\#(from),"to":\#(to)}"# }

    /// Who speaks in a room's talk channel, and how loud: told to those who listen to the feed now, and kept nowhere.
    static func talkMembers(_ room: RoomID, _ members: [TalkSnapshot.Member]) -> String {
        // User ids have no characters that JSON escapes.
        let list = members.map { member in
            let level = member.report.map { String(Int($0.levelDB.rounded())) } ?? "null"
            return #"{"userId":"\#(member.userID)","speaking":\#(member.report?.isSpeaking ?? false),"levelDb":\#(level),"#
                + #""hasFloor":\#(member.hasFloor),"muted":\#(member.isMuted)}"#
        }
        return #"{"type":"talk.members","roomId":"\#(room)","members":[\#(list.joined(separator: ","))]}"#
    }

    /// The answer to a client's `{"type":"ping"}`.
    static func pong(at: Int64) -> String { #"{"type":"pong","at":"\#(Instant.text(at))"}"# }
}
