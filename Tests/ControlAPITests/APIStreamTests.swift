import APITestSupport
import Access
import Foundation
import NIOCore
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import ControlAPI
@testable import EarshotServer
@testable import Listening
@testable import Notifications
@testable import RoomRegistry
@testable import Streaming
@testable import Support

/// Streams through the API that nobody pushes.
@Suite struct APIStreamTests {
    /// Forbidding again changes time and reason, with or without a room.
    @Test(arguments: [true, false]) func forbiddingAgain(_ hasSpace: Bool) async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            if hasSpace { try await api.ok("POST", "rooms", #"{"roomId":"cam1"}"#, status: 201) }
            let first = try await api.ok("POST", "streams/live/cam1/forbid", #"{"seconds":60,"reason":"a"}"#)
            let second = try await api.ok("POST", "streams/live/cam1/forbid", #"{"seconds":3600,"reason":"b"}"#)
            #expect(second["reason"].string == "b" && second["createdAt"].string == first["createdAt"].string)
            #expect(second["forbiddenUntil"].ms - first["forbiddenUntil"].ms >= 3_540_000)
            #expect(try await api.ok("GET", "streams/forbidden")["list"][0]["reason"].string == "b")
        }
    }

    /// A device's name is that of its room's stream in every call about a stream.
    @Test func aDevicesName() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"acme-1","deviceUid":"cam"}"#, status: 201)
            let state = try await api.ok("GET", "streams/live/cam")
            #expect(state["name"].string == "acme-1" && state["state"].string == "inactive")
            let ban = try await api.ok("POST", "streams/live/cam/forbid", #"{"reason":"a"}"#)
            #expect(ban["name"].string == "acme-1")
            #expect(try await api.ok("GET", "rooms/acme-1")["state"].string == "forbidden")
            #expect(try await api.ok("GET", "streams/live/cam")["state"].string == "forbid")
            let resumed = try await api.ok("POST", "streams/live/cam/resume")
            #expect(resumed["name"].string == "acme-1" && resumed["state"].string == "inactive")
            let push = PushRequest(
                path: StreamPath(app: "live", name: "cam"), clientAddress: "192.0.2.1", session: 7, parameters: "", mayCreateRoom: false)
            _ = try await server.rooms.admitPush(push).get()
            let pushes = try await api.ok("GET", "streams/published?app=live&name=cam")["list"]
            #expect(pushes.list.map(\.["name"].string) == ["acme-1"])
            #expect(try await api.ok("POST", "streams/live/cam/drop")["wasDropped"].bool == false, "no connection")
            #expect(try await api.ok("GET", "rooms/cam/talk")["roomId"].string == "acme-1")
            // A token's limits are about the stream, whatever it is called.
            let token = try await api.limitedToken()
            try await api.ok("POST", "rooms", #"{"roomId":"zulu","deviceUid":"acme-x"}"#, status: 201)
            #expect(try await api.ok("GET", "streams/live/cam", token: token)["name"].string == "acme-1")
            try await api.refused(404, "GET", "rooms/acme-x/talk", token: token)
            for (call, body) in [("drop", nil), ("forbid", "{}"), ("resume", nil)] {
                try await api.refused(404, "POST", "streams/live/acme-x/\(call)", body, token: token)
            }
            let taken = try await api("POST", "rooms", #"{"roomId":"acme-2","deviceUid":"zulu"}"#, token: token)
            #expect(taken.status == 409 && !taken.text.contains("room zulu") && !taken.text.contains(#""roomId":"zulu""#), "\(taken.text)")
        }
    }

    /// The self-check finds a wrong counter.
    @Test func theSelfCheckFindsAWrongCounter() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            #expect(try await api.ok("GET", "selfcheck")["ok"].bool == true)
            server.server.parts.connections.counters.update { $0.connectionsAccepted += 1 }
            _ = server.server.parts.connections.admission.enterPublisher(limit: 10)
            let check = try await api.ok("GET", "selfcheck")
            #expect(check["ok"].bool == false)
            let wrong = check["list"].list.filter { $0["ok"].bool == false }
            #expect(wrong.map(\.["name"].string) == ["connections", "publishers"])
            #expect(wrong[0]["expected"].int == 0 && wrong[0]["actual"].int == 1)
            server.server.parts.connections.admission.leavePublisher()
        }
    }

    @Test func ticketsAreForTheFeed() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            let ticket = try await api.ok("POST", "events/ticket", #"{"roomId":"r1"}"#)["ticket"].string.orThrow()
            let holder = server.server.parts.api.tickets.redeem(ticket)
            #expect(holder?.room == "r1" && holder?.role == .admin)
            #expect(server.server.parts.api.tickets.redeem(ticket) == nil)
            let events = try await api.ok("GET", "events?limit=1")
            #expect(events["list"][0]["kind"].string == "room.created")
            #expect(events["last"].int == events["list"][0]["id"].int)
            #expect(try await api.ok("GET", "events?roomId=r1")["isComplete"].bool == true)
            #expect(try await api.ok("GET", "events?after=\(events["last"].int.orThrow())")["list"].count == 0)
        }
    }
}
