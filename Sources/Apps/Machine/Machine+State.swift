package import Support

/// A machine as the store keeps it: its gathering, its description, and the game. Everybody is away after a restart.
extension Machine {
    package var state: JSONValue {
        [
            "gathering": self.gathering.state, "name": .string(self.info.name), "accid": .string(self.info.accid),
            "device": .string(self.info.device), "isOpen": .bool(self.info.isOpen), "isPublic": .bool(self.info.isPublic),
            "mode": .string(self.info.mode.rawValue), "salt": .string(self.salt), "turns": .integer(self.turns),
            "turn": self.turn.map { turn in
                [
                    "phase": .string(turn.phase.rawValue), "player": .string(turn.player), "uuid": .string(turn.uuid),
                    "promisedAt": .integer(turn.promisedMs), "isLeft": .bool(turn.isLeft),
                ]
            } ?? .null,
        ]
    }

    /// Restores a machine from the text of ``state``; throws for any other text.
    package init(state text: String, limits: MachineLimits, nowMs: Int64) throws {
        let value = try JSONParser.parse(text.utf8, deepest: JSONParser.deepestAnswer)
        guard let gathering = value["gathering"] else { throw FieldError("gathering", "", "is required") }
        guard let mode = Mode(rawValue: try value.text("mode")) else { throw FieldError("mode", try value.text("mode"), "is unknown") }
        let info = Info(
            name: try value.text("name"), accid: try value.text("accid"), device: try value.text("device"),
            isOpen: value["isOpen"] == .bool(true), isPublic: value["isPublic"] == .bool(true), mode: mode)
        self.init(info, limits: limits, salt: try value.text("salt"))
        self.gathering = try Gathering(state: gathering, limits: limits.gathering, nowMs: nowMs)
        self.turns = try value.number("turns")
        if let turn = value["turn"], turn != .null {
            guard let phase = Turn.Phase(rawValue: try turn.text("phase")) else {
                throw FieldError("phase", try turn.text("phase"), "is unknown")
            }
            self.turn = Turn(
                phase: phase, player: try turn.text("player"), uuid: try turn.text("uuid"), promisedMs: try turn.number("promisedAt"),
                deadlineMs: nowMs, isLeft: turn["isLeft"] == .bool(true))
        }
        self.restart(nowMs: nowMs)
    }

    /// Marks everybody as away since this time, and the game as interrupted: the next input ends it.
    package mutating func restart(nowMs: Int64) {
        self.gathering.restart(nowMs: nowMs)
        self.turn?.isInterrupted = true
        self.turn?.deadlineMs = nowMs
        self.readySinceMs = nil
        self.rates = [:]
    }
}
