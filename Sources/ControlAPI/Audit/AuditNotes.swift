import Delivery
import Relay
import RoomRegistry
import Rooms
import ServerConfiguration
import Support

extension APICall {
    /// Adds changed fields to the call's line in the audit trail. Changes of rooms need no call, since their transactions add the fields. Call it
    /// before the change, because a transaction stores the line with it. A call that fails shows no changed fields.
    func audit(stream: StreamPath? = nil, room: RoomID? = nil, _ add: (inout AuditChange) -> Void) {
        AuditedCall.current?.update { line in
            if let stream { line.stream = "\(stream)" }
            var change = AuditChange()
            change.roomID = room
            add(&change)
            line = line.with(change)
        }
    }
}

extension AuditChange {
    /// Adds a link that is created (`exists`) or deleted. `target`: the form shown in logs.
    mutating func relayTask(_ direction: RelayTask.Direction, onDemand: Bool, target: String, exists: Bool) {
        func add(_ name: String, _ value: JSONValue) {
            if exists { self.add(name, from: nil, to: value) } else { self.add(name, from: value, to: nil) }
        }
        add("direction", .string(direction.rawValue))
        if direction == .pull { add("onDemand", .bool(onDemand)) }
        add("target", .string(target))
    }

    mutating func drain(_ request: DrainRequest) { self.add("state", from: "running", to: request.restarts ? "restarting" : "draining") }

    /// Adds settings that a reload applies. Values that may hold a secret are not shown.
    mutating func settings(_ applied: [ConfigChange.Setting]) {
        for setting in applied {
            if setting.isHidden {
                self.add(setting.path, from: nil, to: "changed, not shown")
            } else {
                self.add(setting.path, from: setting.from.map(JSONValue.string), to: setting.to.map(JSONValue.string))
            }
        }
    }
}
