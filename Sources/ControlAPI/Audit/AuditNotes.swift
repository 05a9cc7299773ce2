import Relay
import RoomRegistry
import Rooms
import ServerConfiguration
import Streaming
import Support

extension AuditChange {
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
