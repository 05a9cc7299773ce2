import Testing

@testable import Apps
@testable import Rooms
@testable import Support

/// The class's REST API: every path with what it reads, what is wrong with bodies, and what answers look like.
@Suite struct ClassroomCallTests {
    private func read(
        _ path: String, _ body: String, method: String = "POST", query: [(name: String, value: String)] = []
    ) throws(GatheringRefusal) -> ClassroomCall? {
        try ClassroomCall.read(method: method, path: path, query: query, body: body)
    }

    private func code(
        _ path: String, _ body: String, method: String = "POST", query: [(name: String, value: String)] = []
    ) -> String? {
        do throws(GatheringRefusal) {
            _ = try self.read(path, body, method: method, query: query)
            return nil
        } catch {
            return error.code
        }
    }

    /// Path, fields besides roomId, and the action; the first field is needed unless the action is the same without it.
    private static let table: [(path: String, fields: String, action: ClassroomCall.Action)] = [
        ("/room/join", #""userName":"Ann""#, .join(name: "Ann", isAudience: false, disableCamera: false)),
        (
            "/room/join", #""userName":"Ann","audience":true,"disableCamera":true,"deviceId":"x""#,
            .join(name: "Ann", isAudience: true, disableCamera: true)
        ),
        ("/room/leave", #""x":1"#, .leave), ("/room/kick", #""userId":"u""#, .kick(userID: "u")),
        (
            "/room/downgrade", #""users":[{"userId":"u","role":4},{"userId":"w","role":3}]"#,
            .downgrade(users: [.init(userID: "u", role: .audience), .init(userID: "w", role: .student)])
        ),
        ("/room/change-role", #""role":2,"userId":"u""#, .changeRole(userID: "u", role: .teacher)),
        ("/room/transfer", #""userId":"u""#, .transfer(userID: "u")), ("/room/speech/apply", #""x":1"#, .speechApply),
        ("/room/speech/approve", #""ticket":"k""#, .speechApprove(ticket: "k")),
        ("/room/speech/reject", #""ticket":"k""#, .speechReject(ticket: "k")),
        ("/room/upgrade/invite", #""userId":"u","role":3"#, .upgradeInvite(userID: "u", role: .student)),
        ("/room/assign", #""role":1,"userId":"u""#, .upgradeInvite(userID: "u", role: .assistant)),
        ("/room/upgrade/approve", #""ticket":"k""#, .upgradeApprove(ticket: "k")),
        ("/room/upgrade/reject", #""ticket":"k""#, .upgradeReject(ticket: "k")),
        ("/room/device/control", #""cameraOn":true,"userId":"u""#, .deviceControl(userID: "u", device: .camera, isOn: true)),
        ("/room/device/control", #""userId":"u","microphoneOn":false"#, .deviceControl(userID: "u", device: .microphone, isOn: false)),
        ("/room/device/approve", #""ticket":"k""#, .deviceApprove(ticket: "k")),
        ("/room/device/reject", #""ticket":"k""#, .deviceReject(ticket: "k")),
        ("/room/device/sync", #""microphoneOn":true,"cameraOn":null"#, .deviceSync(device: .microphone, isOn: true)),
        ("/room/display", #""type":0"#, .display(kind: .assistant, userID: nil, uri: nil)),
        ("/room/display", #""type":3,"userId":"u""#, .display(kind: .screen, userID: "u", uri: nil)),
        ("/room/display", #""type":2,"uri":"w?k=1""#, .display(kind: .board, userID: nil, uri: "w?k=1")),
        ("/room/display", #""type":4"#, .display(kind: nil, userID: nil, uri: nil)),
        ("/room/whiteboard/create", #""x":1"#, .boardCreate),
        ("/room/whiteboard/delete", #""whiteboardId":"w""#, .boardDelete(boardID: "w")),
        ("/room/whiteboard/turn-page", #""page":0,"whiteboardId":"w""#, .boardTurn(boardID: "w", page: 0)),
        ("/whiteboard/turn-page", #""whiteBoardId":"w","page":1000"#, .boardTurn(boardID: "w", page: 1_000)),
    ]

    @Test func actions() throws {
        for (path, fields, action) in Self.table {
            #expect(
                try self.read(path, "{\"roomId\":\"math_1-A\",\(fields)}") == ClassroomCall(roomID: "math_1-A", action: action), "\(path)")
            for body in ["{\(fields)}", #"{"roomId":"","# + fields + "}", #"{"roomId":"a b","# + fields + "}", "{\"roomId\":7,\(fields)}"] {
                #expect(self.code(path, body) == "1", "\(path) \(body)")
            }
            for body in ["", "{", "[]", "null", "roomId=math"] { #expect(self.code(path, body) == "4", "\(path) \(body)") }
            #expect(try self.read(path, "{}", method: "GET") == nil)
            #expect(try self.read("/api\(path)", "{}") == nil)
            // Without the first field.
            guard !fields.hasPrefix(#""x""#) else { continue }
            let rest = fields.split(separator: ",", maxSplits: 1, omittingEmptySubsequences: false).dropFirst()
            let isList = fields.hasPrefix(#""users""#)
            let body = #"{"roomId":"m""# + (isList ? "" : rest.map { ",\($0)" }.joined()) + "}"
            #expect(self.code(path, body) == "1", "\(path) \(body)")
        }
        #expect(try self.read("/room/members", "", method: "GET", query: [("roomId", "m")]) == ClassroomCall(roomID: "m", action: .members))
        #expect(
            try self.read("/room/whiteboard/list", "", method: "GET", query: [("a", "b"), ("roomId", "m")])
                == ClassroomCall(roomID: "m", action: .boards))
        for path in ["/room/members", "/room/whiteboard/list"] {
            #expect(self.code(path, "", method: "GET") == "1" && self.code(path, "", method: "GET", query: [("roomId", "a/b")]) == "1")
            #expect(try self.read(path, "{}") == nil)
        }
        #expect(
            try self.read("/user/refresh-token", #"{"userId":"u","name":"n"}"#)
                == ClassroomCall(roomID: nil, action: .refreshToken(userID: "u")))
        #expect(try self.read("/user/refresh-token", "{}") == ClassroomCall(roomID: nil, action: .refreshToken(userID: nil)))
        #expect(self.code("/user/refresh-token", "") == "4")
        #expect(try self.read("/room", "{}") == nil)
        #expect(try self.read("", "") == nil)
    }

    @Test func wrongFields() {
        let long = String(repeating: "x", count: 1_025)
        let table: [(String, String)] = [
            ("/room/join", #""userName":"""#), ("/room/join", #""userName":"\#(String(repeating: "n", count: 65))""#),
            ("/room/join", #""userName":"a\nb""#), ("/room/join", #""userName":"a","audience":1"#),
            ("/room/join", #""userName":"a","disableCamera":"true""#), ("/room/kick", #""userId":5"#),
            ("/room/kick", #""userId":"\#(long)""#), ("/room/downgrade", #""users":[]"#), ("/room/downgrade", #""users":{}"#),
            ("/room/downgrade", #""users":[1]"#), ("/room/downgrade", #""users":[{"userId":"u"}]"#),
            ("/room/downgrade", #""users":[{"userId":"u","role":5}]"#),
            (
                "/room/downgrade",
                #""users":["# + Array(repeating: #"{"userId":"u","role":4}"#, count: 1_001).joined(separator: ",") + "]"
            ),
            ("/room/change-role", #""userId":"u","role":0"#), ("/room/change-role", #""userId":"u","role":"2""#),
            ("/room/change-role", #""userId":"u","role":99999999999999999999"#), ("/room/device/control", #""userId":"u""#),
            ("/room/device/control", #""userId":"u","cameraOn":"yes""#), ("/room/device/sync", #""cameraOn":null"#),
            ("/room/display", #""type":5"#), ("/room/display", #""type":-1"#), ("/room/display", #""type":1.5"#),
            ("/room/display", #""type":2,"uri":[]"#), ("/room/whiteboard/turn-page", #""whiteboardId":"w","page":1001"#),
            ("/room/whiteboard/turn-page", #""whiteboardId":"w","page":-1"#), ("/room/whiteboard/turn-page", #""whiteboardId":"w""#),
        ]
        for (path, fields) in table { #expect(self.code(path, "{\"roomId\":\"m\",\(fields)}") == "1", "\(path) \(fields.prefix(80))") }
        #expect(self.code("/room/leave", #"{"roomId":"\#(String(repeating: "m", count: 41))"}"#) == "1")
        #expect(self.code("/room/leave", #"{"roomId":"\#(String(repeating: "m", count: 40))"}"#) == nil)
    }

    @Test func limitsThemselvesAreAllowed() {
        #expect(self.code("/room/kick", #"{"roomId":"m","userId":"\#(String(repeating: "u", count: 1_024))"}"#) == nil)
        for count in [1, 1_000] {
            let users = Array(repeating: #"{"userId":"u","role":4}"#, count: count).joined(separator: ",")
            #expect(self.code("/room/downgrade", #"{"roomId":"m","users":[\#(users)]}"#) == nil, "\(count)")
        }
    }

    @Test func inputs() throws {
        func input(_ action: ClassroomCall.Action) -> Classroom.Input? {
            ClassroomCall(roomID: "m", action: action).input(by: "me", newID: "n")
        }
        for (path, _, action) in Self.table {
            let hasNone = path == "/room/join" || path == "/room/whiteboard/create"
            #expect((input(action) == nil) == hasNone, "\(path)")
        }
        #expect(input(.members) == nil && input(.boards) == nil && input(.refreshToken(userID: nil)) == nil)
        #expect(input(.leave) == .leave(by: "me") && input(.speechApply) == .speechApply(by: "me", newID: "n"))
        #expect(
            input(.upgradeInvite(userID: "u", role: .student)) == .upgradeInvite(by: "me", userID: "u", role: .student, newID: "n"))
        #expect(input(.speechReject(ticket: "k")) == .speechReject(by: "me", ticket: "k"))
        #expect(input(.upgradeReject(ticket: "k")) == .upgradeReject(by: "me", ticket: "k"))
        #expect(input(.deviceApprove(ticket: "k")) == .deviceApprove(by: "me", ticket: "k"))
        #expect(input(.boardTurn(boardID: "w", page: 2)) == .boardTurn(by: "me", boardID: "w", page: 2))
    }

    @Test func answers() throws {
        #expect(ClassroomAnswer.result().text == #"{"data":{"result":true},"errCode":0,"errDetail":"","errMsg":"OK"}"#)
        #expect(
            ClassroomAnswer.refusal(ClassroomCode.full.refusal()).text
                == #"{"data":{"result":null},"errCode":31,"errDetail":"","errMsg":"Over max count"}"#)
        #expect(
            ClassroomAnswer.refusal(ClassroomCode.parameter.refusal("roomId: is required")).text
                == #"{"data":{"result":null},"errCode":1,"errDetail":"roomId: is required","errMsg":"Missing or invalid parameter"}"#)
        var lab = ClassroomLab()
        _ = lab.act(.join(id: "a", name: "A", isAudience: false, disableCamera: true), at: 5)
        _ = lab.act(.boardCreate(by: "a", boardID: "w"), at: 6)
        _ = lab.act(.boardTurn(by: "a", boardID: "w", page: 2), at: 6)
        let member = try #require(lab.room.gathering.member("a"))
        let m = #"{"userId":"a","userName":"A","role":1,"joinTime":5,"camera":false,"microphone":true}"#
        #expect(
            ClassroomAnswer.join(lab.room, roomID: "m", member: member, imToken: "i", authorization: "j").text
                == #"{"roomId":"m","imToken":"i","authorization":"j","display":"display://type=2?userId=a?uri=w","userInfo":\#(m),"#
                + #""members":[\#(m)],"whiteboards":[{"whiteboardId":"w","name":"白板1","curPg":2}]}"#)
    }
}
