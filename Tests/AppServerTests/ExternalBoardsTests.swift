import Foundation
import PortlessTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import Synchronization
import TestSupport
import Testing

@testable import EarshotServer

/// Classes whose whiteboards another server keeps: a stand-in for SealClass's whiteboard server, which counts the boards that it has.
@Suite struct ExternalBoardsTests {
    private final class StandIn: Sendable {
        private let state = Mutex<(boards: [String], isDown: Bool)>(([], false))

        var boards: [String] { self.state.withLock { $0.boards } }
        func fail(_ isDown: Bool) { self.state.withLock { $0.isDown = isDown } }

        func answer(_ request: CannedServer.Request) -> CannedServer.Answer {
            self.state.withLock { state in
                guard !state.isDown else { return .json(500, "no") }
                let fields = request.body.split(separator: "&").map(String.init)
                guard request.method == "POST", request.headers["content-type"] == "application/x-www-form-urlencoded", fields.count == 2,
                    fields[0] == "appId=earshot", fields[1].hasPrefix("roomNr=")
                else { return .json(200, #"{"code":400}"#) }
                let name = String(fields[1].dropFirst("roomNr=".count))
                switch request.uri {
                case "/room/create":
                    state.boards.append(name)
                    return .json(200, #"{"code":200,"data":"https://wb.example/page.html?room=\#(name)"}"#)
                case "/room/destroy" where state.boards.contains(name):
                    state.boards.removeAll { $0 == name }
                    return .json(200, #"{"code":200}"#)
                default: return .json(200, #"{"code":404}"#)
                }
            }
        }
    }

    @Test func madeAndDestroyedThere() async throws {
        let standIn = StandIn()
        try await CannedServer.run({ standIn.answer($0) }) { _, url in
            try await PortlessServer.run({ config in
                config.apps.classroomWhiteboard = "\(url)/"
                config.outbound.allowPrivate = CIDR.loopback
            }) { server in
                func create(_ member: ClassMember) async throws -> (code: Int?, id: String?) {
                    let answer = try await ClassMember.call(
                        server, "/room/whiteboard/create", ["roomId": "math"], authorization: member.authorization)
                    return (answer["errCode"].int, answer["data"]["result"].string)
                }
                let ann = try await ClassMember.join(server, "Ann")
                let eve = try await ClassMember.join(server, "Eve", audience: true)
                // A member that may not make boards makes none on the whiteboard server.
                #expect(try await create(eve).code == 3 && standIn.boards.isEmpty)
                let made = try await create(ann)
                let name = try standIn.boards.first.orThrow()
                #expect(made.code == 0 && made.id == "https://wb.example/page.html?room=\(name)")
                // Without that server's word nothing changes here.
                standIn.fail(true)
                #expect(try await create(ann).code == 25)
                #expect(try await ann.call("/room/whiteboard/delete", ["whiteboardId": made.id ?? ""]) == 27)
                standIn.fail(false)
                #expect(try await ann.call("/room/whiteboard/turn-page", ["whiteboardId": made.id ?? "", "page": 2]) == 0)
                #expect(try await ann.call("/room/whiteboard/delete", ["whiteboardId": made.id ?? ""]) == 0)
                #expect(standIn.boards.isEmpty)
                #expect(try await ann.call("/room/whiteboard/delete", ["whiteboardId": made.id ?? ""]) == 26)
                // Boards that a class still has at its end are deleted, too.
                #expect(try await create(ann).code == 0 && standIn.boards.count == 1)
                #expect(try await server.call("POST", "gatherings/class-math/end").status == 200)
                try await eventually("the boards' end") { standIn.boards.isEmpty }
                #expect(server.lines.all.count { $0.contains("A call of the whiteboard server has failed") } == 2)
            }
        }
    }
}
