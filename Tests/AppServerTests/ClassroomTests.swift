import Access
import AppServer
import Foundation
import PortlessTestSupport
import RoomRegistry
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import Synchronization
import TestSupport
import Testing

@testable import EarshotServer

/// Classes over their REST API and the channel. Browsers are in Tests/Apps; AppsTests have the rules, with all messages and codes.
@Suite struct ClassroomTests {
    private static func call(
        _ server: PortlessServer, _ path: String, _ body: String, _ authorization: String? = nil
    ) async throws -> (code: Int, result: JSON) {
        let headers = authorization.map { ["Authorization": $0] } ?? [:]
        let answer = try await HTTPAnswer.call(
            body.isEmpty ? "GET" : "POST", "\(server.http)/classroom/api/v1\(path)", body: body.isEmpty ? nil : Data(body.utf8),
            headers: headers)
        #expect(answer.status == 200, "\(answer.status) \(answer.text)")
        let json = try answer.json()
        return (try json["errCode"].int.orThrow(), json["data"]["result"])
    }

    /// A member of a class, with its connection.
    private struct Pupil: Sendable {
        let server: PortlessServer
        let room: String
        let id: String
        let role: Int
        let authorization: String
        let socket: WebSocketClient

        static func join(_ server: PortlessServer, _ name: String, room: String = "math", audience: Bool = false) async throws -> Pupil {
            let (code, result) = try await ClassroomTests.call(
                server, "/room/join", "{\"roomId\":\"\(room)\",\"userName\":\"\(name)\",\"audience\":\(audience)}")
            #expect(code == 0)
            let token = try result["imToken"].string.orThrow()
            let socket = try await WebSocketClient.open(server.addresses.http.port, "/channel?token=\(token)")
            let pupil = Pupil(
                server: server, room: room, id: try result["userInfo"]["userId"].string.orThrow(),
                role: try result["userInfo"]["role"].int.orThrow(), authorization: try result["authorization"].string.orThrow(),
                socket: socket)
            _ = try await socket.message("hello", within: 60)
            return pupil
        }

        /// The code of a call; `fields`: JSON members besides the class.
        @discardableResult
        func call(_ path: String, _ fields: String = "") async throws -> Int {
            let more = fields.isEmpty ? "" : ",\(fields)"
            return try await ClassroomTests.call(self.server, path, "{\"roomId\":\"\(self.room)\"\(more)}", self.authorization).code
        }

        /// The contents of the messages of this object so far.
        func heard(_ object: String) throws -> [JSON] {
            try self.socket.messages.filter { $0["type"].string == "message" && $0["object"].string == object }.map { $0["content"] }
        }

        func hears(_ object: String, count: Int = 1) async throws -> JSON {
            try await eventually("\(object) for \(self.id)") { try self.heard(object).count >= count }
            return try self.heard(object)[count - 1]
        }
    }

    @Test func aClass() async throws {
        try await PortlessServer.run({ $0.apps.classroomTicketMs = 60_000 }) { server in
            let ann = try await Pupil.join(server, "Ann")
            let bob = try await Pupil.join(server, "Bob")
            let eve = try await Pupil.join(server, "Eve", audience: true)
            #expect(ann.role == 1 && bob.role == 2 && eve.role == 4)
            #expect(try await ann.hears("SC:RMCMsg", count: 2)["userName"].string == "Eve")
            // Eve applies and is let in; the ticket works once.
            #expect(try await eve.call("/room/speech/apply") == 0)
            let ticket = try await ann.hears("SC:RSMsg")["ticket"].string.orThrow()
            #expect(try await bob.call("/room/speech/approve", "\"ticket\":\"\(ticket)\"") == 3)
            #expect(try await ann.call("/room/speech/approve", "\"ticket\":\"\(ticket)\"") == 0)
            #expect(try await ann.call("/room/speech/approve", "\"ticket\":\"\(ticket)\"") == 30)
            #expect(try await eve.hears("SC:SRMsg")["action"].int == 1)
            #expect(try await bob.hears("SC:RCMsg")["users"][0]["role"].int == 3)
            // The microphone off: said to all, and out of the room's talk.
            #expect(try await ann.call("/room/device/control", "\"userId\":\"\(eve.id)\",\"microphoneOn\":false") == 0)
            let isOn = try await bob.hears("SC:DRMsg")["enable"].bool
            #expect(isOn == false)
            try await eventually("the voice to be muted") {
                try await server.api("rooms/class-math/talk")["list"].list.isEmpty
                    ? try await server.server.parts.rooms.talkMembers(.init(stored: "class-math")).contains {
                        $0.user == eve.id && $0.isMuted
                    }
                    : true
            }
            // An invitation that nobody answers.
            #expect(try await ann.call("/room/device/control", "\"userId\":\"\(eve.id)\",\"microphoneOn\":true") == 0)
            let open = try await eve.hears("SC:CDNMsg")["ticket"].string.orThrow()
            server.pass(60_000)
            #expect(try await ann.hears("SC:TEMsg")["ticket"].string == open)
            #expect(try await eve.hears("SC:TEMsg")["ticket"].string == open)
            #expect(try await eve.call("/room/device/approve", "\"ticket\":\"\(open)\"") == 30)
            // The board and the display.
            let (code, board) = try await Self.call(server, "/room/whiteboard/create", #"{"roomId":"math"}"#, bob.authorization)
            #expect(code == 0 && board.string?.hasPrefix("\(server.http)/board/") == true)
            #expect(try await eve.hears("SC:WBMsg")["whiteboardId"].string == board.string)
            #expect(try await bob.call("/room/display", "\"type\":2,\"uri\":\"\(try board.string.orThrow())\"") == 0)
            try await eventually("the board to be shown") {
                try eve.heard("SC:DisplayMsg").last?["display"].string?.contains("type=2") == true
            }
            // Chat goes by the channel.
            try await bob.socket.send(#"{"type":"send","ref":1,"object":"RC:TxtMsg","content":{"content":"hi"}}"#)
            #expect(try await eve.hears("RC:TxtMsg")["content"].string == "hi")
            #expect(try await ann.call("/room/kick", "\"userId\":\"\(eve.id)\"") == 0)
            try await eventually("Eve's end") { try eve.socket.closeCode == 4002 }
            #expect(try eve.heard("SC:RMCMsg").last?["action"].int == 3)
            #expect(try await eve.call("/room/speech/apply") == 2)
            let members = try await Self.call(server, "/room/members?roomId=math", "", ann.authorization).result
            #expect(members.list.map { $0["userId"].string } == [ann.id, bob.id])
            #expect(try await server.api("gatherings?kind=class")["list"].list.map { $0["gatheringId"].string } == ["class-math"])
            let kinds = Set(try await server.api("rooms/class-math/events?limit=200")["list"].list.compactMap { $0["kind"].string })
            #expect(
                kinds.isSuperset(of: [
                    "member.role", "ticket.opened", "ticket.expired", "device.changed", "board.created", "display.changed",
                ]))
            // The last one out ends it, and its room.
            #expect(try await bob.call("/room/leave") == 0)
            #expect(try await ann.call("/room/leave") == 0)
            let gatherings = server.server.parts.apps.gatherings
            try await eventually("nothing to be left") { gatherings.count == 0 }
            #expect(try await ann.call("/room/leave") == 20)
            // At once another class of the same name.
            let again = try await Pupil.join(server, "Ann")
            #expect(again.role == 1)
            for pupil in [ann, bob, eve, again] { await pupil.socket.close() }
        }
    }

    /// Thirty join at once: sixteen get a seat.
    @Test func thirtyAtOnce() async throws {
        try await PortlessServer.run { server in
            let codes = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<30 {
                    group.addTask { try await Self.call(server, "/room/join", "{\"roomId\":\"big\",\"userName\":\"P\(number)\"}").code }
                }
                return try await group.reduce(into: [Int]()) { $0.append($1) }
            }
            #expect(codes.filter { $0 == 0 }.count == 16 && codes.filter { $0 == 31 }.count == 14, "\(codes)")
            #expect(try await Self.call(server, "/room/join", #"{"roomId":"big","userName":"A","audience":true}"#).code == 0)
        }
    }

    @Test func whatIsRefused() async throws {
        try await PortlessServer.run { server in
            let ann = try await Pupil.join(server, "Ann")
            let other = try await Pupil.join(server, "Ann", room: "art")
            func code(_ path: String, _ body: String, _ authorization: String? = ann.authorization) async throws -> Int {
                try await Self.call(server, path, body, authorization).code
            }
            #expect(try await code("/room/leave", #"{"roomId":"math"}"#, nil) == 2)
            #expect(try await code("/room/leave", #"{"roomId":"math"}"#, "nonsense") == 2)
            #expect(try await code("/room/leave", #"{"roomId":"math"}"#, other.authorization) == 3)
            #expect(try await code("/room/leave", "{") == 4)
            #expect(try await code("/room/leave", "{}") == 1)
            #expect(try await code("/room/join", #"{"roomId":"a b","userName":"A"}"#) == 1)
            #expect(try await code("/room/dance", "{}") == 1)
            #expect(try await code("/room/kick", #"{"roomId":"math","userId":"nobody"}"#) == 21)
            #expect(try await code("/room/kick", "{\"roomId\":\"math\",\"userId\":\"\(ann.id)\"}") == 29)
            #expect(try await code("/room/display", #"{"roomId":"math","type":1}"#) == 23)
            #expect(try await code("/room/whiteboard/delete", #"{"roomId":"math","whiteboardId":"x"}"#) == 26)
            let (bob, eve) = (try await Pupil.join(server, "Bob"), try await Pupil.join(server, "Eve", audience: true))
            #expect(try await ann.call("/room/upgrade/invite", "\"userId\":\"\(bob.id)\",\"role\":3") == 33)
            #expect(try await ann.call("/room/upgrade/invite", "\"userId\":\"\(bob.id)\",\"role\":2") == 33)
            for other in [bob, eve] { #expect(try await ann.call("/room/change-role", "\"userId\":\"\(other.id)\",\"role\":2") == 34) }
            // With Bearer as well.
            #expect(try await Self.call(server, "/room/members?roomId=math", "", "Bearer \(ann.authorization)").code == 0)
            // A class's token opens no other channel, and no other class's.
            let token = ann.authorization
            await #expect(throws: (any Error).self) {
                await (try WebSocketClient.open(server.addresses.http.port, "/mesh?token=\(token)")).socket.close()
            }
            // Nobody is the assistant.
            #expect(try await ann.call("/room/leave") == 0)
            #expect(try await eve.call("/room/speech/apply") == 24)
            #expect(try await bob.call("/room/display", "\"type\":0") == 24)
            for pupil in [ann, bob, eve, other] { await pupil.socket.close() }
        }
    }

    /// The server's own failures: nothing has changed, and nobody hears of it.
    @Test func failures() async throws {
        try await PortlessServer.run { server in
            let (ann, bob) = (try await Pupil.join(server, "Ann"), try await Pupil.join(server, "Bob"))
            try await server.changeStore(
                "CREATE TRIGGER no BEFORE UPDATE ON gatherings BEGIN SELECT RAISE(ABORT, 'refused by the test'); END")
            #expect(try await ann.call("/room/device/control", "\"userId\":\"\(bob.id)\",\"cameraOn\":false") == 255)
            #expect(try await bob.call("/room/leave") == 255)
            try await server.changeStore("DROP TRIGGER no")
            let members = try await Self.call(server, "/room/members?roomId=math", "", ann.authorization).result.list
            #expect(members.count == 2 && members.allSatisfy { $0["camera"].bool == true })
            #expect(try bob.heard("SC:DRMsg").isEmpty && ann.heard("SC:RMCMsg").count == 1)
            // Rooms that end as soon as they are made: each try finds that the class is over.
            try await server.changeStore(
                "CREATE TRIGGER over AFTER INSERT ON events WHEN NEW.kind = 'room.created' BEGIN UPDATE rooms SET state = 'closed' WHERE id = NEW.room_id; END"
            )
            let none = try await Self.call(server, "/room/join", #"{"roomId":"over","userName":"Ann"}"#)
            #expect(none.code == 12, "\(none)")
            try await server.changeStore("DROP TRIGGER over")
            #expect(try await Self.call(server, "/room/join", #"{"roomId":"over","userName":"Ann"}"#).code == 0)
            for pupil in [ann, bob] { await pupil.socket.close() }
        }
    }

    /// Tickets are for who is asked, for what is asked, and for once.
    @Test func tickets() async throws {
        try await PortlessServer.run { server in
            let (ann, bob) = (try await Pupil.join(server, "Ann"), try await Pupil.join(server, "Bob"))
            let cid = try await Pupil.join(server, "Cid")
            let (eve, fay) = (
                try await Pupil.join(server, "Eve", audience: true), try await Pupil.join(server, "Fay", audience: true)
            )
            func answer(_ pupil: Pupil, _ path: String, _ ticket: String) async throws -> Int {
                try await pupil.call("/room/\(path)", "\"ticket\":\"\(ticket)\"")
            }
            func ticket(_ pupil: Pupil, _ object: String) async throws -> String {
                try await pupil.hears(object)["ticket"].string.orThrow()
            }
            #expect(try await eve.call("/room/speech/apply") == 0)
            let speech = try await ticket(ann, "SC:RSMsg")
            #expect(try await ann.call("/room/upgrade/invite", "\"userId\":\"\(fay.id)\",\"role\":3") == 0)
            let invitation = try await ticket(fay, "SC:IURMsg")
            #expect(try await ann.call("/room/device/control", "\"userId\":\"\(bob.id)\",\"cameraOn\":true") == 0)
            let device = try await ticket(bob, "SC:CDNMsg")
            for (pupil, kind, id) in [
                // Another's.
                (eve, "upgrade", invitation), (cid, "upgrade", invitation), (cid, "device", device),
                // Of another kind.
                (ann, "speech", invitation), (ann, "speech", device), (fay, "upgrade", speech), (bob, "device", speech),
                // Unknown.
                (ann, "speech", "nonsense"), (fay, "upgrade", ""), (bob, "device", String(repeating: "0", count: 32)),
            ] {
                for answerOf in ["approve", "reject"] {
                    let code = try await answer(pupil, "\(kind)/\(answerOf)", id)
                    #expect(code == (id.isEmpty ? 1 : 30), "\(pupil.role) \(kind)/\(answerOf) \(id)")
                }
            }
            // All are still good, for once.
            for (pupil, kind, id) in [(ann, "speech", speech), (fay, "upgrade", invitation), (bob, "device", device)] {
                #expect(try await answer(pupil, "\(kind)/reject", id) == 0)
                for again in ["approve", "reject"] { #expect(try await answer(pupil, "\(kind)/\(again)", id) == 30, "\(kind)/\(again)") }
            }
            for pupil in [ann, bob, cid, eve, fay] { await pupil.socket.close() }
        }
    }

    /// A class survives a restart: roles, tickets and the board are as they were, and returning members are the same.
    @Test func aRestart() async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-data-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let kept = Mutex((authorizations: [String](), ticket: ""))
        try await PortlessServer.run(data: directory) { server in
            let (ann, eve) = (try await Pupil.join(server, "Ann"), try await Pupil.join(server, "Eve", audience: true))
            #expect(try await eve.call("/room/speech/apply") == 0)
            let ticket = try await ann.hears("SC:RSMsg")["ticket"].string.orThrow()
            kept.withLock { $0 = ([ann.authorization, eve.authorization], ticket) }
            #expect(try await Self.call(server, "/room/whiteboard/create", #"{"roomId":"math"}"#, ann.authorization).code == 0)
            for pupil in [ann, eve] { await pupil.socket.close() }
        }
        let (authorizations, ticket) = kept.withLock { $0 }
        try await PortlessServer.run(data: directory) { server in
            let members = try await Self.call(server, "/room/members?roomId=math", "", authorizations[0]).result
            #expect(members.list.map { $0["role"].int } == [1, 4])
            #expect(try await Self.call(server, "/room/whiteboard/list?roomId=math", "", authorizations[0]).result.list.count == 1)
            let answer = "{\"roomId\":\"math\",\"ticket\":\"\(ticket)\"}"
            #expect(try await Self.call(server, "/room/speech/approve", answer, authorizations[0]).code == 0)
            #expect(try await Self.call(server, "/room/speech/approve", answer, authorizations[0]).code == 30)
            let (code, result) = try await Self.call(
                server, "/room/join", #"{"roomId":"math","userName":"Eve","audience":true}"#, authorizations[1])
            #expect(code == 0 && result["userInfo"]["role"].int == 3)
        }
    }
}
