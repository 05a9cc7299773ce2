import Rooms
import Support

extension RoomTransaction {
    /// Stores the event of a running push whose verdict changed. The room itself does not change.
    func healthChanged(_ sequence: Int64, _ health: HealthRecord) throws {
        guard let push = try self.store.push(sequence), push.end == nil, push.mediaAt != nil else { return }
        guard var room = try self.store.room(push.roomID.rawValue), try self.catchUp(&room) else { return }
        // Applying a deadline may have ended it.
        guard try self.store.push(sequence)?.end == nil else { return }
        let old = room
        var data = self.data(of: room, by: .server)
        data.add("app", push.path.app)
        data.add("name", push.path.name)
        data.add("slot", push.slot)
        data.add("sequence", push.sequence)
        data.add("verdict", health.verdict)
        data.add("former", health.former)
        data.append(JSONValue.Member(name: "reasons", value: .array(health.reasons.map(Self.json))))
        try self.event(.streamHealth, of: &room, data)
        try self.save(from: old, to: room)
    }

    private static func json(_ reason: HealthRecord.Reason) -> JSONValue {
        var data: [JSONValue.Member] = []
        data.add("code", reason.code)
        data.add("severity", reason.severity)
        data.add("value", reason.value)
        data.add("expected", reason.expected)
        data.add("unit", reason.unit)
        data.add("message", reason.message)
        return .object(data)
    }
}

extension [JSONValue.Member] {
    fileprivate mutating func add(_ name: String, _ value: Double?) {
        if let value, value.isFinite { self.append(JSONValue.Member(name: name, value: .number(value))) }
    }
}
