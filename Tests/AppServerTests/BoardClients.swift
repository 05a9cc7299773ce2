import Foundation
import PortlessTestSupport
import ServerTestSupport
import Support
import TestSupport
import Testing

/// A member of class "c".
struct BoardPupil: Sendable {
    let user: String
    let token: String

    static func join(_ server: PortlessServer, _ name: String, audience: Bool = false) async throws -> BoardPupil {
        let made = try await Self.post(server, "/room/join", "{\"roomId\":\"c\",\"userName\":\"\(name)\",\"audience\":\(audience)}", "")
        return BoardPupil(
            user: try made["userInfo"]["userId"].string.orThrow(), token: try made["authorization"].string.orThrow())
    }

    /// `fields`: JSON members after the class's id.
    @discardableResult
    func call(_ server: PortlessServer, _ path: String, _ fields: String = "") async throws -> JSON {
        try await Self.post(server, path, "{\"roomId\":\"c\"\(fields.isEmpty ? "" : ",")\(fields)}", self.token)
    }

    private static func post(_ server: PortlessServer, _ path: String, _ body: String, _ token: String) async throws -> JSON {
        let answer = try await HTTPAnswer.call(
            "POST", "\(server.http)/classroom/api/v1\(path)", body: Data(body.utf8), headers: ["Authorization": token])
        let json = try answer.json()
        #expect(json["errCode"].int == 0, "\(path): \(json["errCode"].int ?? -1) \(json["errDetail"].string ?? "")")
        return json["data"]["result"]
    }

    /// `board`: its URL, as clients complete it.
    func open(_ server: PortlessServer, _ board: String) async throws -> BoardViewer {
        let path = try board.components(separatedBy: "/board/").last.orThrow()
        return BoardViewer(
            socket: try await WebSocketClient.open(
                server.addresses.http.port, "/board/\(path)&role=1&roomId=c&authorization=\(self.token)"))
    }
}

/// A window with a whiteboard.
struct BoardViewer: Sendable {
    let socket: WebSocketClient

    func hello() async throws -> JSON { try await self.socket.message("hello", within: 60) }

    func draw(_ ref: Int, page: Int = 0, _ points: String = "[[1,2],[3,4]]", color: String = "#112233") async throws {
        try await self.socket.send(
            "{\"type\":\"draw\",\"ref\":\(ref),\"page\":\(page),\"stroke\":{\"points\":\(points),\"color\":\"\(color)\",\"width\":3}}")
    }

    /// "ack", or the error's code.
    func answer(_ ref: Int) async throws -> String {
        var found: JSON?
        try await eventually("the answer to \(ref)", within: 60) {
            found = try self.socket.messages.first { ["ack", "error"].contains($0["type"].string) && $0["ref"].int == ref }
            return found != nil
        }
        return try found.orThrow()["code"].string ?? "ack"
    }

    func all(_ type: String) throws -> [JSON] { try self.socket.messages.filter { $0["type"].string == type } }

    /// Everything that it was given before it was live, once it is: pages and colours.
    func before() async throws -> [String] {
        var frames: [JSON] = []
        try await eventually("all strokes", within: 60) {
            frames = try self.all("hello") + self.all("strokes")
            return frames.last?["more"].bool == false
        }
        return frames.flatMap { $0["strokes"].list.map { "\($0["page"].int ?? -1) \($0["stroke"]["color"].string ?? "")" } }
    }

    /// Colours by page, as a window that obeys all frames shows them.
    var shown: [Int: [String]] {
        get throws {
            var pages: [Int: [String]] = [:]
            for frame in try self.socket.messages {
                let page = frame["page"].int ?? -1
                switch frame["type"].string {
                case "hello", "strokes":
                    for each in frame["strokes"].list {
                        pages[each["page"].int ?? -1, default: []].append(each["stroke"]["color"].string ?? "")
                    }
                case "draw": pages[page, default: []].append(frame["stroke"]["color"].string ?? "")
                case "clear": pages[page] = nil
                default: break
                }
            }
            return pages
        }
    }

    func end(_ code: Int) async throws { try await eventually("close \(code)", within: 60) { try self.socket.closeCode == code } }
}
