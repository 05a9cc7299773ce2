package import Support

/// A class as the store keeps it: members and tickets of the core, devices, the display and the whiteboards.
extension Classroom {
    package var state: JSONValue {
        [
            "gathering": self.gathering.state, "createdAt": .integer(self.createdAtMs), "boardsMade": .integer(self.boardsMade),
            "display": self.display.map {
                ["type": .integer($0.kind.rawValue), "userId": .string($0.userID), "uri": .string($0.uri)]
            } ?? JSONValue.null,
            "boards": .array(
                self.boards.map {
                    [
                        "id": .string($0.id), "name": .string($0.name), "page": .integer($0.page), "creator": .string($0.creator),
                        "service": $0.service.map { .string($0) } ?? JSONValue.null,
                    ]
                }),
            // In the members' order, so that the same class always gives the same text.
            "devices": .array(
                self.gathering.members.map {
                    let devices = self.devices(of: $0.id)
                    return ["id": .string($0.id), "camera": .bool(devices.camera), "microphone": .bool(devices.microphone)]
                }),
        ]
    }

    /// Restores a class from the text of ``state``; throws for any other text. All members are away, since `nowMs` or since an earlier stored time.
    package init(state text: String, limits: ClassroomLimits = ClassroomLimits(), nowMs: Int64) throws {
        let value = try JSONParser.parse(text.utf8, deepest: JSONParser.deepestAnswer)
        self.init(limits: limits, createdAtMs: try Self.number("createdAt", value))
        self.gathering = try Gathering(state: value["gathering"] ?? JSONValue.null, limits: limits.gathering, nowMs: nowMs)
        for member in self.gathering.members where ClassroomRole(rawValue: member.role) == nil {
            throw FieldError("role", member.role, "expected assistant, teacher, student or audience")
        }
        self.boardsMade = try Self.number("boardsMade", value)
        if let display = value["display"], display != .null {
            guard let kind = ClassroomDisplay.Kind(rawValue: try display.number("type")) else {
                throw FieldError("display", display.text, "expected a type from 0 to 3")
            }
            self.display = ClassroomDisplay(kind: kind, userID: try display.text("userId"), uri: try display.text("uri"))
        }
        self.boards = try value.entries("boards").map {
            var board = Board(
                id: try $0.text("id"), name: try $0.text("name"), page: try Self.number("page", $0), creator: try $0.text("creator"))
            if let service = $0["service"], service != .null { board.service = try $0.text("service") }
            return board
        }
        for entry in try value.entries("devices") {
            self.devices[try entry.text("id")] = Devices(
                camera: entry["camera"] == .bool(true), microphone: entry["microphone"] == .bool(true))
        }
    }

    /// A number from 0 to 2^53, small enough that sums do not overflow.
    private static func number(_ name: String, _ value: JSONValue) throws(FieldError) -> Int64 {
        let number = try value.number(name)
        guard (0...1 << 53).contains(number) else { throw FieldError(name, "\(number)", "expected 0 to 2^53") }
        return number
    }
}
