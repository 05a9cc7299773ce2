import Rooms
import Support
import Testing

@testable import ControlAPI

/// The query of a subscription to the event feed.
@Suite struct EventsQueryTests {
    @Test func queries() throws {
        #expect(try EventsQuery("") == EventsQuery(""))
        let all = try EventsQuery("ticket=a%2Bb&after=17&roomId=cam_1")
        #expect(all.ticket == "a+b")
        #expect(all.after == 17)
        #expect(all.room == "cam_1")
        #expect(all.kinds.isEmpty)
        #expect(try EventsQuery("kinds=room.live,room.closed").kinds == [.roomLive, .roomClosed])
    }

    @Test(arguments: [
        ("after=", "after"), ("after=-1", "after"), ("after=x", "after"), ("after=1.5", "after"), ("after=9223372036854775808", "after"),
        ("after=%2B1", "after"), ("after=1&after=2", "after"), ("room=", "room"), ("room=a/b", "room"), ("room=%27%20OR%201=1", "room"),
        ("room=..", "room"), ("ticket=", "ticket"), ("ticket=" + String(repeating: "a", count: 8_193), "ticket"), ("token=x", "token"),
        ("x", "x"), ("kinds=", "kinds"), ("kinds=room.live,", "kinds"), ("kinds=room.live,room.dead", "kinds"),
    ])
    func badQueries(_ query: String, _ field: String) {
        let error = #expect(throws: FieldError.self) { try EventsQuery(query) }
        #expect(error?.field == field)
        #expect(error?.value.contains("aaaa") != true, "a ticket is shown")
    }
}
