import Foundation
import PortlessTestSupport
import ServerTestSupport
import Support
import TestSupport
import Testing

/// A class whose members make calls, with what all of them hear.
actor ClassScene {
    private let server: PortlessServer
    private var members: [String: ClassMember] = [:]
    let transcript = Transcript()
    /// The calls that were made: method and path.
    private(set) var routes: Set<String> = []

    init(_ server: PortlessServer) { self.server = server }

    func id(_ name: String) async throws -> String { try await self.transcript.id(name) }

    /// A call with its answer's result as JSON (nil for any), then all that is heard of it.
    func step(
        _ who: String, _ path: String, _ fields: [String: any Sendable] = [:], code: Int = 0, result: String? = nil, _ told: [Told]
    ) async throws {
        let member = try self.members[who].orThrow()
        let parts = path.split(separator: " ")
        let route = parts.count == 2 ? path : "POST \(path)"
        self.routes.insert(route)
        let base = "\(self.server.http)/classroom/api/v1\(parts.last ?? "")"
        let headers = ["Authorization": member.authorization]
        let all = fields.merging(["roomId": member.room]) { $1 }
        let answer =
            route.hasPrefix("GET")
            ? try await HTTPAnswer.call("GET", "\(base)?roomId=\(member.room)", headers: headers)
            : try await HTTPAnswer.call("POST", base, body: try JSONSerialization.data(withJSONObject: all), headers: headers)
        let json = try answer.json()
        #expect(answer.status == 200 && answer.headers["content-type"] == "application/json", "\(route): \(answer.status)")
        #expect(json["errCode"].int == code, "\(route): \(answer.text)")
        if let result { #expect(try await self.short(json["data"]["result"]) == result, "\(route)") }
        try await self.transcript.expect("\(who)'s \(route)", told)
    }

    /// JSON with names, and addresses without the server's.
    private func short(_ value: JSON) async throws -> String {
        var text = try Transcript.canonical(value).replacing(self.server.http, with: "")
        text.replace(/"joinTime":[0-9]{13}/, with: "\"joinTime\":0")
        return await self.transcript.short(text)
    }

    /// Joins, is told everything about the class, and connects.
    func join(_ name: String, shows: String, audience: Bool = false, disableCamera: Bool = false, _ told: Told...) async throws {
        let result = try await self.join(name, audience, disableCamera, "")
        let member = try self.members[name].orThrow()
        await self.transcript.call(self.server.http, "")
        await self.transcript.call(member.id, name)
        #expect(try await self.short(result["display"]) == "\"\(shows)\"", "\(name)")
        #expect(result["whiteboards"].list.isEmpty && result["members"].list.count == self.members.count)
        #expect(try await self.short(JSON(result["members"].list.last?.value)) == self.short(result["userInfo"]))
        let socket = try await WebSocketClient.open(self.server.addresses.http.port, "/channel?token=\(member.imToken)")
        _ = try await socket.message("hello", within: 60)
        try await self.transcript.add(name, id: member.id, socket)
        try await self.transcript.expect("\(name) joins", told)
    }

    /// With the token of the first time.
    func rejoin(_ name: String, _ told: Told...) async throws {
        let former = try self.members[name].orThrow()
        let result = try await self.join(name, false, false, former.authorization)
        #expect(result["userInfo"]["userId"].string == former.id)
        try await self.transcript.expect("\(name) joins again", told)
    }

    private func join(_ name: String, _ audience: Bool, _ disableCamera: Bool, _ authorization: String) async throws -> JSON {
        self.routes.insert("POST /room/join")
        let answer = try await ClassMember.call(
            self.server, "/room/join", ["roomId": "math", "userName": name, "audience": audience, "disableCamera": disableCamera],
            authorization: authorization)
        let result = answer["data"]["result"]
        #expect(answer["errCode"].int == 0 && answer["errMsg"].string == "OK" && answer["errDetail"].string == "")
        #expect(
            result.names == ["roomId", "imToken", "authorization", "display", "userInfo", "members", "whiteboards"]
                && result["roomId"].string == "math")
        self.members[name] = ClassMember(
            server: self.server, room: "math", id: try result["userInfo"]["userId"].string.orThrow(),
            imToken: try result["imToken"].string.orThrow(), authorization: try result["authorization"].string.orThrow())
        return result
    }

    /// A new token, which is good.
    func refresh(_ name: String) async throws {
        self.routes.insert("POST /user/refresh-token")
        let member = try self.members[name].orThrow()
        let fresh = try await ClassMember.call(self.server, "/user/refresh-token", [:], authorization: member.authorization)["data"][
            "result"]
        #expect(fresh.names == ["authorization", "imToken"] && fresh["authorization"].string == fresh["imToken"].string)
        self.members[name] = ClassMember(
            server: self.server, room: member.room, id: member.id, imToken: member.imToken,
            authorization: try fresh["authorization"].string.orThrow())
        try await self.transcript.expect("\(name)'s new token", [])
    }

    /// Without a cloud nobody may say who is online.
    func webhook() async throws {
        self.routes.insert("POST /room/members/online-status")
        let answer = try await RongCloudStandIn.webhook(self.server, "[]")
        #expect(try answer.status == 403 && answer.json()["errCode"].int == 2)
        try await self.transcript.expect("the webhook", [])
    }

    func say(_ name: String, _ text: String, _ told: Told...) async throws {
        try await self.transcript.say(name, "{\"type\":\"send\",\"ref\":0,\"object\":\"RC:TxtMsg\",\"content\":{\"content\":\"\(text)\"}}")
        try await self.transcript.expect("\(name)'s word", told)
    }
}

/// The class's messages as ``Transcript`` writes them, from the specification's table.
enum SC {
    static let boardID = "/board/#7?k=1"

    static func assistant(_ name: String) -> String { "display://type=0?userId=\(name)?uri=" }
    static func teacher(_ name: String) -> String { "display://type=1?userId=\(name)?uri=" }

    /// M of the specification.
    static func person(_ name: String, _ role: Int) -> String {
        #"{"camera":true,"joinTime":0,"microphone":true,"role":\#(role),"userId":"\#(name)","userName":"\#(name)"}"#
    }

    static func member(_ action: Int, _ name: String, _ role: Int, camera: Bool = true, by: String? = nil) -> String {
        #"\#(by ?? name) SC:RMCMsg {"action":\#(action),"camera":\#(camera),"microphone":true,"role":\#(role),"timestamp":0,"#
            + #""userId":"\#(name)","userName":"\#(name)"}"#
    }

    static func display(_ by: String, _ text: String) -> String { #"\#(by) SC:DisplayMsg {"display":"\#(text)"}"# }

    static func roles(_ by: String, _ users: (String, Int)...) -> String {
        let users = users.map { #"{"role":\#($0.1),"userId":"\#($0.0)","userName":"\#($0.0)"}"# }
        return #"\#(by) SC:RCMsg {"opUserId":"\#(by)","users":[\#(users.joined(separator: ","))]}"#
    }

    static func application(_ by: String, _ ticket: String) -> String {
        #"\#(by) SC:RSMsg {"reqUserId":"\#(by)","reqUserName":"\#(by)","ticket":"\#(ticket)"}"#
    }

    static func applied(_ action: Int, _ by: String, _ to: String) -> String {
        #"\#(by) SC:SRMsg {"action":\#(action),"opUserId":"\#(by)","opUserName":"\#(by)","reqUserId":"\#(to)","reqUserName":"\#(to)","role":3}"#
    }

    static func invitation(_ action: Int, _ ticket: String, _ role: Int, _ by: String) -> String {
        #"\#(by) SC:IURMsg {"action":\#(action),"opUserId":"\#(by)","opUserName":"\#(by)","role":\#(role),"ticket":"\#(ticket)"}"#
    }

    static func deviceTicket(_ action: Int, _ ticket: String, _ type: Int, _ by: String) -> String {
        #"\#(by) SC:CDNMsg {"action":\#(action),"opUserId":"\#(by)","opUserName":"\#(by)","ticket":"\#(ticket)","type":\#(type)}"#
    }

    static func device(_ by: String, _ name: String, _ type: Int, _ isOn: Bool) -> String {
        #"\#(by) SC:DRMsg {"enable":\#(isOn),"type":\#(type),"userId":"\#(name)","userName":"\#(name)"}"#
    }

    static func board(_ action: Int, _ by: String) -> String {
        #"\#(by) SC:WBMsg {"action":\#(action),"whiteboardId":"\#(self.boardID)","whiteboardName":"白板1"}"#
    }

    static func turn(_ by: String, _ page: Int) -> String {
        #"\#(by) SC:WBTPMsg {"curPg":\#(page),"userId":"\#(by)","whiteboardId":"\#(self.boardID)"}"#
    }
}
