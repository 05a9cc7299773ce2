package import Support

/// A frame of the channel, from a client: `{"type": "send", "ref": 7, "object": "chat", "content": "hi"}`. A value.
///
/// `ref` is the client's own: the answer to the frame (`ack` or `error`) repeats it.
package struct ChannelFrame: Sendable, Equatable {
    package enum Body: Sendable, Equatable {
        /// To one member, or to all others if `to` is nil.
        case send(to: String?, object: String, content: JSONValue)
        /// Like `send`, but not among the messages that later joiners get.
        case command(to: String?, content: JSONValue)
        case queueOffer(value: String)
        /// A nil `key` stands for the sender's own place; for a host, for the first place.
        case queuePoll(key: String?)
        case queueList
        /// Asks a member for a one-shot permission.
        case ticketOpen(to: String, kind: String, payload: JSONValue)
        case ticketAnswer(id: String, isApproved: Bool)
        case ping
    }

    package let ref: JSONValue?
    package let body: Body

    /// Why a frame is rejected, with the frame's `ref`.
    package struct Problem: Error, Sendable, Equatable {
        package let ref: JSONValue?
        package let error: FieldError
    }

    private static let longestWord = 64
    private static let types = [
        "send", "command", "queue.offer", "queue.poll", "queue.list", "ticket.open", "ticket.answer", "ping",
    ]

    package static func read(_ text: String) throws(Problem) -> ChannelFrame {
        let (value, ref) = try self.open(text)
        do throws(FieldError) {
            return ChannelFrame(ref: ref, body: try self.body(value))
        } catch {
            throw Problem(ref: ref, error: error)
        }
    }

    /// Parses a frame into its object and its `ref`.
    static func open(_ text: String) throws(Problem) -> (value: JSONValue, ref: JSONValue?) {
        let value: JSONValue
        do {
            value = try JSONParser.parse(text.utf8)
        } catch {
            throw Problem(ref: nil, error: FieldError("frame", "", "expected JSON: \(error)"))
        }
        guard case .object = value else {
            throw Problem(ref: nil, error: FieldError("frame", "", "expected a JSON object, not \(value.kind)"))
        }
        switch value["ref"] {
        case nil, .null: return (value, Optional.none)
        case .integer(let number)?: return (value, .some(.integer(number)))
        case .string(let text)? where text.utf8.count <= self.longestWord: return (value, .some(.string(text)))
        default:
            throw Problem(ref: nil, error: FieldError("ref", "", "expected a whole number, or at most \(self.longestWord) bytes of text"))
        }
    }

    private static func body(_ value: JSONValue) throws(FieldError) -> Body {
        guard case .string(let type)? = value["type"] else {
            throw FieldError("type", "", "expected one of \(self.types.joined(separator: ", "))")
        }
        switch type {
        case "send":
            return .send(
                to: try self.word("to", value), object: try self.word("object", value) ?? "message", content: try self.content(value))
        case "command": return .command(to: try self.word("to", value), content: try self.content(value))
        case "queue.offer":
            guard case .string(let text)? = value["value"] else { throw FieldError("value", "", "expected a string") }
            return .queueOffer(value: text)
        case "queue.poll": return .queuePoll(key: try self.word("key", value))
        case "queue.list": return .queueList
        case "ticket.open":
            return .ticketOpen(
                to: try self.needed("to", value), kind: try self.needed("kind", value), payload: value["payload"] ?? JSONValue.null)
        case "ticket.answer":
            guard case .bool(let isApproved)? = value["approved"] else { throw FieldError("approved", "", "expected true or false") }
            return .ticketAnswer(id: try self.needed("ticketId", value), isApproved: isApproved)
        case "ping": return .ping
        default: throw FieldError("type", type, "expected one of \(self.types.joined(separator: ", "))")
        }
    }

    private static func content(_ value: JSONValue) throws(FieldError) -> JSONValue {
        guard let content = value["content"] else { throw FieldError("content", "", "is required") }
        return content
    }

    /// Nil when it is absent or null.
    private static func word(_ name: String, _ value: JSONValue) throws(FieldError) -> String? {
        switch value[name] {
        case nil, .null: return nil
        case .string(let text)? where (1...self.longestWord).contains(text.utf8.count) && !self.hasControls(text):
            try NameForm.check(text, name)
            return text
        default:
            throw FieldError(name, value[name]?.shown ?? "", "expected 1 to \(self.longestWord) bytes of text without control characters")
        }
    }

    /// Control characters are rejected because other clients show and log these texts.
    private static func hasControls(_ text: String) -> Bool {
        text.unicodeScalars.contains { $0.properties.generalCategory == .control || $0.properties.generalCategory == .format }
    }

    private static func needed(_ name: String, _ value: JSONValue) throws(FieldError) -> String {
        guard let text = try self.word(name, value) else { throw FieldError(name, "", "is required") }
        return text
    }
}

/// Writes the channel's frames to clients. Pure.
///
/// | type | members |
/// |---|---|
/// | `hello` | `you`, `kind`, `room`, `members`, `state`: `queue`, `isPaused`, `tickets`, `messages` |
/// | `message` | `from`, `object`, `content`, `at` |
/// | `command` | `from`, `content` |
/// | `turn` | `phase`, `player`, `uuid`, `deadline` of a machine's game |
/// | `presence` | `action`: `join`, `away`, `back`, `leave`; `member`; `reason` of a leave |
/// | `queue` | `action`: `OFFER`, `POLL`, `DROP`; `key`, `value` |
/// | `ticket` | `action`: `opened`, `approved`, `rejected`, `expired`; `ticketId`, `kind`, `from`, `to`, `payload`, `expiresAt` |
/// | `closed` | `reason` |
/// | `ack`, `error`, `pong` | `ref`; `data` of an ack, `code` and `message` of an error |
package enum ChannelWriter {
    /// `messages`: the most recent ones as they were sent, oldest first.
    package static func frame(
        _ signal: Gathering.Signal, kind: String, room: String, isPaused: Bool, messages: [JSONValue],
        greeting: (Gathering.Member) -> [JSONValue.Member] = { _ in [] }
    ) -> JSONValue? {
        switch signal {
        case .hello(let you, let others, let queue, let tickets):
            let state: [JSONValue.Member] = [
                .init(name: "queue", value: .array(queue.map(self.entry))), .init(name: "isPaused", value: .bool(isPaused)),
                .init(name: "tickets", value: .array(tickets.map { .object(self.ticket($0)) })),
                .init(name: "messages", value: .array(messages)),
            ]
            return [
                "type": "hello", "you": self.member(you), "kind": .string(kind), "room": .string(room),
                "members": .array(others.map(self.member)), "state": .object(state + greeting(you)),
            ]
        case .arrived(let member): return self.presence("join", member)
        case .away(let member): return self.presence("away", member)
        case .back(let member): return self.presence("back", member)
        case .departed(let member, let why):
            guard case .object(let members) = self.presence("leave", member) else { return Optional.none }
            return .object(members + [.init(name: "reason", value: .string(why.rawValue))])
        case .said(let from, let object, let content, let atMs):
            return self.message(from.id, object, content, atMs)
        case .notified(let from, let object, let content, let atMs): return self.message(from, object, content, atMs)
        case .commanded(let from, let content): return ["type": "command", "from": .string(from), "content": content]
        case .turn(let phase, let player, let uuid, let deadlineMs):
            return [
                "type": "turn", "phase": .string(phase), "player": player.map(JSONValue.string) ?? .null,
                "uuid": uuid.map(JSONValue.string) ?? .null, "deadline": deadlineMs.map { .string(Instant.text($0)) } ?? .null,
            ]
        case .queue(let change, let entry):
            return ["type": "queue", "action": .string(change.rawValue), "key": .string(entry.key), "value": .string(entry.value)]
        case .ticket(let change, let ticket):
            return .object(
                [.init(name: "type", value: "ticket"), .init(name: "action", value: .string(change.rawValue))] + self.ticket(ticket))
        case .closed(let reason): return ["type": "closed", "reason": .string(reason)]
        case .directed: return Optional.none
        }
    }

    private static func message(_ from: String, _ object: String, _ content: JSONValue, _ atMs: Int64) -> JSONValue {
        [
            "type": "message", "from": .string(from), "object": .string(object), "content": content, "at": .string(Instant.text(atMs)),
        ]
    }

    package static func ack(_ ref: JSONValue?, _ data: JSONValue = .null) -> JSONValue {
        ["type": "ack", "ref": ref ?? JSONValue.null, "data": data]
    }

    package static func error(_ ref: JSONValue?, code: String, _ message: String) -> JSONValue {
        ["type": "error", "ref": ref ?? JSONValue.null, "code": .string(code), "message": .string(message)]
    }

    package static func pong(_ ref: JSONValue?) -> JSONValue { ["type": "pong", "ref": ref ?? JSONValue.null] }

    package static func list(_ queue: [Gathering.Entry]) -> JSONValue { .array(queue.map(self.entry)) }

    private static func presence(_ action: String, _ member: Gathering.Member) -> JSONValue {
        ["type": "presence", "action": .string(action), "member": self.member(member)]
    }

    private static func member(_ member: Gathering.Member) -> JSONValue {
        [
            "id": .string(member.id), "name": .string(member.name), "role": .string(member.role),
            "joinedAt": .string(Instant.text(member.joinedAtMs)), "isAway": .bool(member.connection == nil),
        ]
    }

    private static func entry(_ entry: Gathering.Entry) -> JSONValue {
        ["key": .string(entry.key), "value": .string(entry.value), "at": .string(Instant.text(entry.atMs))]
    }

    private static func ticket(_ ticket: Gathering.Ticket) -> [JSONValue.Member] {
        [
            .init(name: "ticketId", value: .string(ticket.id)), .init(name: "kind", value: .string(ticket.kind)),
            .init(name: "from", value: .string(ticket.from)), .init(name: "to", value: .string(ticket.to)),
            .init(name: "payload", value: ticket.payload), .init(name: "expiresAt", value: .string(Instant.text(ticket.expiresAtMs))),
        ]
    }
}
