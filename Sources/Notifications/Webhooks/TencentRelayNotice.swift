import Rooms
import Support

/// The status of a link (314), in the format of Tencent Cloud's callbacks. Pure.
struct TencentRelayNotice: TencentCallback {
    /// The data of the events relay.….
    private struct Relay: Decodable {
        let app: String
        let name: String
        let taskId: Int64
        let direction: String
        let target: String
        let reason: String?
        let error: String?
    }

    private let event: RoomEvent
    private let relay: Relay

    var app: String { self.relay.app }
    var name: String { self.relay.name }

    init(_ event: RoomEvent) throws(WebhookBodyError) {
        self.event = event
        self.relay = try Self.data(of: event)
    }

    func fields(_ sender: WebhookRequest.Sender) -> [(String, JSONValue)] {
        let relay = self.relay
        let here = "\(sender.rtmp)/\(relay.app)/\(relay.name)"
        let isPull = relay.direction == "pull"
        let word =
            switch self.event.kind {
            case .relayStarted: "TaskStart"
            case .relayConnected: "TaskConnected"
            case .relayInterrupted: "TaskAlarm"
            default: "TaskExit"
            }
        return [
            ("event_type", 314), ("callback_event", .string(word)), ("event_time", .integer(self.event.at / 1_000)),
            ("task_id", .string(String(relay.taskId))), ("source_urls", .string(isPull ? relay.target : here)),
            ("to_url", .string(isPull ? here : relay.target)), ("errcode", .string(relay.reason ?? "")),
            ("message", .string(relay.error ?? relay.reason ?? "")), ("sequence", .string(String(self.event.number))),
        ]
    }
}
