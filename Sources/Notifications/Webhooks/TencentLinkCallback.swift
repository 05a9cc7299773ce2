import Rooms
import Support

/// The status of a link (314), in the format of Tencent Cloud's callbacks. Pure.
struct TencentLinkCallback: TencentCallback {
    private let event: RoomEvent
    private let relay: RelayChange

    var stream: StreamPath { self.relay.path }

    init(_ event: RoomEvent, _ relay: RelayChange) {
        self.event = event
        self.relay = relay
    }

    func fields(_ sender: WebhookSender) -> [(String, JSONValue)] {
        let relay = self.relay
        let here = "\(sender.rtmp)/\(relay.path)"
        let isPull = relay.direction == .pull
        let word =
            switch relay.kind {
            case .started: "TaskStart"
            case .connected: "TaskConnected"
            case .interrupted: "TaskAlarm"
            case .stopped: "TaskExit"
            }
        return [
            ("event_type", 314), ("callback_event", .string(word)), ("event_time", .integer(self.event.at / 1_000)),
            ("task_id", .string(String(relay.task))), ("source_urls", .string(isPull ? relay.target : here)),
            ("to_url", .string(isPull ? here : relay.target)), ("errcode", .string(relay.reason ?? "")),
            ("message", .string(relay.error ?? relay.reason ?? "")), ("sequence", .string(String(self.event.number))),
        ]
    }
}
