package import Support

/// A gathering as the store keeps it: members, tickets, the queue. Connections are not kept: after a restart there are none.
extension Gathering {
    /// Whether the effects must be stored before anybody is notified.
    package static func isKept(_ effects: [Effect]) -> Bool {
        effects.contains { effect in
            switch effect {
            case .joined, .left, .queueChanged, .ticketChanged, .event, .ended: true
            case .send, .close, .mute: false
            }
        }
    }

    package var state: JSONValue {
        [
            "joins": .integer(Int64(self.joins)), "isPaused": .bool(self.isPaused),
            "members": .array(
                self.members.map { member in
                    [
                        "id": .string(member.id), "name": .string(member.name), "role": .string(member.role),
                        "joinedAt": .integer(member.joinedAtMs), "order": .integer(Int64(member.order)),
                        "awaySince": member.awaySinceMs.map(JSONValue.integer) ?? .null,
                    ]
                }),
            "queue": .array(
                self.queue.map { ["key": .string($0.key), "value": .string($0.value), "at": .integer($0.atMs)] }),
            "tickets": .array(
                self.tickets.map { ticket in
                    [
                        "id": .string(ticket.id), "kind": .string(ticket.kind), "from": .string(ticket.from), "to": .string(ticket.to),
                        "payload": ticket.payload, "expiresAt": .integer(ticket.expiresAtMs),
                    ]
                }),
        ]
    }

    /// Restores a gathering from the text of ``state``; throws for any other text. All members are away, since `nowMs` or since an earlier stored
    /// time.
    package init(state text: String, limits: GatheringLimits, nowMs: Int64) throws {
        try self.init(state: try JSONParser.parse(text.utf8, deepest: JSONParser.deepestAnswer), limits: limits, nowMs: nowMs)
    }

    /// The same, from JSON that a dialect has already parsed.
    init(state value: JSONValue, limits: GatheringLimits, nowMs: Int64) throws {
        self.init(limits: limits)
        self.restartedMs = nowMs
        self.joins = Int(clamping: try value.number("joins"))
        self.isPaused = value["isPaused"] == .bool(true)
        self.members = try value.entries("members").map { entry in
            var away: Int64?
            if case .integer(let ms)? = entry["awaySince"] { away = ms }
            return Member(
                id: try entry.text("id"), name: try entry.text("name"), role: try entry.text("role"),
                joinedAtMs: try entry.number("joinedAt"),
                order: Int(clamping: try entry.number("order")), connection: nil, awaySinceMs: away ?? nowMs)
        }
        self.queue = try value.entries("queue").map {
            Entry(key: try $0.text("key"), value: try $0.text("value"), atMs: try $0.number("at"))
        }
        self.tickets = try value.entries("tickets").map {
            Ticket(
                id: try $0.text("id"), kind: try $0.text("kind"), from: try $0.text("from"), to: try $0.text("to"),
                payload: $0["payload"] ?? JSONValue.null, expiresAtMs: try $0.number("expiresAt"))
        }
    }
}

extension JSONValue {
    func number(_ name: String) throws(FieldError) -> Int64 {
        guard case .integer(let number)? = self[name] else { throw FieldError(name, self[name]?.shown ?? "", "expected a whole number") }
        return number
    }

    func text(_ name: String) throws(FieldError) -> String {
        guard case .string(let text)? = self[name] else { throw FieldError(name, self[name]?.shown ?? "", "expected a string") }
        return text
    }

    func entries(_ name: String) throws(FieldError) -> [JSONValue] {
        guard case .array(let entries)? = self[name] else { throw FieldError(name, self[name]?.shown ?? "", "expected an array") }
        return entries
    }
}
