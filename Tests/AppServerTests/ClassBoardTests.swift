import AppServer
import Foundation
import PortlessTestSupport
import RoomRegistry
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer

/// A class's whiteboard on whole servers: drawn by one, seen by all, kept, and gone with its class.
@Suite struct ClassBoardTests {
    private static func key(_ board: String) throws -> String {
        try board.components(separatedBy: "/board/").last.orThrow().components(separatedBy: "?")[0]
    }

    private static func stored(_ server: PortlessServer, _ board: String) async throws -> Int {
        try await server.server.parts.rooms.pages(ofBoard: self.key(board), in: RoomID(stored: "class-c")).bytes.values.reduce(0, +)
    }

    // MARK: - Drawing

    @Test func drawnAndSeen() async throws {
        try await PortlessServer.run { server in
            let (ann, bob) = (try await BoardPupil.join(server, "Ann"), try await BoardPupil.join(server, "Bob"))
            let cat = try await BoardPupil.join(server, "Cat")
            let board = try await ann.call(server, "/room/whiteboard/create").string.orThrow()
            let assistant = try await ann.open(server, board)
            let hello = try await assistant.hello()
            #expect(hello["you"]["id"].string == ann.user && hello["you"]["role"].string == "assistant" && hello["page"].int == 0)
            #expect(hello["you"]["mayDraw"].bool == true && hello["strokes"].list.isEmpty && hello["more"].bool == false)
            let (teacher, student) = (try await bob.open(server, board), try await cat.open(server, board))
            #expect(try await teacher.hello()["you"]["mayDraw"].bool == true)
            #expect(try await student.hello()["you"]["mayDraw"].bool == false)
            try await assistant.draw(1, "[[0,0],[5000,10000]]", color: "#AABBCC")
            #expect(try await assistant.answer(1) == "ack")
            for viewer in [teacher, student] {
                let seen = try await viewer.socket.message("draw", within: 60)
                #expect(seen["from"].string == ann.user && seen["page"].int == 0 && seen["stroke"]["color"].string == "#aabbcc")
                #expect(seen["stroke"]["points"][1][1].int == 10_000 && seen["stroke"]["width"].int == 3)
            }
            try await teacher.draw(1, page: 2)
            #expect(try await teacher.answer(1) == "ack")
            try await student.draw(1)
            #expect(try await student.answer(1) == "not_allowed")
            _ = try await assistant.socket.message("draw", within: 60)
            #expect(try assistant.all("draw").count == 1, "its own stroke is not told to who drew it, the student's to nobody")
            // A student becomes the teacher, and the teacher a student: from now on.
            try await ann.call(server, "/room/change-role", "\"userId\":\"\(cat.user)\",\"role\":2")
            #expect(try await student.socket.message("you", within: 60)["you"]["mayDraw"].bool == true)
            #expect(try await teacher.socket.message("you", within: 60)["you"]["role"].string == "student")
            try await student.draw(2, color: "#00ff00")
            try await teacher.draw(2)
            #expect(try await student.answer(2) == "ack")
            #expect(try await teacher.answer(2) == "not_allowed")
            // A member that joins later sees all strokes, in order.
            let late = try await BoardPupil.join(server, "Dan", audience: true).open(server, board)
            #expect(try await late.before() == ["0 #aabbcc", "2 #112233", "0 #00ff00"])
            // A page turns for all, and one is cleared.
            try await ann.call(server, "/room/whiteboard/turn-page", "\"whiteboardId\":\"\(board)\",\"page\":2")
            for viewer in [assistant, late] { #expect(try await viewer.socket.message("page", within: 60)["page"].int == 2) }
            try await assistant.socket.send(#"{"type":"clear","ref":9,"page":0}"#)
            #expect(try await assistant.answer(9) == "ack")
            for viewer in [assistant, late] { #expect(try await viewer.socket.message("clear", within: 60)["page"].int == 0) }
            try await late.socket.send(#"{"type":"clear","ref":9,"page":2}"#)
            #expect(try await late.answer(9) == "not_allowed")
            let again = try await ann.open(server, board)
            #expect(try await again.hello()["page"].int == 2)
            #expect(try await again.before() == ["2 #112233"])
            for viewer in [assistant, teacher, student, late, again] { await viewer.socket.close() }
        }
    }

    @Test func keptOverARestart() async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-data-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let (ann, board) = try await PortlessServer.run(data: directory) { server in
            let ann = try await BoardPupil.join(server, "Ann")
            let board = try await ann.call(server, "/room/whiteboard/create").string.orThrow()
            let viewer = try await ann.open(server, board)
            for (ref, color) in ["#000001", "#000002", "#000003"].enumerated() {
                try await viewer.draw(ref, page: ref % 2, color: color)
                #expect(try await viewer.answer(ref) == "ack")
            }
            await viewer.socket.close()
            return (ann, board)
        }
        try await PortlessServer.run(data: directory) { server in
            let viewer = try await ann.open(server, board)
            #expect(try await viewer.before() == ["0 #000001", "1 #000002", "0 #000003"])
            // Numbers go on: the next stroke is the last one.
            try await viewer.draw(1, color: "#000004")
            #expect(try await viewer.answer(1) == "ack")
            let other = try await ann.open(server, board)
            #expect(try await other.before().last == "0 #000004")
            for each in [viewer, other] { await each.socket.close() }
        }
    }

    // MARK: - Limits

    @Test func aFullBoard() async throws {
        try await PortlessServer.run { server in
            let ann = try await BoardPupil.join(server, "Ann")
            let board = try await ann.call(server, "/room/whiteboard/create").string.orThrow()
            let viewer = try await ann.open(server, board)
            _ = try await viewer.hello()
            let long = "[\(Array(repeating: "[10000,10000]", count: 2_000).joined(separator: ","))]"
            let fits = (1 << 20) / (long.utf8.count + ##"{"points":,"color":"#112233","width":3}"##.utf8.count)
            for ref in 0..<fits {
                try await viewer.draw(ref, page: ref == 0 ? 7 : 0, long)
                #expect(try await viewer.answer(ref) == "ack", "\(ref) of \(fits)")
            }
            try await viewer.draw(100, long)
            #expect(try await viewer.answer(100) == "board_full")
            #expect(try await Self.stored(server, board) <= 1 << 20)
            // More than a socket's backlog may hold goes out in pieces.
            let other = try await ann.open(server, board)
            #expect(try await other.before().count == fits)
            #expect(try other.socket.all.allSatisfy { $0.payload.count <= 49 << 10 } && other.all("strokes").count > 10)
            try await viewer.socket.send(#"{"type":"clear","ref":101,"page":7}"#)
            #expect(try await viewer.answer(101) == "ack")
            try await viewer.draw(102, long)
            #expect(try await viewer.answer(102) == "ack")
            for each in [viewer, other] { await each.socket.close() }
        }
    }

    /// A page is cleared again and again while many read it: what each has in the end is what there is.
    @Test func clearedWhileTheyRead() async throws {
        // One connection draws more here than a person does.
        try await PortlessServer.run({ $0.apps.messageRate = 1_000 }) { server in
            let ann = try await BoardPupil.join(server, "Ann")
            let board = try await ann.call(server, "/room/whiteboard/create").string.orThrow()
            let viewer = try await ann.open(server, board)
            let long = "[\(Array(repeating: "[10000,10000]", count: 2_000).joined(separator: ","))]"
            var crowd: [BoardPupil] = []
            for number in 0..<12 { crowd.append(try await BoardPupil.join(server, "P\(number)", audience: true)) }
            for round in 0..<12 {
                for ref in 0..<6 { try await viewer.draw(100 * round + ref, long) }
                #expect(try await viewer.answer(100 * round + 5) == "ack")
                let readers = try await withThrowingTaskGroup(of: BoardViewer.self) { [crowd] group in
                    for pupil in crowd { group.addTask { try await pupil.open(server, board) } }
                    var readers: [BoardViewer] = []
                    for try await reader in group {
                        readers.append(reader)
                        // Some have read much by now, others nothing.
                        guard readers.count == 1 + round / 2 else { continue }
                        try await viewer.socket.send("{\"type\":\"clear\",\"ref\":\(100 * round + 50),\"page\":0}")
                    }
                    return readers
                }
                try await viewer.draw(100 * round + 60, page: 1, color: "#abcdef")
                #expect(try await viewer.answer(100 * round + 50) == "ack")
                #expect(try await viewer.answer(100 * round + 60) == "ack")
                for reader in readers {
                    try await eventually("what there is", within: 60) {
                        try reader.shown == [1: Array(repeating: "#abcdef", count: round + 1)]
                    }
                    await reader.socket.close()
                }
            }
            await viewer.socket.close()
        }
    }

    /// A member that floods is disconnected; strokes that were acknowledged are there, and others go on.
    @Test func aFlood() async throws {
        try await PortlessServer.run { server in
            let (ann, bob) = (try await BoardPupil.join(server, "Ann"), try await BoardPupil.join(server, "Bob"))
            let board = try await ann.call(server, "/room/whiteboard/create").string.orThrow()
            let (flood, other) = (try await ann.open(server, board), try await bob.open(server, board))
            _ = try await (flood.hello(), other.hello())
            for ref in 0..<10_000 {
                // Until it is cut, however slowly this machine sends.
                guard try flood.socket.closeCode == nil else { break }
                do { try await flood.draw(ref) } catch { break }
            }
            try await flood.end(1008)
            // Those still in the queue have been stored when this one is.
            try await other.draw(1, color: "#ff0000")
            #expect(try await other.answer(1) == "ack")
            let late = try await bob.open(server, board)
            let seen = try await late.before()
            #expect(seen.count >= (try flood.all("ack").count) + 1 && seen.count < 10_000 && seen.contains("0 #ff0000"))
            #expect(try other.all("draw").count == seen.count - 1)
            // Nonsense is answered, and too much of it ends the connection, after the answers; however much comes at once.
            try await late.socket.send(1, #"{"type":"draw","ref":7,"page":0,"stroke":{}}"#, times: 30)
            try await late.end(1008)
            #expect(try late.all("error").count { $0["code"].string == "invalid" && $0["ref"].int == 7 } >= 21)
            for each in [flood, other, late] { await each.socket.close() }
        }
    }

    /// A member's fifth connection to a board closes the first.
    @Test func manyWindows() async throws {
        try await PortlessServer.run { server in
            let ann = try await BoardPupil.join(server, "Ann")
            let board = try await ann.call(server, "/room/whiteboard/create").string.orThrow()
            var viewers: [BoardViewer] = []
            for _ in 0..<5 {
                viewers.append(try await ann.open(server, board))
                _ = try await viewers.last?.hello()
            }
            try await viewers[0].end(4001)
            #expect(try await viewers[0].socket.message("closed", within: 60)["reason"].string == "replaced")
            try await viewers[4].draw(1)
            #expect(try await viewers[4].answer(1) == "ack")
            for viewer in viewers[1..<4] { _ = try await viewer.socket.message("draw", within: 60) }
            for viewer in viewers { await viewer.socket.close() }
        }
    }

    // MARK: - Ends

    @Test func itsEnd() async throws {
        try await PortlessServer.run { server in
            let (ann, bob, cat) = (
                try await BoardPupil.join(server, "Ann"), try await BoardPupil.join(server, "Bob"), try await BoardPupil.join(server, "Cat")
            )
            let board = try await ann.call(server, "/room/whiteboard/create").string.orThrow()
            let second = try await ann.call(server, "/room/whiteboard/create").string.orThrow()
            let (assistant, teacher, student) = (
                try await ann.open(server, board), try await bob.open(server, board), try await cat.open(server, board)
            )
            let beside = try await ann.open(server, second)
            for viewer in [assistant, teacher, student, beside] { _ = try await viewer.hello() }
            for viewer in [assistant, beside] {
                try await viewer.draw(1)
                #expect(try await viewer.answer(1) == "ack")
            }
            // Kicked, and gone by oneself.
            try await ann.call(server, "/room/kick", "\"userId\":\"\(cat.user)\"")
            try await student.end(4002)
            try await bob.call(server, "/room/leave")
            try await teacher.end(4002)
            #expect(try await teacher.socket.message("closed", within: 60)["reason"].string == "left")
            let stranger = try await bob.open(server, board)
            #expect(try await stranger.socket.message("error", within: 60)["code"].string == "not_member")
            try await stranger.end(4003)
            // One board is deleted, with its strokes; the other stays.
            try await ann.call(server, "/room/whiteboard/delete", "\"whiteboardId\":\"\(board)\"")
            try await assistant.end(4004)
            #expect(try await assistant.socket.message("closed", within: 60)["reason"].string == "deleted")
            #expect(try await Self.stored(server, board) == 0)
            #expect(try await Self.stored(server, second) > 0)
            let gone = try await ann.open(server, board)
            #expect(try await gone.socket.message("error", within: 60)["code"].string == "no_such_board")
            #expect(try await server.call("POST", "gatherings/class-c/end").status == 200)
            try await beside.end(4004)
            #expect(try await beside.socket.message("closed", within: 60)["reason"].string == "ended")
            #expect(try await Self.stored(server, second) == 0)
            try await eventually("nothing to be left in memory") { server.server.parts.apps.boardCount == 0 }
            for viewer in [assistant, teacher, student, beside, stranger, gone] { await viewer.socket.close() }
        }
    }

    @Test func whoIsNotLetIn() async throws {
        try await PortlessServer.run { server in
            let ann = try await BoardPupil.join(server, "Ann")
            let board = try await ann.call(server, "/room/whiteboard/create").string.orThrow()
            let path = "/board/\(try Self.key(board))"
            func refusal(_ target: String) async -> String {
                do {
                    await (try WebSocketClient.open(server.addresses.http.port, target)).close()
                    return ""
                } catch { return "\(error)" }
            }
            #expect(await refusal(path).contains(" 401 "))
            #expect(await refusal("\(path)?authorization=x").contains(" 401 "))
            #expect(await refusal("\(path)?authorization=\(ann.token)&authorization=\(ann.token)").contains(" 401 "))
            #expect(await refusal("\(path)?authorization=\(ann.token)&roomId=d").contains(" 403 "))
            // Another kind's token.
            _ = try await server.call("POST", "rooms", #"{"roomId":"r","policy":{"neverStarted":3600}}"#)
            let made = try await server.call("POST", "rooms/r/channel-token", #"{"userId":"ann"}"#)
            let plain = try made.json()["data"]["url"].string.orThrow().components(separatedBy: "token=")[1]
            #expect(await refusal("\(path)?authorization=\(plain)").contains(" 403 "))
            // A ticket opens it once.
            let answer = try await HTTPAnswer.call(
                "POST", "\(server.http)/channel/ticket", body: Data("{\"token\":\"\(ann.token)\"}".utf8))
            let ticket = try answer.json()["ticket"].string.orThrow()
            let viewer = BoardViewer(
                socket: try await WebSocketClient.open(server.addresses.http.port, "\(path)?ticket=\(ticket)&roomId=c"))
            #expect(try await viewer.hello()["you"]["id"].string == ann.user)
            #expect(await refusal("\(path)?ticket=\(ticket)").contains(" 401 "))
            // The page is there for everybody, and holds nothing of the class.
            let page = try await HTTPAnswer.call("GET", "\(server.http)\(path)?k=1")
            #expect(page.status == 200)
            await viewer.socket.close()
        }
    }
}
