package import Support

/// A command between a player and a claw machine: `{"command": 1, "data": "left", "serial": 3}`. A value.
///
/// | command | means | data |
/// |---|---|---|
/// | 1 | move the claw | `up`, `down`, `left`, `right`, `stop` |
/// | 2 | drop the claw | none |
/// | 3 | other camera | 1 or 2, a number or a string |
/// | 4 | result | `"true"`, `"false"` |
/// | 5 | acknowledgement, with `code` 200 or 0 | the command and its data |
/// | 11 | invitation to a game | the turn's id |
/// | 12, 13 | accepts it, rejects it | the turn's id |
package struct MachineCommand: Sendable, Equatable {
    package enum Direction: String, Sendable, CaseIterable { case up, down, left, right, stop }

    package enum Body: Sendable, Equatable {
        case move(Direction)
        case drop
        /// 1 or 2.
        case camera(Int)
        case result(won: Bool)
        case ack(JSONValue, code: Int64?)
        case invite(uuid: String)
        case accept(uuid: String)
        case reject(uuid: String)
    }

    package let body: Body
    /// The sender's count of its commands; only some clients send it.
    package let serial: Int64?

    package init(_ body: Body, serial: Int64? = nil) {
        self.body = body
        self.serial = serial
    }

    /// Bytes of a turn's id, at most. The server's own have 32.
    package static let longestUUID = 64

    /// Reads a command. `content`: the object, or its JSON text as clients of NIM send it. `longest`: bytes of that text.
    package static func read(_ content: JSONValue, longest: Int) throws(FieldError) -> MachineCommand {
        let value = try self.object(content, longest: longest)
        let data = value["data"]
        let body: Body
        guard case .integer(let number)? = value["command"] else {
            throw FieldError("command", value["command"]?.shown ?? "", "expected one of 1 to 5 and 11 to 13")
        }
        switch number {
        case 1:
            guard case .string(let text)? = data, let direction = Direction(rawValue: text) else {
                throw FieldError("data", data?.shown ?? "", "expected up, down, left, right, or stop")
            }
            body = .move(direction)
        case 2: body = .drop
        case 3:
            switch data {
            case .integer(1)?, .string("1")?: body = .camera(1)
            case .integer(2)?, .string("2")?: body = .camera(2)
            default: throw FieldError("data", data?.shown ?? "", "expected 1 or 2")
            }
        case 4:
            switch data {
            case .string("true")?: body = .result(won: true)
            case .string("false")?: body = .result(won: false)
            default: throw FieldError("data", data?.shown ?? "", "expected the string true or false")
            }
        case 5:
            switch value["code"] {
            case nil, .null: body = .ack(data ?? JSONValue.null, code: nil)
            case .integer(let code)? where code == 200 || code == 0: body = .ack(data ?? JSONValue.null, code: code)
            default: throw FieldError("code", value["code"]?.shown ?? "", "expected 200 or 0")
            }
        case 11: body = .invite(uuid: try self.uuid(data))
        case 12: body = .accept(uuid: try self.uuid(data))
        case 13: body = .reject(uuid: try self.uuid(data))
        default: throw FieldError("command", String(number), "expected one of 1 to 5 and 11 to 13")
        }
        return MachineCommand(body, serial: try self.serial(value["serial"]))
    }

    /// The command's object, whether it came as such or as text.
    package static func object(_ content: JSONValue, longest: Int) throws(FieldError) -> JSONValue {
        let value: JSONValue
        if case .string(let text) = content {
            guard text.utf8.count <= longest else { throw self.tooLong(text.utf8.count, longest) }
            do {
                value = try JSONParser.parse(text.utf8)
            } catch {
                throw FieldError("content", "", "expected JSON: \(error)")
            }
        } else {
            value = content
        }
        guard case .object = value else { throw FieldError("content", "", "expected a JSON object, not \(value.kind)") }
        let length = value.text.utf8.count
        guard length <= longest else { throw self.tooLong(length, longest) }
        return value
    }

    private static func tooLong(_ length: Int, _ longest: Int) -> FieldError {
        FieldError("content", "", "expected at most \(longest) bytes; these are \(length)")
    }

    private static func uuid(_ data: JSONValue?) throws(FieldError) -> String {
        guard case .string(let text)? = data, (1...self.longestUUID).contains(text.utf8.count) else {
            throw FieldError("data", data?.shown ?? "", "expected the turn's id, 1 to \(self.longestUUID) bytes of text")
        }
        return text
    }

    private static func serial(_ value: JSONValue?) throws(FieldError) -> Int64? {
        switch value {
        case nil, .null: return nil
        case .integer(let number)?: return number
        case let other?: throw FieldError("serial", other.shown, "expected a whole number")
        }
    }

    // MARK: - Writing

    /// The command as clients read it; `serial` is left out when nil.
    package var content: JSONValue {
        var members: [JSONValue.Member] = [.init(name: "command", value: .integer(self.number))]
        if let data = self.data { members.append(.init(name: "data", value: data)) }
        members.add("serial", self.serial)
        if case .ack(_, let code?) = self.body { members.add("code", code) }
        return .object(members)
    }

    /// The answer to a command that was not carried out: code 0.
    package static func denial(of command: JSONValue, serial: Int64?) -> MachineCommand {
        guard case .object(let members) = command else { return MachineCommand(.ack(.null, code: 0), serial: serial) }
        return MachineCommand(.ack(.object(members.filter { $0.name == "command" || $0.name == "data" }), code: 0), serial: serial)
    }

    private var number: Int64 {
        switch self.body {
        case .move: 1
        case .drop: 2
        case .camera: 3
        case .result: 4
        case .ack: 5
        case .invite: 11
        case .accept: 12
        case .reject: 13
        }
    }

    private var data: JSONValue? {
        switch self.body {
        case .move(let direction): .string(direction.rawValue)
        case .drop: nil
        case .camera(let camera): .integer(Int64(camera))
        case .result(let won): .string(won ? "true" : "false")
        case .ack(let data, _): data
        case .invite(let uuid), .accept(let uuid), .reject(let uuid): .string(uuid)
        }
    }
}
