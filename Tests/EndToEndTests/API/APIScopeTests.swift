import APITestSupport
import Foundation
import HTTPTypes
import RTMPTestSupport
import RoomRegistry
import Rooms
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ControlAPI
@testable import HTTPAPI
@testable import EarshotServer
@testable import ServerConfiguration

/// Tokens with limits, on rooms with live streams and channels, on the feed and on the command line.
@Suite struct APIScopeTests {
    /// The name of everything that the limited token must not see, in room ids, streams and texts.
    private static let foreign = "zulu"

    /// The ids of one foreign thing of each kind.
    private struct Foreign {
        var ids: [String: String] = ["roomId": APIScopeTests.foreign, "app": "live", "name": APIScopeTests.foreign, "userId": "ann"]
    }

    private func furnish(_ server: TestServer, _ api: CheckedAPI) async throws -> Foreign {
        var foreign = Foreign()
        try await api.ok("POST", "rooms/\(Self.foreign)/join", #"{"userId":"ann"}"#)
        try await api.ok("POST", "rooms/\(Self.foreign)/record", #"{"action":"start"}"#)
        try await api.ok("POST", "streams/live/\(Self.foreign)-ban/forbid", "{}")
        let task = try await api.ok(
            "POST", "links",
            #"{"direction":"pull","app":"live","name":"\#(Self.foreign)-in","url":"rtmp://127.0.0.1:9/live/x","onDemand":true}"#,
            status: 201)
        foreign.ids["linkId"] = "\(task["linkId"].int ?? 0)"
        let session = try await api.ok("GET", "sessions")["list"][0]["sessionId"].int.orThrow()
        let delivery = try await api.ok("GET", "webhooks/deliveries")["list"][0]["deliveryId"].int.orThrow()
        foreign.ids["sessionId"] = "\(session)"
        foreign.ids["deliveryId"] = "\(delivery)"
        foreign.ids["tokenId"] = "1"
        // Rows without files: a file is written when pictures come.
        let work = RecordingTask(
            id: "00000000000000ab", path: StreamPath(app: "live", name: Self.foreign), roomID: RoomID(stored: Self.foreign), slot: 1)
        let recording = Recording(id: "00000000000000ac", task: work, part: 1, file: "x.mp4", startedAt: 1, media: MediaSummary())
        let isStored = await withCheckedContinuation { done in
            server.server.parts.rooms.recordingBegan(recording) { done.resume(returning: $0) }
        }
        #expect(isStored)
        foreign.ids["recordingId"] = recording.id
        let snapshot = SnapshotRecord(
            id: "00000000000000aa", path: StreamPath(app: "live", name: Self.foreign), roomID: RoomID(stored: Self.foreign), slot: 1,
            file: "x.jpg", takenAt: server.server.parts.rooms.now, bytes: 1, width: 1, height: 1, row: 0)
        _ = try await server.server.parts.rooms.snapshotTaken(snapshot, SnapshotBounds(perStream: 10, bytes: 0))
        foreign.ids["snapshotId"] = snapshot.id
        let token = try await api.ok("POST", "rooms/\(Self.foreign)/channel-token", #"{"userId":"ann"}"#)["token"].string.orThrow()
        let channel = try await WebSocketClient.open(server.addresses.http.port, "/channel?token=\(token)")
        _ = try await channel.message("hello", within: 60)
        foreign.ids["gatheringId"] = "plain-\(Self.foreign)"
        return foreign
    }

    /// Every call with a limited token, on a room of somebody else that has everything: nothing is seen, nothing changes.
    @Test(arguments: [#""rooms":["acme-"]"#, #""apps":["other"]"#, #""rooms":["acme-"],"apps":["live"]"#])
    func nobodyReachesBeyond(_ limits: String) async throws {
        let loopback = [try CIDR(parsing: "127.0.0.0/8")]
        try await TestServer.run({
            $0.talk.always = true
            $0.outbound.allowPrivate = loopback
            $0.webhooks.urls = ["http://127.0.0.1:9/hook"]
        }) { server in
            let api = try await CheckedAPI(server)
            let publisher = try await server.livePublisher(Self.foreign)
            try await server.waitFor(Self.foreign, .live)
            let foreign = try await self.furnish(server, api)
            let token = try await api.limitedToken(limits)
            func state() async throws -> [String] {
                var texts: [String] = []
                for path in ["rooms/\(Self.foreign)/members", "tokens", "streams/forbidden", "rooms/\(Self.foreign)/talk", "links"] {
                    texts.append(try await api("GET", path).text.replacing(/"requestId":"[^"]*"/, with: ""))
                }
                return texts
            }
            let before = try await state()
            // Calls that create something are tried below.
            for route in APIRoute.all where route.reach != .creation {
                let path = route.parts.map { part in
                    switch part {
                    case .literal(let text): text
                    case .parameter(let name): foreign.ids[name] ?? "1"
                    }
                }.joined(separator: "/")
                let body = route.body.map { form in
                    "{\(form.inputs.filter(\.isRequired).map { "\"\($0.name)\":\"x\"" }.joined(separator: ","))}"
                }
                let answer = try await api(route.method.rawValue, path, body, token: token)
                switch route.reach {
                case .room, .stream, .thing: #expect(answer.status == 404, "\(route.name): \(answer.status) \(answer.text)")
                case .server: #expect(answer.status == 403, "\(route.name): \(answer.status) \(answer.text)")
                case .list:
                    #expect(answer.status == 200, "\(route.name): \(answer.text)")
                    #expect(!answer.text.contains(Self.foreign), "\(route.name) shows it: \(answer.text)")
                    let data = try answer.json()["data"]
                    #expect(data["total"].int ?? 0 == 0 && data["usedBytes"].int ?? 0 == 0, "\(route.name): \(answer.text)")
                case .creation: break
                case .anyone: #expect(answer.status == 200)
                }
                // The same with an unlimited token finds the thing: 404 above did not come from a wrong id.
                guard route.method == .get, !route.pathForm.inputs.isEmpty, route.reach != .server else { continue }
                // These have no file.
                guard !["downloadSnapshot", "getSnapshot", "downloadRecording"].contains(route.name) else { continue }
                let known = try await api("GET", path)
                #expect(known.status == 200, "\(route.name): \(known.text)")
            }
            #expect(try await state() == before)
            #expect(!publisher.isClosed)
            await publisher.close()
        }
    }

    @Test func itsOwnIsOpenToIt() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            for id in ["zulu", "acme", "acm-1"] {
                try await api.ok("POST", "rooms", #"{"roomId":"\#(id)","title":"find me"}"#, status: 201)
            }
            let token = try await api.limitedToken()
            try await api.ok("POST", "rooms", #"{"roomId":"acme-1","title":"find me"}"#, status: 201, token: token)
            // Without an id it gets one of its own.
            let made = try await api.ok("POST", "rooms", "{}", status: 201, token: token)
            #expect(made["roomId"].string?.hasPrefix("acme-r") == true)
            let list = try await api.ok("GET", "rooms?sort=createdAt", token: token)
            #expect(list["total"].int == 2 && list["list"][0]["roomId"].string == "acme-1")
            #expect(try await api.ok("GET", "rooms?q=find", token: token)["total"].int == 1)
            #expect(try await api.ok("GET", "rooms?state=created&isPublic=true", token: token)["total"].int == 2)
            let page = try await api.ok("GET", "rooms?pageSize=1&sort=id", token: token)
            #expect(page["total"].int == 2)
            let next = try page["next"].string.orThrow()
            let second = try await api.ok("GET", "rooms?pageSize=1&sort=id&after=\(next)", token: token)
            #expect(second["list"].count == 1 && second["next"].isNull)
            try await api.ok("POST", "rooms/acme-1/close", token: token)
            let events = try await api.ok("GET", "events", token: token)["list"].list
            #expect(events.map(\.["roomId"].string) == ["acme-1", made["roomId"].string, "acme-1"])
            // Still known by its events when it is gone.
            try await api.ok("DELETE", "rooms/acme-1", token: token)
            #expect(try await api.ok("GET", "rooms/acme-1/events", token: token)["list"].count == 3)
            let publisher = try await server.livePublisher("acme-2")
            try await server.waitFor("acme-2", .live)
            #expect(try await api.ok("GET", "streams", token: token)["total"].int == 1)
            #expect(try await api.ok("GET", "sessions", token: token)["total"].int == 1)
            #expect(try await api.ok("POST", "streams/live/acme-2/drop", token: token)["wasDropped"].bool == true)
            try await server.expectClosed(publisher, .dropped)
        }
    }

    /// The feed sends a limited token its own events only, from the ring and from the store.
    @Test func theFeedIsLimitedToo() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            let token = try await api.limitedToken(role: "backend")
            for id in ["zulu", "acme-0"] { try await api.ok("POST", "rooms", #"{"roomId":"\#(id)"}"#, status: 201) }
            let ticket = try await api.ok("POST", "events/ticket", token: token)["ticket"].string.orThrow()
            let feed = try await WebSocketClient.open(server.addresses.http.port, "/events?ticket=\(ticket)&after=0")
            try await api.ok("POST", "rooms/zulu/close")
            try await api.ok("POST", "rooms", #"{"roomId":"acme-1"}"#, status: 201)
            try await api.ok("POST", "rooms/acme-1/close")
            try await eventually("the last event") {
                try feed.messages.contains { $0["kind"].string == "room.closed" && $0["roomId"].string == "acme-1" }
            }
            let messages = try feed.messages
            #expect(messages.filter { $0["type"].string == "event" }.map(\.["roomId"].string) == ["acme-0", "acme-1", "acme-1"])
            await feed.close()
        }
    }

    @Test func theCommandMakesLimitedTokens() async throws {
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            try await TestServer.run(data: data) { server in
                let arguments = ["token", "create", "acme", "--role", "backend", "--rooms", "acme-", "--rooms", "acme_", "--apps", "live"]
                let made = try await EarshotProcess.command(arguments + ["--data", data])
                let secret = try #require(made.lines.first, "\(made.errors)")
                let api = try await CheckedAPI(server)
                try await api.ok("POST", "rooms", #"{"roomId":"acme_1"}"#, status: 201, token: secret)
                try await api.refused(403, "POST", "rooms", #"{"roomId":"zulu"}"#, token: secret)
                let list = try await EarshotProcess.command(["token", "list", "--data", data])
                #expect(list.text.contains("apps live; rooms acme-, acme_"), "\(list.text)")
                let bad = try await EarshotProcess.command(["token", "create", "x", "--role", "backend", "--rooms", "a b", "--data", data])
                #expect(bad.status == 1 && bad.errors.contains("rooms"), "\(bad.errors)")
            }
        }
    }
}
