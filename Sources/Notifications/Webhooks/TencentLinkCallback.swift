import Rooms
import Support

/// The status of a link (314), in the format of Tencent Cloud's callbacks. Pure.
struct TencentLinkCallback: TencentCallback {
    let event: RoomEvent
    let link: LinkChange

    var stream: StreamPath { self.link.path }

    func fields(_ sender: WebhookSender, atSeconds: Int64) -> [(String, JSONValue)] {
        let link = self.link
        let here = "\(sender.rtmp)/\(link.path)"
        let isPull = link.direction == .pull
        let word =
            switch link.kind {
            case .started: "TaskStart"
            case .connected: "TaskConnected"
            case .interrupted: "TaskAlarm"
            case .stopped: "TaskExit"
            }
        return [
            ("event_type", 314), ("callback_event", .string(word)), ("event_time", .integer(self.event.at / 1_000)),
            ("task_id", .string(String(link.linkID))), ("source_urls", .string(isPull ? link.target : here)),
            ("to_url", .string(isPull ? here : link.target)), ("errcode", .string(link.reason ?? "")),
            ("message", .string(link.error ?? link.reason ?? "")), ("sequence", .string(String(self.event.number))),
        ]
    }
}
