import Access
import AppServer
import Foundation
import PortlessTestSupport
import RoomRegistry
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer

/// The channel: chat, presence, the queue and tickets, with what must survive a restart.
@Suite struct ChannelTests {
    private struct Member: Sendable {
        let socket: WebSocketClient

        static func open(
            _ server: PortlessServer, _ user: String, room: String = "r", role: String = "", name: String? = nil
        ) async throws -> Member {
            let body = "{\"userId\":\"\(user)\",\"role\":\"\(role.isEmpty ? "member" : role)\",\"name\":\"\(name ?? "")\"}"
            let made = try await server.call("POST", "rooms/\(room)/channel-token", body)
            let url = try made.json()["data"]["url"].string.orThrow()
            #expect(url.hasPrefix("ws://127.0.0.1:\(server.addresses.http.port)/channel?token="))
            let target = try url.components(separatedBy: ":\(server.addresses.http.port)").last.orThrow()
            return Member(socket: try await WebSocketClient.open(server.addresses.http.port, target))
        }

        func say(_ frame: String) async throws { try await self.socket.send(frame) }

        /// The answer to the frame with this ref.
        func answer(_ ref: Int) async throws -> JSON {
            var found: JSON?
            try await eventually("the answer to \(ref)") {
                found = try self.socket.messages.first { ["ack", "error"].contains($0["type"].string) && $0["ref"].int == ref }
                return found != nil
            }
            return try found.orThrow()
        }

        /// Frames of this type so far.
        func all(_ type: String) throws -> [JSON] { try self.socket.messages.filter { $0["type"].string == type } }

        func hello() async throws -> JSON { try await self.socket.message("hello", within: 60) }
    }

    private static func room(_ server: PortlessServer, _ id: String = "r") async throws {
        _ = try await server.call("POST", "rooms", "{\"roomId\":\"\(id)\",\"policy\":{\"neverStarted\":3600}}")
    }

    @Test func wordsAndPresence() async throws {
        try await PortlessServer.run({ $0.apps.offlineMs = 60_000 }) { server in
            try await Self.room(server)
            let ann = try await Member.open(server, "ann", role: "host", name: "Ann 安")
            let hello = try await ann.hello()
            #expect(hello["you"]["id"].string == "ann" && hello["you"]["role"].string == "host" && hello["kind"].string == "plain")
            #expect(hello["room"].string == "r" && hello["members"].list.isEmpty && hello["state"]["queue"].list.isEmpty)
            let bob = try await Member.open(server, "bob")
            #expect(try await bob.hello()["members"][0]["name"].string == "Ann 安")
            try await eventually("word of bob") { try ann.all("presence").first?["member"]["id"].string == "bob" }
            try await bob.say(#"{"type":"send","ref":1,"object":"chat","content":{"text":"hi"}}"#)
            #expect(try await bob.answer(1)["type"].string == "ack")
            let heard = try await ann.socket.message("message")
            #expect(heard["from"].string == "bob" && heard["object"].string == "chat" && heard["content"]["text"].string == "hi")
            #expect(try bob.all("message").isEmpty, "not to its own sender")
            try await ann.say(#"{"type":"command","ref":2,"to":"bob","content":[1]}"#)
            #expect(try await bob.socket.message("command")["content"][0].int == 1)
            try await ann.say(#"{"type":"send","ref":3,"to":"nobody","content":1}"#)
            #expect(try await ann.answer(3)["code"].string == "no_such_member")
            try await ann.say(#"{"type":"send","ref":4,"to":"bob","content":"for you alone"}"#)
            #expect(try await bob.socket.message("message")["content"].string == "for you alone")
            // A member that joins later gets the last messages, no commands and no message that was for one member.
            let cat = try await Member.open(server, "cat")
            #expect(try await cat.hello()["state"]["messages"].list.map { $0["from"].string } == ["bob"])
            // They are the room's members, for lists and kicks.
            #expect(try await server.api("rooms/r/members")["list"].list.map { $0["userId"].string } == ["ann", "bob", "cat"])
            await cat.socket.close()
            try await eventually("word that cat is away") { try ann.all("presence").last?["action"].string == "away" }
            server.pass(60_000)
            try await eventually("word that cat is away, then gone") {
                try ann.all("presence").map { "\($0["action"].string ?? "") \($0["member"]["id"].string ?? "")" }.suffix(2) == [
                    "away cat", "leave cat",
                ]
            }
            #expect(try await server.api("rooms/r/members")["total"].int == 2)
            _ = try await server.call("POST", "rooms/r/members/bob/kick")
            try await eventually("bob's end") { try bob.socket.closeCode == 4002 }
            let again = try await Member.open(server, "bob")
            #expect(try await again.socket.message("error", within: 60)["code"].string == "kept_out")
            _ = try await server.call("POST", "rooms/r/close")
            try await eventually("the end of all") { try ann.socket.closeCode == 4004 }
            #expect(try await ann.socket.message("closed")["reason"].string == "room.closed")
            for member in [ann, bob, again] { await member.socket.close() }
        }
    }

    @Test func theQueueAndTickets() async throws {
        try await PortlessServer.run { server in
            try await Self.room(server)
            let (host, ann, bob) = (
                try await Member.open(server, "host", role: "host"), try await Member.open(server, "ann"),
                try await Member.open(server, "bob")
            )
            for member in [host, ann, bob] { _ = try await member.hello() }
            try await ann.say(#"{"type":"queue.offer","ref":1,"value":"{\"nick\":\"Ann\"}"}"#)
            try await bob.say(#"{"type":"queue.offer","ref":1,"value":"b"}"#)
            _ = try await (ann.answer(1), bob.answer(1))
            try await bob.say(#"{"type":"queue.poll","ref":2,"key":"ann"}"#)
            #expect(try await bob.answer(2)["code"].string == "not_yours")
            try await bob.say(#"{"type":"queue.list","ref":3}"#)
            #expect(try await Set(bob.answer(3)["data"].list.map { $0["key"].string }) == ["ann", "bob"])
            let whole = try await server.api("gatherings/plain-r")
            #expect(whole["people"].list.count == 3 && whole["queue"].list.count == 2 && whole["queued"].int == 2)
            let first = try whole["queue"][0]["key"].string.orThrow()
            try await host.say(#"{"type":"queue.poll","ref":4}"#)
            #expect(try await host.answer(4)["type"].string == "ack")
            try await eventually("the poll") {
                try ann.all("queue").last.map { "\($0["action"].string ?? "") \($0["key"].string ?? "")" } == "POLL \(first)"
            }
            #expect(try await server.call("POST", "gatherings/plain-r/queue/pause").status == 200)
            try await host.say(#"{"type":"queue.offer","ref":5,"value":"h"}"#)
            #expect(try await host.answer(5)["code"].string == "queue_paused")
            #expect(try await server.call("POST", "gatherings/plain-r/queue/resume").json()["data"]["isPaused"].bool == false)
            try await host.say(#"{"type":"queue.offer","ref":15,"value":"h"}"#)
            #expect(try await host.answer(15)["type"].string == "ack")
            let second = first == "ann" ? "bob" : "ann"
            #expect(try await server.call("POST", "gatherings/plain-r/queue/remove", "{\"key\":\"\(second)\"}").status == 200)
            #expect(try await server.call("POST", "gatherings/plain-r/queue/remove", "{\"key\":\"\(second)\"}").status == 404)
            // A ticket: asked for, sent again, used once.
            try await ann.say(#"{"type":"ticket.open","ref":6,"to":"host","kind":"speak","payload":{"a":1}}"#)
            let ticket = try await host.socket.message("ticket")
            let id = try ticket["ticketId"].string.orThrow()
            #expect(
                ticket["action"].string == "opened" && ticket["from"].string == "ann" && ticket["payload"]["a"].int == 1 && id.count == 32)
            try await bob.say("{\"type\":\"ticket.answer\",\"ref\":7,\"ticketId\":\"\(id)\",\"approved\":true}")
            #expect(try await bob.answer(7)["code"].string == "no_such_ticket")
            try await host.say("{\"type\":\"ticket.answer\",\"ref\":8,\"ticketId\":\"\(id)\",\"approved\":true}")
            _ = try await host.answer(8)
            try await eventually("the answer") { try ann.all("ticket").last?["action"].string == "approved" }
            let kinds = try await server.api("rooms/r/events?limit=100")["list"].list.compactMap { $0["kind"].string ?? $0["type"].string }
            #expect(kinds.contains("queue.changed") && kinds.contains("ticket.opened") && kinds.contains("ticket.approved"), "\(kinds)")
            #expect(try await server.api("gatherings?kind=plain")["list"].list.map { $0["gatheringId"].string } == ["plain-r"])
            #expect(try await server.call("POST", "gatherings/plain-r/end").status == 200)
            try await eventually("the end") { try host.socket.closeCode == 4004 }
            #expect(try await server.call("GET", "gatherings/plain-r").status == 404)
            for member in [host, ann, bob] { await member.socket.close() }
        }
    }

    /// A change that the store refuses has not happened, and nobody is notified: state and events are one transaction.
    @Test(arguments: ["gatherings", "events"]) func whatIsNotStored(_ table: String) async throws {
        try await PortlessServer.run { server in
            try await Self.room(server)
            let (ann, bob) = (try await Member.open(server, "ann"), try await Member.open(server, "bob"))
            for member in [ann, bob] { _ = try await member.hello() }
            for change in ["INSERT", "UPDATE"] {
                try await server.changeStore(
                    "CREATE TRIGGER no_\(change) BEFORE \(change) ON \(table) BEGIN SELECT RAISE(ABORT, 'refused by the test'); END")
            }
            try await ann.say(#"{"type":"queue.offer","ref":1,"value":"a"}"#)
            #expect(try await ann.answer(1)["code"].string == "unavailable")
            try await ann.say(#"{"type":"ticket.open","ref":2,"to":"bob","kind":"k"}"#)
            #expect(try await ann.answer(2)["code"].string == "unavailable")
            // Messages need no store, and go on.
            try await ann.say(#"{"type":"send","ref":3,"object":"chat","content":"still here"}"#)
            #expect(try await bob.socket.message("message")["content"].string == "still here")
            #expect(try bob.all("queue").isEmpty && bob.all("ticket").isEmpty)
            #expect(try await server.api("gatherings/plain-r")["queued"].int == 0)
            for change in ["INSERT", "UPDATE"] { try await server.changeStore("DROP TRIGGER no_\(change)") }
            try await ann.say(#"{"type":"queue.offer","ref":4,"value":"b"}"#)
            #expect(try await ann.answer(4)["type"].string == "ack")
            #expect(try await bob.socket.message("queue")["value"].string == "b")
            #expect(try await server.api("gatherings/plain-r")["queued"].int == 1)
            let kinds = try await server.api("rooms/r/events?limit=100")["list"].list.map { $0["kind"].string }
            #expect(kinds.count { $0 == "queue.changed" } == 1 && !kinds.contains("ticket.opened"), "\(kinds)")
            for member in [ann, bob] { await member.socket.close() }
        }
    }

    /// Values that a member leaves for others have bounds: a joiner gets all of them at once, and each change stores them.
    @Test func whatIsKeptIsBounded() async throws {
        try await PortlessServer.run({ $0.apps.messageRate = 500 }) { server in
            try await Self.room(server)
            let (ann, bob) = (try await Member.open(server, "ann"), try await Member.open(server, "bob"))
            for member in [ann, bob] { _ = try await member.hello() }
            let long = String(repeating: "x", count: 60_000)
            for number in 0..<20 {
                try await ann.say("{\"type\":\"send\",\"ref\":\(number),\"object\":\"chat\",\"content\":\"\(number) \(long)\"}")
                #expect(try await ann.answer(number)["type"].string == "ack")
            }
            let cat = try await Member.open(server, "cat")
            let kept = try await cat.hello()["state"]["messages"].list
            #expect(kept.count == 2 && kept.last?["content"].string?.hasPrefix("19 ") == true, "the last 128 KiB")
            // A burst in one segment is within the pace, and all of it is taken.
            let burst = (0..<150).flatMap { ClientFrame.bytes(1, Array("{\"type\":\"send\",\"ref\":\(1_000 + $0),\"content\":1}".utf8)) }
            try await bob.socket.socket.send(burst)
            for number in [0, 75, 149] { #expect(try await bob.answer(1_000 + number)["type"].string == "ack") }
            // Requests: small ones, and not too many of one member.
            try await ann.say("{\"type\":\"ticket.open\",\"ref\":100,\"to\":\"bob\",\"kind\":\"k\",\"payload\":\"\(long)\"}")
            let refused = try await ann.answer(100)
            #expect(refused["code"].string == "invalid" && refused["message"].string?.contains("1024 bytes") == true, "\(refused)")
            for number in 0...50 {
                try await ann.say("{\"type\":\"ticket.open\",\"ref\":\(200 + number),\"to\":\"bob\",\"kind\":\"k\(number)\"}")
            }
            #expect(try await ann.answer(249)["type"].string == "ack")
            #expect(try await ann.answer(250)["code"].string == "too_many_tickets")
            try await bob.say(#"{"type":"ticket.open","ref":1,"to":"ann","kind":"k\u0007"}"#)
            #expect(try await bob.answer(1)["code"].string == "invalid")
            try await bob.say(#"{"type":"ticket.open","ref":2,"to":"ann","kind":"k"}"#)
            #expect(try await bob.answer(2)["type"].string == "ack", "others have their own")
            for member in [ann, bob, cat] { await member.socket.close() }
        }
    }

    /// A second login of the same member closes the first.
    @Test func anotherLogin() async throws {
        try await PortlessServer.run { server in
            try await Self.room(server)
            let first = try await Member.open(server, "ann")
            _ = try await first.hello()
            let second = try await Member.open(server, "ann")
            #expect(try await second.hello()["members"].list.isEmpty)
            try await eventually("the first one's end") { try first.socket.closeCode == 4001 }
            #expect(try await server.api("rooms/r/members")["total"].int == 1)
            // A kick removes the last member, and so the gathering; the next member begins another.
            #expect(try await server.call("POST", "gatherings/plain-r/kick", #"{"userId":"ann"}"#).status == 200)
            try await eventually("the second one's end") { try second.socket.closeCode == 4002 }
            let gatherings = server.server.parts.apps.gatherings
            try await eventually("nothing to be left of it") { gatherings.count == 0 }
            #expect(try await server.server.parts.rooms.gatherings().isEmpty)
            let third = try await Member.open(server, "bob")
            #expect(try await third.hello()["members"].list.isEmpty)
            for member in [first, second, third] { await member.socket.close() }
        }
    }

    @Test func whatIsRefused() async throws {
        try await PortlessServer.run({ $0.credentials.jwtKey = TestCredential.keys.jwtKey }) { server in
            try await Self.room(server)
            func refusal(_ query: String) async -> String {
                do {
                    await (try WebSocketClient.open(server.addresses.http.port, "/channel\(query)")).close()
                    return ""
                } catch { return "\(error)" }
            }
            func token(_ claims: String) -> String { "?token=\(TestCredential.token(claims))" }
            #expect(await refusal("").contains(" 401 "))
            #expect(await refusal("?token=x&token=y").contains(" 401 "))
            #expect(await refusal(token(#"{"aud":"channel","sub":"a b","room":"r","exp":4000000000}"#)).contains("sub is no id"))
            #expect(await refusal(token(#"{"aud":"channel","sub":"a","room":"r","exp":1}"#)).contains("expired"))
            #expect(
                await refusal(token(#"{"aud":"channel","sub":"a","room":"r","kind":"mesh","exp":4000000000}"#)).contains("expected plain"))
            #expect(await refusal(token(#"{"aud":"channel","sub":"a","room":"../r","exp":4000000000}"#)).contains("roomId"))
            #expect(
                await refusal(token(#"{"aud":"channel","sub":"a","name":"x\u0000","room":"r","exp":4000000000}"#)).contains(
                    "control characters"))
            #expect(await refusal(token(#"{"sub":"a","room":"r","act":"play","exp":4000000000}"#)).contains(" 401 "))
            // A room that is not there.
            let lost = try await WebSocketClient.open(
                server.addresses.http.port, "/channel" + token(#"{"aud":"channel","sub":"a","room":"none","exp":4000000000}"#))
            #expect(try await lost.message("error", within: 60)["code"].string == "room_closed")
            let gatherings = server.server.parts.apps.gatherings
            try await eventually("nothing to be left of it") { gatherings.count == 0 }
            let ann = try await Member.open(server, "ann")
            _ = try await ann.hello()
            for (ref, frame) in [
                "nonsense", "{}", #"{"type":"dance","ref":2}"#, #"{"type":"send","ref":3}"#, #"{"type":"send","ref":4,"to":7,"content":1}"#,
                #"{"type":"queue.offer","ref":5}"#, #"{"type":"ticket.answer","ref":6,"ticketId":"x","approved":"yes"}"#,
                #"{"type":"ping","ref":[1]}"#,
            ].enumerated() {
                try await ann.say(frame)
                try await eventually("error \(ref)") { try ann.all("error").count == ref + 1 }
            }
            #expect(try ann.all("error").allSatisfy { $0["code"].string == "invalid" })
            try await ann.say("{\"type\":\"queue.offer\",\"ref\":9,\"value\":\"\(String(repeating: "v", count: 5_000))\"}")
            #expect(try await ann.answer(9)["code"].string == "invalid")
            try await ann.say(#"{"type":"ping","ref":"p"}"#)
            #expect(try await ann.socket.message("pong")["ref"].string == "p")
            await ann.socket.close()
            await lost.close()
        }
    }

    /// Places that were announced survive the server; members that do not come back leave.
    @Test func aRestart() async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-data-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await PortlessServer.run(data: directory) { server in
            try await Self.room(server)
            for user in ["ann", "bob"] {
                let member = try await Member.open(server, user)
                _ = try await member.hello()
                try await member.say("{\"type\":\"queue.offer\",\"ref\":1,\"value\":\"\(user)\"}")
                _ = try await member.answer(1)
            }
        }
        try await PortlessServer.run(data: directory, { $0.apps.offlineMs = 600_000 }) { server in
            let whole = try await server.api("gatherings/plain-r")
            #expect(
                whole["queue"].list.map { $0["key"].string } == ["ann", "bob"]
                    && whole["people"].list.allSatisfy { $0["awaySince"].string != nil })
            let ann = try await Member.open(server, "ann")
            #expect(try await ann.hello()["state"]["queue"].list.map { $0["value"].string } == ["ann", "bob"])
            server.pass(600_000)
            try await eventually("bob to have left") { try ann.all("presence").last?["action"].string == "leave" }
            #expect(try ann.all("queue").last?["action"].string == "DROP")
            #expect(try await server.api("gatherings/plain-r")["queue"].list.map { $0["key"].string } == ["ann"])
            await ann.socket.close()
        }
    }
}
