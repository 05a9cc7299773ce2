import AppServer
import Foundation
import PortlessTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer

/// Classes whose members are native apps: whole servers beside a stand-in for RongCloud.
@Suite struct RongCloudTests {
    /// A class from its first member to its last, as the exact list of calls.
    @Test func aClass() async throws {
        try await RongCloudStandIn.run { cloud, server in
            var calls: [String] = []
            func expect(_ lines: String...) async throws {
                calls += lines
                try await cloud.becomes(calls)
            }
            let ann = try await ClassMember.join(server, "Ann")
            #expect(ann.imToken == "rc-\(ann.id)" && ann.authorization != ann.imToken && !ann.authorization.isEmpty)
            try await expect("getToken Ann", "create Ann math")
            let bob = try await ClassMember.join(server, "Bob")
            try await expect(
                "getToken Bob", "join Bob math",
                "Bob > all of math +0 SC:RMCMsg action=1 camera=1 microphone=1 role=2 userId=Bob",
                "Bob > all of math +0 SC:DisplayMsg display=display://type=1?userId=Bob?uri=")
            let cat = try await ClassMember.join(server, "Cat", audience: true)
            try await expect(
                "getToken Cat", "join Cat math", "Cat > all of math +0 SC:RMCMsg action=1 camera=1 microphone=1 role=4 userId=Cat")
            #expect(try await cat.call("/room/speech/apply") == 0)
            try await expect("Cat > Ann of math +0 SC:RSMsg reqUserId=Cat ticket=T")
            let ticket = try (cloud.calls.last?.content["ticket"].string).orThrow()
            #expect(try await ann.call("/room/speech/approve", ["ticket": ticket]) == 0)
            try await expect(
                "Ann > Cat of math +0 SC:SRMsg action=1 opUserId=Ann reqUserId=Cat role=3",
                "Ann > all of math +1 SC:RCMsg opUserId=Ann users=[role=3 userId=Cat]")
            #expect(try await ann.call("/room/device/control", ["userId": cat.id, "cameraOn": false]) == 0)
            try await expect("Ann > all of math +1 SC:DRMsg enable=0 type=1 userId=Cat")
            // A refused call does not reach RongCloud.
            #expect(try await cat.call("/room/kick", ["userId": ann.id]) == 3)
            #expect(try await ann.call("/room/kick", ["userId": cat.id]) == 0)
            try await expect(
                "Ann > all of math +1 SC:RMCMsg action=3 camera=0 microphone=1 role=3 userId=Cat", "quit Cat math")
            #expect(try await bob.call("/room/leave") == 0)
            try await expect(
                "Bob > all of math +0 SC:DisplayMsg display=", "quit Bob math",
                "Bob > all of math +0 SC:RMCMsg action=2 camera=1 microphone=1 role=2 userId=Bob")
            #expect(try await ann.call("/room/leave") == 0)
            try await expect("dismiss Ann math")
            try await eventually("the class's end") { server.server.parts.apps.gatherings.count == 0 }
            try await cloud.becomes(calls)
        }
    }

    /// A token of the same class: the same member joins the group once more. A new token is RongCloud's as well.
    @Test func joiningAgain() async throws {
        try await RongCloudStandIn.run { cloud, server in
            let ann = try await ClassMember.join(server, "Ann")
            let again = try await ClassMember.join(server, "Ann", authorization: ann.authorization)
            #expect(again.id == ann.id)
            try await cloud.becomes(["getToken Ann", "create Ann math", "getToken Ann", "join Ann math"])
            let fresh = try await ClassMember.call(server, "/user/refresh-token", [:], authorization: ann.authorization)
            #expect(fresh["data"]["result"]["imToken"].string == "rc-\(ann.id)")
            cloud.answer { _ in .json(200, #"{"code":200}"#) }
            #expect(try await ann.call("/user/refresh-token") == 10)
            // An operator's end is the group's end, too.
            #expect(try await server.call("POST", "gatherings/class-math/end").status == 200)
            try await eventually("the group's end") { cloud.transcript.last == "dismiss Ann math" }
        }
    }

    @Test func failures() async throws {
        // Six tries, however busy the machine is.
        try await RongCloudStandIn.run(configure: { $0.apps.rongcloud.callWaitMs = 120_000 }) { cloud, server in
            func join(_ name: String) async throws -> Int? {
                try await ClassMember.call(server, "/room/join", ["roomId": "math", "userName": name])["errCode"].int
            }
            func fail(_ path: String, _ answer: CannedServer.Answer) { cloud.answer { $0.path == path ? answer : nil } }
            // No token: nothing has begun.
            for answer: CannedServer.Answer in [.json(200, #"{"code":1004}"#), .json(200, #"{"code":200}"#), .json(500, "{}"), .close] {
                fail("/user/getToken", answer)
                #expect(try await join("Ann") == 10)
            }
            #expect(server.server.parts.apps.gatherings.count == 0 && cloud.calls.count == 4)
            // No group: the class is over before it has begun. Tried three times.
            fail("/group/create", .json(200, #"{"code":1050}"#))
            #expect(try await join("Ann") == 11)
            try await cloud.becomes(
                Array(repeating: "getToken Ann", count: 5) + Array(repeating: "create Ann math", count: 3) + ["dismiss Ann math"])
            try await eventually("the class's end") { server.server.parts.apps.gatherings.count == 0 }
            // Once is no failure.
            let before = cloud.calls.count
            cloud.answer { call in
                call.path == "/group/create" && cloud.calls.count { $0.path == "/group/create" } == 4 ? .json(503, "busy") : nil
            }
            let ann = try await ClassMember.join(server, "Ann")
            #expect(cloud.transcript.suffix(from: before) == ["getToken Ann", "create Ann math", "create Ann math"])
            // A member that cannot join the group cannot join the class.
            fail("/group/join", .json(200, #"{"code":1050}"#))
            #expect(try await join("Bob") == 11)
            let people = try await server.api("gatherings/class-math")["people"].list
            #expect(people.map { $0["id"].string ?? $0["userId"].string } == [ann.id])
            cloud.answer { _ in nil }
            let cat = try await ClassMember.join(server, "Cat")
            try await eventually("the word of Cat") {
                cloud.transcript.last?.contains("SC:DisplayMsg display=display://type=1?userId=Cat") == true
            }
            // Messages fail for themselves.
            fail(RongCloudStandIn.publish, .json(200, #"{"code":1050}"#))
            let known = cloud.calls.count
            #expect(try await ann.call("/room/device/control", ["userId": cat.id, "cameraOn": false]) == 13)
            #expect(cloud.calls.count == known + 3)
            let members = try await HTTPAnswer.call(
                "GET", "\(server.http)/classroom/api/v1/room/members?roomId=math", headers: ["Authorization": ann.authorization])
            #expect(try members.json()["data"]["result"].list.contains { $0["camera"].bool == false }, "it is done here all the same")
            // The answer to the kick says that the group still has the member.
            fail("/group/quit", .json(200, #"{"code":1050}"#))
            #expect(try await ann.call("/room/kick", ["userId": cat.id]) == 22)
            #expect(try await cat.call("/room/leave") == 2, "it is out all the same")
            #expect(server.lines.contains("A call of RongCloud has failed", "/group/quit.json", "1050"))
            #expect(cloud.calls.allSatisfy { $0.problem.isEmpty })
        }
    }

    /// A cloud that takes messages and never answers: the class goes on.
    @Test func aSlowCloud() async throws {
        try await RongCloudStandIn.run(configure: { $0.apps.rongcloud.callWaitMs = 500 }) { cloud, server in
            let ann = try await ClassMember.join(server, "Ann")
            cloud.answer { $0.path == RongCloudStandIn.publish ? .silence : nil }
            let bob = try await ClassMember.join(server, "Bob")
            let began = ContinuousClock.now
            for isOn in [false, true, false] {
                #expect(try await bob.call("/room/device/sync", ["cameraOn": isOn]) == 0)
            }
            // The queue would need a quarter of a minute for each, and so longer than this for the three.
            #expect(ContinuousClock.now - began < .seconds(40))
            #expect(try await server.api("gatherings/class-math")["people"].list.count == 2)
            #expect(try await bob.call("/room/leave") == 0, "the group hears of it later")
            #expect(try await ann.call("/room/device/sync", ["cameraOn": true]) == 0)
            #expect(try await server.api("gatherings/class-math")["people"].list.count == 1)
            cloud.answer { _ in nil }
            try await eventually("bob to be out of the group", within: 90) { cloud.transcript.contains("quit Bob math") }
        }
    }

    /// No host, no calls; and no address that the rules for outbound requests refuse.
    @Test func offAndRefused() async throws {
        try await RongCloudStandIn.run(configure: { $0.apps.rongcloud.host = nil }) { cloud, server in
            let ann = try await ClassMember.join(server, "Ann")
            #expect(ann.imToken == ann.authorization)
            _ = try await ClassMember.join(server, "Bob")
            #expect(try await RongCloudStandIn.webhook(server, "[]").status == 403)
            #expect(try await ann.call("/room/leave") == 0)
            #expect(cloud.calls.isEmpty)
        }
        try await RongCloudStandIn.run(configure: { $0.outbound.allowPrivate = [] }) { cloud, server in
            let answer = try await ClassMember.call(server, "/room/join", ["roomId": "math", "userName": "Ann"])
            #expect(answer["errCode"].int == 10 && answer["errDetail"].string == "RongCloud cannot be reached.")
            #expect(server.lines.contains("A call of RongCloud has failed", "outbound.allowPrivate"))
            #expect(cloud.calls.isEmpty)
        }
    }

    // MARK: - Presence

    private static func away(_ server: PortlessServer) async throws -> [String: Bool] {
        let people = try await server.api("gatherings/class-math")["people"].list
        return Dictionary(people.map { ($0["name"].string ?? "", $0["awaySince"].string != nil) }) { $1 }
    }

    @Test func theWebhook() async throws {
        try await RongCloudStandIn.run(configure: { $0.apps.classroomOfflineMs = 10_000 }) { cloud, server in
            let (ann, bob) = (try await ClassMember.join(server, "Ann"), try await ClassMember.join(server, "Bob"))
            #expect(try await Self.away(server) == ["Ann": false, "Bob": false], "here from the join on")
            func status(_ member: ClassMember, _ status: String) -> String { "[{\"userId\":\"\(member.id)\",\"status\":\"\(status)\"}]" }
            // Unsigned webhooks could remove all members.
            for (signature, ago) in [("", 0), ("00", 0), (String(repeating: "0", count: 40), 0), (nil, 400)] {
                let answer = try await RongCloudStandIn.webhook(server, status(bob, "1"), secondsAgo: ago, signature: signature)
                #expect(try answer.status == 403 && answer.json()["errCode"].int == 2)
            }
            #expect(try await RongCloudStandIn.webhook(server, "nonsense", signature: "x").status == 403)
            #expect(try await RongCloudStandIn.webhook(server, "nonsense").json()["errCode"].int == 4)
            #expect(try await Self.away(server) == ["Ann": false, "Bob": false])
            let answer = try await RongCloudStandIn.webhook(server, #"[{"userId":"stranger","status":"1"}]"#)
            #expect(try answer.status == 200 && answer.json()["data"]["result"].bool == true && answer.json()["errCode"].int == 0)
            #expect(try await RongCloudStandIn.webhook(server, status(ann, "1")).status == 200)
            try await eventually("ann to be away") { try await Self.away(server) == ["Ann": true, "Bob": false] }
            #expect(try await RongCloudStandIn.webhook(server, status(ann, "0")).status == 200)
            try await eventually("ann to be back") { try await Self.away(server) == ["Ann": false, "Bob": false] }
            // Logged out, and too long away: it has left.
            #expect(try await RongCloudStandIn.webhook(server, status(bob, "2")).status == 200)
            try await eventually("bob to be away") { try await Self.away(server) == ["Ann": false, "Bob": true] }
            server.pass(10_000)
            try await eventually("bob to have left") { try await Self.away(server) == ["Ann": false] }
            try await eventually("the group to know") { cloud.transcript.contains("quit Bob math") }
            try await eventually("ann to know") { cloud.transcript.last?.contains("SC:RMCMsg action=2") == true }
            #expect(try await RongCloudStandIn.webhook(server, status(bob, "0")).status == 200, "too late")
            #expect(try await bob.call("/room/speech/apply") == 2)
        }
    }

    /// A member that also has a socket here: the webhook says nothing about that one.
    @Test func aSocketBeside() async throws {
        try await RongCloudStandIn.run { cloud, server in
            let (ann, bob) = (try await ClassMember.join(server, "Ann"), try await ClassMember.join(server, "Bob"))
            let socket = try await WebSocketClient.open(server.addresses.http.port, "/channel?token=\(bob.authorization)")
            _ = try await socket.message("hello", within: 60)
            for status in ["0", "1"] {
                let body = "[{\"userId\":\"\(bob.id)\",\"status\":\"\(status)\"}]"
                #expect(try await RongCloudStandIn.webhook(server, body).status == 200)
            }
            #expect(try await ann.call("/room/device/control", ["userId": bob.id, "cameraOn": false]) == 0)
            #expect(try await socket.message("message", within: 60)["object"].string == "SC:DRMsg")
            // Its words reach the others by RongCloud.
            try await socket.send(#"{"type":"send","ref":1,"object":"RC:TxtMsg","content":{"content":"hi"}}"#)
            try await socket.send(
                "{\"type\":\"send\",\"ref\":2,\"to\":\"\(ann.id)\",\"object\":\"RC:TxtMsg\",\"content\":{\"content\":\"you\"}}")
            try await eventually("the words") {
                cloud.transcript.suffix(2) == ["Bob > all of math +0 RC:TxtMsg content=hi", "Bob > Ann of math +0 RC:TxtMsg content=you"]
            }
            #expect(try await Self.away(server) == ["Ann": false, "Bob": false] && socket.closeCode == nil)
            await socket.close()
            try await eventually("bob to be away") { try await Self.away(server) == ["Ann": false, "Bob": true] }
        }
    }

    /// RongCloud's connections outlive the server: present members still are.
    @Test func aRestart() async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-data-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let ids = Ids()
        try await RongCloudStandIn.run(data: directory) { _, server in
            let (ann, bob) = (try await ClassMember.join(server, "Ann"), try await ClassMember.join(server, "Bob"))
            #expect(
                try await RongCloudStandIn.webhook(server, "[{\"userId\":\"\(bob.id)\",\"status\":\"1\"}]").status == 200)
            try await eventually("bob to be away") { try await Self.away(server) == ["Ann": false, "Bob": true] }
            await ids.set(ann.id, ann.authorization)
        }
        try await RongCloudStandIn.run(data: directory) { cloud, server in
            try await eventually("ann to be here") { try await Self.away(server) == ["Ann": false, "Bob": true] }
            let (id, authorization) = await (ids.id, ids.authorization)
            let ann = ClassMember(server: server, room: "math", id: id, imToken: "", authorization: authorization)
            #expect(try await ann.call("/room/device/sync", ["cameraOn": false]) == 0)
            try await cloud.becomes(["\(id) > all of math +1 SC:DRMsg enable=0 type=1 userId=\(id)"])
            #expect(try await RongCloudStandIn.webhook(server, "[{\"userId\":\"\(id)\",\"status\":\"1\"}]").status == 200)
            try await eventually("ann to be away") { try await Self.away(server) == ["Ann": true, "Bob": true] }
        }
    }

    private actor Ids {
        var id = ""
        var authorization = ""
        func set(_ id: String, _ authorization: String) { (self.id, self.authorization) = (id, authorization) }
    }
}
