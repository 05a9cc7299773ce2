import Apps
import Foundation
import PortlessTestSupport
import ServerConfiguration
import ServerTestSupport
import TestSupport
import Testing

/// Every call of the class's REST API, with all that each member hears of it, against the tables of the specification.
@Suite struct ClassTranscriptTests {
    @Test func theWholeAPI() async throws {
        try await PortlessServer.run { server in
            let scene = ClassScene(server)
            func step(
                _ who: String, _ path: String, _ fields: [String: any Sendable] = [:], result: String? = "true", _ told: Told...
            ) async throws {
                try await scene.step(who, path, fields, result: result, told)
            }
            // MARK: Coming
            try await scene.join("Ann", shows: SC.assistant("Ann"))
            try await scene.join(
                "Bob", shows: SC.teacher("Bob"), Told(SC.member(1, "Bob", 2), to: "Ann"),
                Told(SC.display("Bob", SC.teacher("Bob")), to: "Ann"))
            try await scene.join(
                "Cid", shows: SC.teacher("Bob"), disableCamera: true, Told(SC.member(1, "Cid", 3, camera: false), to: "Ann Bob"))
            try await scene.join("Eve", shows: SC.teacher("Bob"), audience: true, Told(SC.member(1, "Eve", 4), to: "Ann Bob Cid"))
            // Once more with the same token, now with the camera: the same member.
            try await scene.rejoin("Cid", Told(SC.member(1, "Cid", 3), to: "Ann Bob Eve"))
            try await step(
                "Eve", "GET /room/members",
                result: "[\(SC.person("Ann", 1)),\(SC.person("Bob", 2)),\(SC.person("Cid", 3)),\(SC.person("Eve", 4))]")

            // MARK: The display
            let people = "Ann Bob Cid Eve"
            try await step("Bob", "/room/display", ["type": 0], Told(SC.display("Bob", SC.assistant("Ann")), to: "Ann Cid Eve"))
            try await step("Ann", "/room/display", ["type": 1], Told(SC.display("Ann", SC.teacher("Bob")), to: "Bob Cid Eve"))
            try await step(
                "Ann", "/room/display", ["type": 3, "userId": try await scene.id("Cid")],
                Told(SC.display("Ann", "display://type=3?userId=Cid?uri="), to: "Bob Cid Eve"))
            try await step("Bob", "/room/display", ["type": 4], Told(SC.display("Bob", ""), to: "Ann Cid Eve"))

            // MARK: Applications
            try await step("Eve", "/room/speech/apply", [:], Told(SC.application("Eve", "#1"), to: "Ann"))
            try await step(
                "Ann", "/room/speech/reject", ["ticket": try await scene.id("#1")], Told(SC.applied(2, "Ann", "Eve"), to: "Eve"))
            try await step("Eve", "/room/speech/apply", [:], Told(SC.application("Eve", "#2"), to: "Ann"))
            try await step(
                "Ann", "/room/speech/approve", ["ticket": try await scene.id("#2")], Told(SC.applied(1, "Ann", "Eve"), to: "Eve"),
                Told(SC.roles("Ann", ("Eve", 3)), to: people))
            try await step(
                "Ann", "/room/downgrade", ["users": [["userId": try await scene.id("Eve"), "role": 4] as [String: any Sendable]]],
                Told(SC.roles("Ann", ("Eve", 4)), to: people))

            // MARK: Invitations
            try await step(
                "Ann", "/room/upgrade/invite", ["userId": try await scene.id("Eve"), "role": 3],
                Told(SC.invitation(1, "#3", 3, "Ann"), to: "Eve"))
            try await step(
                "Eve", "/room/upgrade/reject", ["ticket": try await scene.id("#3")], Told(SC.invitation(2, "#3", 3, "Eve"), to: "Ann"))
            try await step(
                "Ann", "/room/assign", ["userId": try await scene.id("Eve"), "role": 3],
                Told(SC.invitation(1, "#4", 3, "Ann"), to: "Eve"))
            try await step(
                "Eve", "/room/upgrade/approve", ["ticket": try await scene.id("#4")],
                Told(SC.invitation(3, "#4", 3, "Eve"), to: "Ann"), Told(SC.roles("Eve", ("Eve", 3)), to: people))

            // MARK: Devices
            let cid = try await scene.id("Cid")
            try await step(
                "Ann", "/room/device/control", ["userId": cid, "microphoneOn": false], Told(SC.device("Ann", "Cid", 0, false), to: people))
            try await step(
                "Ann", "/room/device/control", ["userId": cid, "microphoneOn": true], Told(SC.deviceTicket(1, "#5", 0, "Ann"), to: "Cid"))
            try await step(
                "Cid", "/room/device/reject", ["ticket": try await scene.id("#5")], Told(SC.deviceTicket(2, "#5", 0, "Cid"), to: "Ann"))
            try await step(
                "Ann", "/room/device/control", ["userId": cid, "cameraOn": true], Told(SC.deviceTicket(1, "#6", 1, "Ann"), to: "Cid"))
            try await step(
                "Cid", "/room/device/approve", ["ticket": try await scene.id("#6")],
                Told(SC.deviceTicket(3, "#6", 1, "Cid"), to: "Ann"), Told(SC.device("Cid", "Cid", 1, true), to: people))
            try await step("Cid", "/room/device/sync", ["cameraOn": false], Told(SC.device("Cid", "Cid", 1, false), to: people))
            try await step("Cid", "/room/device/sync", ["microphoneOn": true], Told(SC.device("Cid", "Cid", 0, true), to: people))

            // MARK: Whiteboards
            try await step(
                "Bob", "/room/whiteboard/create", result: #""/board/#7?k=1""#, Told(SC.board(1, "Bob"), to: "Ann Cid Eve"),
                Told(SC.display("Bob", "display://type=2?userId=Bob?uri=\(SC.boardID)"), to: people))
            let board = "\(server.http)/board/\(try await scene.id("#7"))?k=1"
            try await step(
                "Ann", "/room/display", ["type": 2, "uri": board],
                Told(SC.display("Ann", "display://type=2?userId=?uri=\(SC.boardID)"), to: "Bob Cid Eve"))
            try await step(
                "Ann", "/room/whiteboard/turn-page", ["whiteboardId": board, "page": 2], Told(SC.turn("Ann", 2), to: "Bob Cid Eve"))
            try await step("Bob", "/whiteboard/turn-page", ["whiteBoardId": board, "page": 1], Told(SC.turn("Bob", 1), to: "Ann Cid Eve"))
            try await step(
                "Eve", "GET /room/whiteboard/list", result: #"[{"curPg":1,"name":"白板1","whiteboardId":"\#(SC.boardID)"}]"#)
            try await step(
                "Ann", "/room/whiteboard/delete", ["whiteboardId": board], Told(SC.display("Ann", ""), to: people),
                Told(SC.board(2, "Ann"), to: people))

            // MARK: Roles
            try await step(
                "Ann", "/room/change-role", ["userId": cid, "role": 2], Told(SC.roles("Ann", ("Bob", 3), ("Cid", 2)), to: people),
                Told(SC.display("Ann", SC.teacher("Cid")), to: people))
            try await step("Ann", "/room/display", ["type": 0], Told(SC.display("Ann", SC.assistant("Ann")), to: "Bob Cid Eve"))
            try await step(
                "Ann", "/room/transfer", ["userId": try await scene.id("Bob")], Told(SC.display("Ann", ""), to: people),
                Told(#"Ann SC:ATMsg {"opUserId":"Ann","toUserId":"Bob"}"#, to: people))

            // MARK: Tokens, words
            try await scene.refresh("Cid")
            try await scene.webhook()
            try await scene.say("Eve", "hi", Told(#"Eve RC:TxtMsg {"content":"hi"}"#, to: "Ann Bob Cid"))

            // MARK: Going
            let eve = try await scene.id("Eve")
            let screen = "display://type=3?userId=Eve?uri="
            try await step("Cid", "/room/display", ["type": 3, "userId": eve], Told(SC.display("Cid", screen), to: "Ann Bob Eve"))
            try await step(
                "Bob", "/room/kick", ["userId": eve], Told(SC.member(3, "Eve", 3, by: "Bob"), to: people),
                Told(SC.display("Bob", ""), to: people), Told("close 4002", to: "Eve"))
            try await step("Bob", "/room/display", ["type": 1], Told(SC.display("Bob", SC.teacher("Cid")), to: "Ann Cid"))
            try await step(
                "Cid", "/room/leave", [:], Told(SC.display("Cid", ""), to: "Ann Bob"),
                Told(SC.member(2, "Cid", 2, camera: false), to: "Ann Bob"),
                Told("close 4004", to: "Cid"))
            try await step("Ann", "/room/leave", [:], Told(SC.member(2, "Ann", 3), to: "Bob"), Told("close 4004", to: "Ann"))
            try await step("Bob", "/room/leave", [:], Told("close 4004", to: "Bob"))

            // Nothing was left out; the ticket that expires is below.
            #expect(await scene.routes == ClassTables.routes)
            let heard = await scene.transcript.objects.filter { $0.key.hasPrefix(ClassroomMessage.prefix) }
            #expect(heard == ClassTables.messages.filter { $0.key != "SC:TEMsg" })
        }
    }

    /// An assistant, a teacher and somebody of the audience.
    private static func three(_ server: PortlessServer) async throws -> ClassScene {
        let scene = ClassScene(server)
        try await scene.join("Ann", shows: SC.assistant("Ann"))
        try await scene.join(
            "Bob", shows: SC.teacher("Bob"), Told(SC.member(1, "Bob", 2), to: "Ann"), Told(SC.display("Bob", SC.teacher("Bob")), to: "Ann"))
        try await scene.join("Eve", shows: SC.teacher("Bob"), audience: true, Told(SC.member(1, "Eve", 4), to: "Ann Bob"))
        return scene
    }

    /// Told to both, and only to them.
    @Test func tickets() async throws {
        try await PortlessServer.run({ $0.apps.classroomTicketMs = 300 }) { server in
            let scene = try await Self.three(server)
            let (bob, eve) = (try await scene.id("Bob"), try await scene.id("Eve"))
            let table: [(who: String, path: String, fields: [String: any Sendable], asked: String, line: (String) -> String)] = [
                ("Eve", "/room/speech/apply", [:], "Ann", { SC.application("Eve", $0) }),
                ("Ann", "/room/upgrade/invite", ["userId": eve, "role": 3], "Eve", { SC.invitation(1, $0, 3, "Ann") }),
                ("Ann", "/room/device/control", ["userId": bob, "cameraOn": true], "Bob", { SC.deviceTicket(1, $0, 1, "Ann") }),
                ("Ann", "/room/device/control", ["userId": bob, "microphoneOn": true], "Bob", { SC.deviceTicket(1, $0, 0, "Ann") }),
            ]
            for (number, row) in table.enumerated() {
                let ticket = "#\(number + 1)"
                let expiry = #"\#(row.asked) SC:TEMsg {"fromUserId":"\#(row.who)","ticket":"\#(ticket)","toUserId":"\#(row.asked)"}"#
                try await scene.step(
                    row.who, row.path, row.fields, result: "true",
                    [Told(row.line(ticket), to: row.asked), Told(expiry, to: "\(row.who) \(row.asked)")])
            }
            // Late.
            let late: [(String, String, String)] = [
                ("#1", "Ann", "speech/approve"), ("#1", "Ann", "speech/reject"), ("#2", "Eve", "upgrade/approve"),
                ("#2", "Eve", "upgrade/reject"), ("#3", "Bob", "device/approve"), ("#4", "Bob", "device/reject"),
            ]
            for (ticket, who, path) in late {
                try await scene.step(who, "/room/\(path)", ["ticket": try await scene.id(ticket)], code: 30, [])
            }
            #expect(await scene.transcript.objects["SC:TEMsg"] == ClassTables.messages["SC:TEMsg"])
        }
    }

    /// Who has applied to an assistant that hands its part over can apply to the new one at once.
    @Test func applicationsToAFormerAssistant() async throws {
        try await PortlessServer.run({ $0.apps.classroomTicketMs = 600_000 }) { server in
            let scene = try await Self.three(server)
            try await scene.step("Eve", "/room/speech/apply", result: "true", [Told(SC.application("Eve", "#1"), to: "Ann")])
            let bob = try await scene.id("Bob")
            try await scene.step(
                "Ann", "/room/transfer", ["userId": bob], result: "true",
                [
                    Told(SC.display("Ann", ""), to: "Ann Bob Eve"),
                    Told(#"Ann SC:ATMsg {"opUserId":"Ann","toUserId":"Bob"}"#, to: "Ann Bob Eve"),
                    Told(##"Ann SC:TEMsg {"fromUserId":"Eve","ticket":"#1","toUserId":"Ann"}"##, to: "Ann Eve"),
                ])
            try await scene.step("Eve", "/room/speech/apply", result: "true", [Told(SC.application("Eve", "#2"), to: "Bob")])
            try await scene.step(
                "Bob", "/room/speech/approve", ["ticket": try await scene.id("#2")], result: "true",
                [Told(SC.applied(1, "Bob", "Eve"), to: "Eve"), Told(SC.roles("Bob", ("Eve", 3)), to: "Ann Bob Eve")])
        }
    }

    /// The server has what the tables have, and no more; its documents have all codes and messages.
    @Test func theTables() throws {
        #expect(ClassroomCall.routes == ClassTables.routes)
        #expect(Set(ClassroomMessage.allCases.map(\.rawValue)) == Set(ClassTables.messages.keys))
        #expect(Set(ClassroomCode.allCases.map(\.rawValue)).subtracting([0]) == ClassTables.codes)
        let guide = try Guide("classroom")
        #expect(guide.codes == ClassTables.codes)
        #expect(Set(guide.text.matches(of: /`(SC:\w+)`/).map { String($0.output.1) }) == Set(ClassTables.messages.keys))
    }
}

/// A guide page.
struct Guide {
    let text: String

    init(_ name: String) throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "../../docs/apps").standardizedFileURL
        self.text = try String(contentsOf: folder.appending(path: "\(name).md"), encoding: .utf8)
    }

    /// Codes of its tables: cells of nothing but numbers and commas.
    var codes: Set<Int> {
        let cells = self.text.split(separator: "\n").filter { $0.hasPrefix("| ") }.flatMap { row in
            row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
        return Set(
            cells.filter { $0.wholeMatch(of: /[0-9]+(, [0-9]+)*/) != nil }.flatMap {
                $0.components(separatedBy: ", ").compactMap { Int($0) }
            })
    }
}
