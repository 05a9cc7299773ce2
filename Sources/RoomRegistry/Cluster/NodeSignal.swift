import Rooms
import Support

/// What a batch of one node changed, for the others: its outcomes in their order, and the changes of the tables in memory. As text, a row of
/// the table `signals`. A value.
///
/// Events are named by their marks. Who needs them whole reads them in the table `events`.
struct NodeSignal: Equatable {
    private var items: [JSONValue] = []

    /// Nil if the batch changed nothing that concerns another node.
    init?(_ work: WorkResults) {
        for outcome in work.outcomes { if let item = Self.item(outcome) { self.items.append(item) } }
        for change in work.playChanges { self.items.append(Self.item(change)) }
        for (kick, paths) in work.kicks {
            self.items.append([
                "kicked": .string(kick.user), "room": .string(kick.roomID.rawValue), "until": .integer(kick.until),
                "paths": .array(paths.map(Self.path)),
            ])
        }
        if !work.gone.isEmpty { self.items.append(["gone": .array(work.gone.map { .string($0.rawValue) })]) }
        if self.items.isEmpty { return nil }
    }

    init(text: String) throws {
        guard case .array(let items) = try JSONParser.parse(text.utf8, deepest: JSONParser.deepestAnswer) else { throw Unreadable() }
        self.items = items
    }

    struct Unreadable: Error {}

    var text: String { JSONValue.array(self.items).text }

    /// The ids of its events; they have no gap.
    var events: [Int64] { self.items.compactMap { $0.integer("event") } }

    /// What the other nodes carry out. Items of a kind that a later version has added are left out.
    func results(_ events: [Int64: RoomEvent]) -> WorkResults {
        var work = WorkResults()
        for item in self.items {
            if let id = item.integer("event") {
                if let event = events[id] {
                    work.add(.eventElsewhere(event))
                } else if let mark = Self.mark(id, item) {
                    work.add(.eventMark(mark))
                }
            } else if let outcome = Self.outcome(item) {
                work.add(outcome)
            } else if let path = item.path("closed"), let yes = item.bool("yes") {
                work.add(PlayTable.Change.closed(path, yes))
            } else if let path = item.path("banned") {
                let terms = item.integer("until").map { BanTerms(untilMs: $0, reason: item.string("reason") ?? "") }
                work.add(PlayTable.Change.banned(path, terms))
            } else if let user = item.string("kicked"), let room = item.string("room"), let until = item.integer("until") {
                work.add(Kick(roomID: RoomID(stored: room), user: user, until: until), item.paths("paths"))
            } else if case .array(let rooms)? = item["gone"] {
                work.add(gone: rooms.compactMap { if case .string(let id) = $0 { RoomID(stored: id) } else { nil } })
            }
        }
        return work
    }

    // MARK: - Items

    private static func path(_ path: StreamPath) -> JSONValue { [.string(path.app), .string(path.name)] }

    private static func item(_ change: PlayTable.Change) -> JSONValue {
        switch change {
        case .closed(let path, let yes): ["closed": self.path(path), "yes": .bool(yes)]
        case .banned(let path, let terms):
            [
                "banned": self.path(path), "until": terms.map { .integer($0.untilMs) } ?? .null,
                "reason": terms.map { .string($0.reason) } ?? .null,
            ]
        }
    }

    /// Nil for a kind that only a later version knows.
    private static func mark(_ id: Int64, _ item: JSONValue) -> EventMark? {
        guard let kind = item.string("kind").flatMap(RoomEvent.Kind.init(rawValue:)) else { return nil }
        return EventMark(id: id, kind: kind, roomID: item.string("room").map(RoomID.init(stored:)))
    }

    /// Nil for what concerns only the node where it happened.
    private static func item(_ outcome: RoomOutcome) -> JSONValue? {
        switch outcome {
        case .event(let event):
            return [
                "event": .integer(event.id), "kind": .string(event.kind.rawValue),
                "room": event.roomID.map { .string($0.rawValue) } ?? .null,
            ]
        case .eventElsewhere, .eventMark, .streamBegan, .clockAdopted: return nil
        case .cut(let path, let sequence, let end, let endsViewers):
            return [
                "cut": self.path(path), "push": sequence.map { .integer($0.rawValue) } ?? .null, "end": .string(end.rawValue),
                "endsViewers": .bool(endsViewers),
            ]
        case .waits(let path, let wait):
            return ["waits": self.path(path), "until": .integer(wait.untilMs), "endsRoom": .bool(wait.endsRoom)]
        case .policyChanged(let roomID, let paths, let old, let new):
            return [
                "policy": .string(roomID.rawValue), "paths": .array(paths.map(self.path)), "from": self.policy(old), "to": self.policy(new),
            ]
        case .pauseAnnounced(let path): return ["paused": self.path(path)]
        case .kick(let roomID, let user, let actor):
            return ["kick": .string(user), "room": .string(roomID.rawValue), "by": .string(actor.name)]
        case .drainAsked(let order): return order.item
        }
    }

    private static func outcome(_ item: JSONValue) -> RoomOutcome? {
        if let path = item.path("cut"), let end = item.string("end").flatMap(PushEnd.init(rawValue:)),
            let endsViewers = item.bool("endsViewers")
        {
            return .cut(path, sequence: item.integer("push").map(PushSequence.init), end, endsViewers: endsViewers)
        }
        if let path = item.path("waits"), let until = item.integer("until"), let endsRoom = item.bool("endsRoom") {
            return .waits(path, Room.Wait(untilMs: until, endsRoom: endsRoom))
        }
        if let room = item.string("policy"), let old = item["from"], let new = item["to"] {
            return .policyChanged(RoomID(stored: room), item.paths("paths"), from: self.policy(old), to: self.policy(new))
        }
        if let path = item.path("paused") { return .pauseAnnounced(path) }
        if let user = item.string("kick"), let room = item.string("room"), let by = item.string("by") {
            return .kick(roomID: RoomID(stored: room), user: user, by: Actor(by))
        }
        return DrainOrder(item).map(RoomOutcome.drainAsked)
    }

    private static func policy(_ policy: RoomPolicy) -> JSONValue {
        .object(RoomPolicy.fields.map { JSONValue.Member(name: $0.name, value: .integer($0.get(policy))) })
    }

    private static func policy(_ item: JSONValue) -> RoomPolicy {
        var policy = RoomPolicy()
        for field in RoomPolicy.fields { if let value = item.integer(field.name) { field.set(&policy, value) } }
        return policy
    }
}

extension JSONValue {
    fileprivate func path(_ name: String) -> StreamPath? { self[name].flatMap(Self.path) }

    fileprivate func paths(_ name: String) -> [StreamPath] {
        guard case .array(let items)? = self[name] else { return [] }
        return items.compactMap(Self.path)
    }

    private static func path(_ item: JSONValue) -> StreamPath? {
        guard case .array(let parts) = item, parts.count == 2, case .string(let app) = parts[0], case .string(let name) = parts[1] else {
            return nil
        }
        return StreamPath(app: app, name: name)
    }
}
