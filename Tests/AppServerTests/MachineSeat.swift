import Foundation
import PortlessTestSupport
import ServerTestSupport
import Support
import TestSupport
import Testing

/// A connection to a claw machine: a player's or the device's.
struct MachineSeat: Sendable {
    static func call(_ server: PortlessServer, _ path: String, _ form: String = "") async throws -> JSON {
        let answer = try await HTTPAnswer.call(
            "POST", "\(server.http)/dollsCatcher/\(path)", body: Data(form.utf8),
            headers: ["Content-Type": "application/x-www-form-urlencoded"])
        #expect(answer.status == 200 && answer.headers["cache-control"] == "no-store", "\(answer.status) \(answer.text)")
        return try answer.json()
    }

    /// A machine that anybody may play; its number.
    static func machine(_ server: PortlessServer, _ accid: String = "claw@home.1") async throws -> Int {
        let made = try await self.call(server, "host/create?accid=\(accid)&nickname=wawa", "name=The+claw")
        let number = try made["data"].int.orThrow()
        #expect(try await self.call(server, "host/manage?roomId=\(number)", "bePublic=true&roomStatus=true")["code"].int == 200)
        return number
    }

    let id: String
    let socket: WebSocketClient

    static func guest(_ server: PortlessServer, _ number: Int) async throws -> MachineSeat {
        let account = try await self.call(server, "tourist")["data"]
        let token = try account["imToken"].string.orThrow()
        let socket = try await WebSocketClient.open(server.addresses.http.port, "/channel?token=\(token)&room=m-\(number)")
        let seat = MachineSeat(id: try account["accid"].string.orThrow(), socket: socket)
        _ = try await seat.socket.message("hello", within: 60)
        return seat
    }

    static func device(_ server: PortlessServer, _ number: Int) async throws -> MachineSeat {
        let token = try await self.call(server, "host/query?roomId=\(number)")["data"]["creatorToken"].string.orThrow()
        let seat = MachineSeat(id: "host", socket: try await WebSocketClient.open(server.addresses.http.port, "/channel?token=\(token)"))
        _ = try await seat.socket.message("hello", within: 60)
        return seat
    }

    /// Whether so many people are here, itself among them, as far as it was told.
    func knows(_ count: Int) throws -> Bool {
        let messages = try self.socket.messages
        let before = messages.first { $0["type"].string == "hello" }?["members"].count ?? 0
        return 1 + before + messages.count { $0["type"].string == "presence" && $0["action"].string == "join" } == count
    }

    func say(_ frame: String) async throws { try await self.socket.send(frame) }

    func command(_ number: Int, _ data: String? = nil) async throws {
        let data = data.map { ",\"data\":\($0)" } ?? ""
        try await self.say("{\"type\":\"command\",\"content\":{\"command\":\(number)\(data)}}")
    }

    /// The data of the commands of this number that came so far.
    func commands(_ number: Int) throws -> [JSON] {
        try self.socket.messages.filter { $0["type"].string == "command" && $0["content"]["command"].int == number }.map {
            $0["content"]["data"]
        }
    }

    /// Waits for so many commands of this number; the last one's data.
    func hears(_ number: Int, count: Int = 1) async throws -> JSON {
        try await eventually("command \(number) for \(self.id)") { try self.commands(number).count >= count }
        return try self.commands(number)[count - 1]
    }

    /// "OFFER player1 …" of the queue's changes.
    var queue: [String] {
        get throws {
            try self.socket.messages.filter { $0["type"].string == "queue" }.map {
                "\($0["action"].string ?? "") \($0["key"].string ?? "")"
            }
        }
    }
}
