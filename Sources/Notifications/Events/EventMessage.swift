package import Rooms
import Support

/// The messages of the event feed, as JSON.
package enum EventMessage {
    /// `{"type":"event",…}`: the fields that webhooks and `GET /rooms/{id}/events` have too.
    package static func event(_ event: RoomEvent) -> String { #"{"type":"event",\#(self.fields(of: event))}"# }

    /// The members of an event's object, without braces, as in `RoomEvent.outputType` of the API. Built as text for speed: feeds and webhooks
    /// need one for every event. Kinds and room ids have no characters that JSON escapes, and the data is JSON already.
    package static func fields(of event: RoomEvent) -> String {
        #""id":\#(event.id),"number":\#(event.number),"kind":"\#(event.kind.rawValue)","#
            + #""roomId":\#(event.roomID.map { "\"\($0)\"" } ?? "null"),"instance":\#(event.instance),"#
            + #""at":"\#(Instant.text(event.at))","data":\#(event.data)"#
    }

    /// A range of event ids, both ends included, that can no longer be sent. The client's earlier state is out of date; the hello's
    /// snapshot is current.
    package static func gap(from: Int64, to: Int64) -> String { #"{"type":"gap","from":\#(from),"to":\#(to)}"# }

    /// The answer to a client's `{"type":"ping"}`.
    package static func pong(at: Int64) -> String { #"{"type":"pong","at":"\#(Instant.text(at))"}"# }
}
