import Access
import ControlAPI
import EarshotServer
import Foundation
import Notifications
import PostgresTestSupport
import RoomRegistry
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import Listening
@testable import ServerConfiguration
@testable import Streaming
@testable import Support

/// The event feed of a real server, over sockets.
@Suite struct WebSocketEventsTests {
    @Test func helloThenEventsInOrder() async throws {
        try await TestServer.run { server in
            let rooms = server.server.parts.rooms
            let first = try await rooms.newRoom("first", title: "One \"1\"")
            let feed = try await WebSocketClient.open(server.addresses.http.port, "/events", token: try await rooms.newToken())
            let hello = try await feed.message("hello")
            #expect(hello["heartbeatSeconds"].int == 15)
            #expect(hello["lastEventId"].int == Int(try await rooms.lastEventID()))
            #expect(hello["rooms"].count == 1)
            #expect(hello["rooms"][0]["roomId"].string == "first")
            #expect(hello["rooms"][0]["state"].string == "created")
            #expect(hello["rooms"][0]["title"].string == "One \"1\"")
            _ = try await rooms.newRoom("second")
            _ = try await rooms.apply(.close, to: first.id.rawValue, action: "close", by: Actor("test"))
            try await eventually("two events") { try feed.eventIDs.count == 2 }
            let events = try feed.messages.filter { $0["type"].string == "event" }
            #expect(events[0]["kind"].string == "room.created")
            #expect(events[0]["roomId"].string == "second")
            #expect(events[0]["number"].int == 1)
            #expect(events[0]["at"].string?.hasSuffix("Z") == true)
            #expect(events[1]["kind"].string == "room.closed")
            #expect(events[1]["roomId"].string == "first")
            #expect(events[1]["number"].int == 2)
            #expect(events[1]["data"]["from"].string == "created")
            #expect(try feed.eventIDs == feed.eventIDs.sorted())
            await feed.close()
            try await eventually("its place to be free") { server.server.parts.events.subscribers == 0 }
        }
    }

    /// Only events of the kinds that were asked for, of those that were kept and of those that come; neither what is not kept.
    @Test func onlyTheKindsThatWereAskedFor() async throws {
        try await TestServer.run { server in
            let rooms = server.server.parts.rooms
            _ = try await rooms.newRoom("first")
            _ = try await rooms.apply(.close, to: "first", action: "close", by: Actor("test"))
            let feed = try await WebSocketClient.open(
                server.addresses.http.port, "/events?after=0&kinds=room.closed,room.expired", token: try await rooms.newToken())
            _ = try await feed.message("hello")
            let second = try await rooms.newRoom("second")
            server.server.parts.events.notify(#"{"type":"talk.members"}"#, of: second.id)
            _ = try await rooms.apply(.expire, to: "second", action: "expire", by: Actor("test"))
            try await eventually("two events") { try feed.eventIDs.count == 2 }
            let kinds = try feed.messages.map { $0["kind"].string ?? $0["type"].string ?? "" }
            #expect(kinds == ["hello", "room.closed", "room.expired"])
            await feed.close()
            let listed = try await server.api("events?kinds=room.created,room.expired")["list"].list.map(\.["kind"].string)
            #expect(listed == ["room.created", "room.created", "room.expired"])
            let own = try await server.api("rooms/second/events?kinds=room.expired")["list"].list.map(\.["kind"].string)
            #expect(own == ["room.expired"])
        }
    }

    @Test(arguments: [nil, "a-key-of-a-cluster-0123456789abcdef"]) func aTicketOpensOnce(_ cluster: String?) async throws {
        try await TestServer.run({ $0.cluster.key = cluster }) { server in
            let parts = server.server.parts
            _ = try await parts.rooms.newRoom("cam1")
            _ = try await parts.rooms.newRoom("cam2")
            let holder = EventHolder(
                tokenID: try await parts.rooms.createToken(name: "t", role: .backend).token.id, role: .backend, room: nil)
            let ticket = try parts.api.tickets.issue(to: holder).orThrow().text
            let feed = try await WebSocketClient.open(server.addresses.http.port, "/events?ticket=\(ticket)")
            #expect(try await feed.message("hello")["rooms"].count == 2)
            #expect(try await Self.refusal(server, "/events?ticket=\(ticket)") == "401 unauthorized")
            await feed.close()
            // A ticket for one room shows that room only, whatever is asked for.
            let bound = EventHolder(tokenID: holder.tokenID, role: .backend, room: "cam1")
            let own = try parts.api.tickets.issue(to: bound).orThrow().text
            let one = try await WebSocketClient.open(server.addresses.http.port, "/events?ticket=\(own)")
            #expect(try await one.message("hello")["rooms"].count == 1)
            _ = try await parts.rooms.apply(.close, to: "cam2", action: "close", by: Actor("test"))
            _ = try await parts.rooms.apply(.close, to: "cam1", action: "close", by: Actor("test"))
            try await eventually("its event") { try one.eventIDs.count == 1 }
            #expect(try await one.message("event")["roomId"].string == "cam1")
            await one.close()
            let other = try parts.api.tickets.issue(to: bound).orThrow().text
            #expect(try await Self.refusal(server, "/events?ticket=\(other)&roomId=cam2") == "403 forbidden")
            #expect(!server.lines.all.contains { line in [ticket, own, other].contains { line.contains($0) } }, "a ticket is in the log")
        }
    }

    /// Status and error, as "401 unauthorized". Checks that the body is the API's.
    private static func refusal(_ server: TestServer, _ target: String, _ headers: [String] = []) async throws -> String {
        let socket = try await SocketClient.open(server.addresses.http.port)
        try await socket.send(WebSocketClient.request(target, headers: headers))
        let answer = try await socket.answer()
        let json = JSON(try JSONSerialization.jsonObject(with: Data(answer.body.utf8)))
        let status = try (answer.head.split(separator: " ").dropFirst().first.flatMap { Int($0) }).orThrow()
        #expect(json["code"].int == status)
        #expect(json["message"].string?.isEmpty == false)
        #expect(json["requestId"].string?.isEmpty == false)
        try await eventually("the end") { socket.isClosed }
        return "\(status) \(json["error"]["type"].string ?? "")"
    }

    @Test func whoIsNotLetIn() async throws {
        try await TestServer.run { server in
            let rooms = server.server.parts.rooms
            let port = server.addresses.http.port
            let token = try await rooms.newToken()
            let (revoked, secret) = try await rooms.createToken(name: "old", role: .admin)
            _ = try await rooms.revokeToken(revoked.id)
            let good = ["Authorization: Bearer \(token)"]
            for (target, headers, expected) in [
                ("/events", [], "401 unauthorized"),
                ("/events?ticket=nothing", [], "401 unauthorized"),
                ("/events?ticket=nothing", good, "401 unauthorized"),
                ("/events", ["Authorization: Bearer earshot_nothing"], "401 unauthorized"),
                ("/events", ["Authorization: Basic YTpi"], "401 unauthorized"),
                ("/events", ["Authorization: Bearer \(token.uppercased())"], "401 unauthorized"),
                ("/events", ["Authorization: Bearer \(secret)"], "401 unauthorized"),
                ("/events", good + good, "401 unauthorized"),
                ("/events?after=x", good, "400 invalid"),
                ("/events?after=-1", good, "400 invalid"),
                ("/events?nothing=1", good, "400 invalid"),
                ("/events?roomId=..%2F", good, "400 invalid"),
                ("/events?roomId=nothing", good, "404 not_found"),
            ] {
                #expect(try await Self.refusal(server, target, headers) == expected, "\(target) \(headers.count)")
            }
            // A request that is no WebSocket does not use up a ticket.
            let holder = EventHolder(tokenID: 1, role: .backend, room: nil)
            let ticket = try server.server.parts.api.tickets.issue(to: holder).orThrow().text
            #expect(try await HTTPAnswer.get("\(server.http)/events?ticket=\(ticket)").status == 426)
            let feed = try await WebSocketClient.open(port, "/events?ticket=\(ticket)")
            _ = try await feed.message("hello")
            await feed.close()
        }
    }

    @Test func otherAddressesAreRefused() async throws {
        try await TestServer.run({ $0.access.apiFrom = HTTPAPIClientsTests.elsewhere }) { server in
            let token = try await server.server.parts.rooms.newToken()
            #expect(try await Self.refusal(server, "/events", ["Authorization: Bearer \(token)"]) == "403 forbidden")
        }
    }

    @Test func aUsedConnectionCanBecomeAFeed() async throws {
        try await TestServer.run { server in
            let token = try await server.server.parts.rooms.newToken()
            let socket = try await SocketClient.open(server.addresses.http.port)
            // As a proxy does that keeps its connections.
            for _ in 0..<2 {
                try await socket.send("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(try await socket.answer().body == "ok\n")
            }
            let feed = try await WebSocketClient.upgrade(socket, "/events", token: token)
            _ = try await feed.message("hello")
            _ = try await server.server.parts.rooms.newRoom("cam1")
            _ = try await feed.message("event")
            try await feed.send(9, [1, 2, 3])
            try await eventually("a pong") { try feed.all.contains { $0.opcode == 10 && $0.payload == [1, 2, 3] } }
            await feed.close()
            // Pipelined after another request.
            let both = try await SocketClient.open(server.addresses.http.port)
            try await both.send(
                "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n" + WebSocketClient.request("/events", headers: ["Authorization: Bearer \(token)"])
            )
            #expect(try await both.answer().body == "ok\n")
            #expect(try await both.answer().head.hasPrefix("HTTP/1.1 101 "))
            await both.close()
        }
    }

    @Test func resumingAfterAnEvent() async throws {
        try await TestServer.run { server in
            let rooms = server.server.parts.rooms
            let token = try await rooms.newToken()
            let port = server.addresses.http.port
            for number in 1...250 { _ = try await rooms.newRoom("r\(number)") }
            let last = Int(try await rooms.lastEventID())
            let all = try await WebSocketClient.open(port, "/events?after=0", token: token)
            try await eventually("all events") { try all.eventIDs.count == last }
            #expect(try all.eventIDs == Array(1...last))
            #expect(try all.messages.first?["type"].string == "hello")
            let some = try await WebSocketClient.open(port, "/events?after=\(last - 3)", token: token)
            try await eventually("three events") { try some.eventIDs == Array((last - 2)...last) }
            let none = try await WebSocketClient.open(port, "/events?after=\(last)", token: token)
            let room = try await WebSocketClient.open(port, "/events?after=0&roomId=r7", token: token)
            _ = try await rooms.apply(.close, to: "r7", action: "close", by: Actor("test"))
            try await eventually("the last event") { try none.eventIDs == [last + 1] }
            try await eventually("the room's events") { try room.eventIDs.count == 2 }
            #expect(try room.messages.filter { $0["type"].string == "event" }.allSatisfy { $0["roomId"].string == "r7" })
            #expect(try room.eventIDs.last == last + 1)
            // A cursor from another server: its events are not this store's.
            let future = try await WebSocketClient.open(port, "/events?after=\(last + 1_000)", token: token)
            let gap = try await future.message("gap")
            #expect(gap["from"].int == last + 2)
            #expect(gap["to"].int == last + 1_000)
            _ = try await rooms.newRoom("later")
            try await eventually("the next event") { try future.eventIDs == [last + 2] }
            for feed in [all, some, none, room, future] { await feed.close() }
        }
    }

    /// Subscribers join at any time and place while rooms change: each gets every event after its cursor once, in order.
    @Test(.seeded) func noGapAndNoRepetitionWhileEventsCome() async throws {
        try await TestServer.run { server in
            let rooms = server.server.parts.rooms
            let token = try await rooms.newToken()
            let port = server.addresses.http.port
            for number in 0..<8 { _ = try await rooms.newRoom("w\(number)") }
            typealias Reader = (after: Int, room: String?, feed: WebSocketClient)
            let results: [Reader] = try await withThrowingTaskGroup(of: Reader?.self) { tasks in
                for writer in 0..<8 {
                    tasks.addTask {
                        for change in 0..<150 { try await rooms.retitle("w\(writer)", "title \(change)") }
                        return nil
                    }
                }
                for reader in 0..<24 {
                    tasks.addTask {
                        var random = TestRandom(reader)
                        // Spread over the writers' time: every reader waits for some more events.
                        try await eventually("its turn", within: 60) { try await rooms.lastEventID() >= 8 + reader * 40 }
                        let now = Int(try await rooms.lastEventID())
                        let after = reader % 3 == 0 ? now : Int.random(in: 0...now, using: &random)
                        let room = reader % 4 == 1 ? "w\(reader % 8)" : nil
                        let target = "/events?after=\(after)" + (room.map { "&roomId=\($0)" } ?? "")
                        return (after, room, try await WebSocketClient.open(port, target, token: token))
                    }
                }
                var readers: [Reader] = []
                for try await reader in tasks { if let reader { readers.append(reader) } }
                return readers
            }
            let stored = try await rooms.events(after: 0, room: nil, limit: 5_000)
            #expect(stored.count == 8 + 8 * 150)
            #expect(results.count == 24)
            for (after, room, feed) in results {
                let expected = stored.filter { $0.id > after && (room == nil || $0.roomID?.rawValue == room) }.map { Int($0.id) }
                try await eventually("all \(expected.count) events") { try feed.eventIDs.count >= expected.count }
                #expect(try feed.eventIDs == expected)
                await feed.close()
            }
        }
    }

    /// A stalled reader costs the others nothing, and gets everything when it reads again.
    @Test func aSlowReaderLosesNothing() async throws {
        try await TestServer.run { server in
            let rooms = server.server.parts.rooms
            let token = try await rooms.newToken()
            let port = server.addresses.http.port
            for number in 0..<8 { _ = try await rooms.newRoom("w\(number)") }
            let slow = try await WebSocketClient.open(port, "/events", token: token, receiveBuffer: 4_096)
            let fast = try await WebSocketClient.open(port, "/events", token: token)
            _ = try await slow.message("hello")
            _ = try await fast.message("hello")
            try await slow.socket.reads(false)
            // More than the ring holds, in number and in bytes, and than the kernel buffers; soon enough that the slow one is not closed as stuck.
            let title = String(repeating: "🎧", count: 190)
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                for writer in 0..<8 {
                    tasks.addTask {
                        for change in 0..<250 { try await rooms.retitle("w\(writer)", "\(title)\(change % 10)") }
                    }
                }
                try await tasks.waitForAll()
            }
            let stored = try await rooms.events(after: 8, room: nil, limit: 5_000).map { Int($0.id) }
            #expect(stored.count == 2_000)
            try await eventually("the fast one to have all", within: 180) { try fast.eventIDs.count >= stored.count }
            #expect(try fast.eventIDs == stored)
            // Kernel buffers, the channel's watermark and a page: not the whole.
            #expect(try slow.eventIDs.count < stored.count / 2)
            #expect(server.server.parts.connections.counters.current.eventFeedsBehind == 0)
            try await slow.socket.reads(true)
            try await eventually("the slow one to have all", within: 180) { try slow.eventIDs.count >= stored.count }
            #expect(try slow.eventIDs == stored)
            #expect(server.server.parts.connections.counters.current.eventFeedsBehind >= 1)
            await slow.close()
            await fast.close()
        }
    }

    @Test(
        arguments: [
            ("not masked", ClientFrame.bytes(1, Array("hi".utf8), masked: false), 1002),
            ("a reserved bit", ClientFrame.bytes(1, [], reserved: 0x40), 1002),
            ("a control frame that is too long", ClientFrame.bytes(9, Array(repeating: 0, count: 126)), 1002),
            ("a message that is too long", [0x81, 0xFF, 0, 0, 0, 0, 0, 1, 0, 1], 1009),
            ("a length beyond memory", [0x82, 0xFF, 0x7F, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0], 1009),
            (
                "too much in fragments",
                ClientFrame.bytes(2, Array(repeating: 0, count: 60_000), final: false)
                    + ClientFrame.bytes(0, Array(repeating: 0, count: 60_000)), 1009
            ),
            ("not UTF-8", ClientFrame.bytes(1, [0xFF]), 1007),
            ("a flood of frames", Array((0..<300).map { _ in ClientFrame.bytes(10, []) }.joined()), 1008),
            (
                "a flood of empty fragments",
                ClientFrame.bytes(1, [], final: false)
                    + Array((0..<300).map { _ in ClientFrame.bytes(0, [], final: false) }.joined()), 1008
            ),
            ("close", ClientFrame.bytes(8, [0x03, 0xE8]), 1000),
            ("close without a code", ClientFrame.bytes(8, []), 1000),
            ("an application's close", ClientFrame.bytes(8, [0x0F, 0xA1]), 4001),
        ] as [(String, [UInt8], Int)])
    func howAFeedEnds(_ what: String, _ bytes: [UInt8], _ code: Int) async throws {
        try await TestServer.run { server in
            let token = try await server.server.parts.rooms.newToken()
            let other = try await WebSocketClient.open(server.addresses.http.port, "/events", token: token)
            let feed = try await WebSocketClient.open(server.addresses.http.port, "/events", token: token)
            _ = try await feed.message("hello")
            try await feed.socket.send(bytes)
            try await eventually("the close frame") { try feed.closeCode == code }
            try await eventually("the end") { feed.socket.isClosed }
            try await eventually("its place to be free") { server.server.parts.events.subscribers == 1 }
            _ = try await server.server.parts.rooms.newRoom("cam1")
            _ = try await other.message("event")
            await other.close()
        }
    }

    @Test func whatClientsMaySay() async throws {
        try await TestServer.run { server in
            let token = try await server.server.parts.rooms.newToken()
            let feed = try await WebSocketClient.open(server.addresses.http.port, "/events", token: token)
            for text in ["", "x", "{}", "[1]", #"{"type":"subscribe","room":"x"}"#, String(repeating: "a", count: 65_536)] {
                try await feed.send(text)
            }
            try await feed.send(2, [0, 1, 2])
            try await feed.send(1, "{\"ty".utf8, final: false)
            try await feed.send(9, "in between".utf8)
            try await feed.send(0, "pe\":\"ping\"}".utf8)
            #expect(try await feed.message("pong")["at"].string?.hasSuffix("Z") == true)
            let frames = try feed.all
            #expect(frames.first { $0.opcode == 10 }?.payload == Array("in between".utf8))
            #expect(frames.filter { $0.opcode == 1 }.count == 2)
            #expect(try feed.closeCode == nil)
            await feed.close()
        }
    }

    @Test func theServersEndIsAnnounced() async throws {
        let feed = try await TestServer.run { server in
            let token = try await server.server.parts.rooms.newToken()
            let feed = try await WebSocketClient.open(server.addresses.http.port, "/events", token: token)
            _ = try await feed.message("hello")
            return feed
        }
        try await eventually("the end") { feed.socket.isClosed }
        #expect(try feed.closeCode == 1001)
    }

    /// Events are kept for a limited time. A client that was away for longer gets the range that it missed.
    @Test(.disabled(if: TestPostgres.isOn, "changes SQLite's file")) func eventsThatAreNotKeptAnyMore() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-gap-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await TestServer.run(data: folder.path) { server in
            for number in 1...9 { _ = try await server.server.parts.rooms.newRoom("r\(number)") }
        }
        let forget = "import sqlite3,sys; db=sqlite3.connect(sys.argv[1]); db.execute('DELETE FROM events WHERE id <= 5'); db.commit()"
        let forgot = try await ClientProcess.run(["python3", "-c", forget, folder.appendingPathComponent("earshot.db").path])
        #expect(forgot.status == 0, "\(forgot.errors)")
        try await TestServer.run(data: folder.path) { server in
            let port = server.addresses.http.port
            let token = server.token
            for (after, from) in [(0, 1), (2, 3), (4, 5)] {
                let feed = try await WebSocketClient.open(port, "/events?after=\(after)", token: token)
                try await eventually("what is kept") { try feed.eventIDs == [6, 7, 8, 9] }
                let messages = try feed.messages
                #expect(messages.map { $0["type"].string }.prefix(3) == ["hello", "gap", "event"])
                #expect(messages[1]["from"].int == from)
                #expect(messages[1]["to"].int == 5)
                await feed.close()
            }
            for after in [5, 7] {
                let feed = try await WebSocketClient.open(port, "/events?after=\(after)", token: token)
                try await eventually("what is kept") { try feed.eventIDs == Array((after + 1)...9) }
                #expect(try !feed.messages.contains { $0["type"].string == "gap" })
                await feed.close()
            }
        }
    }

    @Test func helloHasAThousandRoomsAtMost() async throws {
        try await TestServer.run { server in
            let rooms = server.server.parts.rooms
            let token = try await rooms.newToken()
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                for part in 0..<10 {
                    tasks.addTask { for number in 0..<101 { _ = try await rooms.newRoom("r\(part)-\(number)") } }
                }
                try await tasks.waitForAll()
            }
            let feed = try await WebSocketClient.open(server.addresses.http.port, "/events", token: token)
            let hello = try await feed.message("hello")
            #expect(hello["rooms"].count == 1_000)
            #expect(hello["roomsTruncated"].value as? Bool == true)
            #expect(Set(hello["rooms"].list.compactMap { $0["roomId"].string }).count == 1_000)
            await feed.close()
        }
    }
}

extension RoomRegistry {
    nonisolated func newRoom(_ id: String, title: String = "") async throws -> Room {
        var new = NewRoom(policy: RoomPolicy())
        new.id = try RoomID(checking: id)
        new.title = title
        return try await self.create(new, by: Actor("test"))
    }

    nonisolated func retitle(_ id: String, _ title: String) async throws {
        var patch = RoomPatch()
        patch.title = title
        _ = try await self.update(id, patch, by: Actor("test"))
    }

    /// The secret of a new token.
    nonisolated func newToken() async throws -> String { try await self.createToken(name: "test", role: .backend).secret }
}
