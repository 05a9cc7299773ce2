import Rooms
import Support

/// Stream begin (1) and end (0) in the format of Tencent Cloud's callbacks. Pure.
struct TencentPushCallback: TencentCallback {
    private let at: Int64
    private let push: PushDetails
    private let query: String?

    var stream: StreamPath { self.push.path }

    /// `query`: the push's own; nil if the history no longer has it.
    init(_ event: RoomEvent, _ push: PushDetails, query: String?) {
        self.at = event.at
        self.push = push
        self.query = query
    }

    func fields(_ sender: WebhookSender, atSeconds: Int64) -> [(String, JSONValue)] {
        let (push, end) = (self.push, self.push.end)
        var fields: [(String, JSONValue)] = [
            ("event_type", end == nil ? 1 : 0),
            ("event_time", .integer(self.at / 1_000)),
            ("sequence", .string(String(push.sequence))),
            ("node", .string(sender.node)),
            ("user_ip", .string(Self.host(push.clientAddress))),
            ("stream_param", .string(self.query ?? push.parameters)),
            ("errcode", .integer(Int64(end?.code ?? 0))),
            ("errmsg", .string(end.map { Self.words($0) } ?? "ok")),
            ("set_id", 1),
            ("width", .integer(Int64(push.media.width ?? 0))),
            ("height", .integer(Int64(push.media.height ?? 0))),
        ]
        if let end { fields.append(("push_duration", .string(String(end.durationMs)))) }
        return fields
    }

    /// The address without its port.
    private static func host(_ address: String) -> String {
        if address.hasPrefix("["), let end = address.firstIndex(of: "]") { return String(address.dropFirst()[..<end]) }
        let parts = address.split(separator: ":", omittingEmptySubsequences: false)
        return parts.count == 2 ? String(parts[0]) : address
    }

    /// Puts the subcode, if any, before the text: Tencent's callbacks have no field for it.
    private static func words(_ end: PushDetails.End) -> String {
        (end.subcode.map { "\($0): " } ?? "") + self.words(end.reason)
    }

    private static func words(_ reason: PushEnd?) -> String {
        switch reason {
        case .clientStopped: "the client stopped"
        case .connectionLost: "the connection broke"
        case .mediaIdle: "no data for too long"
        case .takenOver: "replaced by a new push"
        case .dropped: "dropped by the API"
        case .forbidden: "the stream is forbidden"
        case .roomEnded: "the room ended"
        case .protocolError: "bad RTMP"
        case .serverShutdown, .serverRestart: "the server stopped"
        case .nodeLost: "the server's node was lost"
        case .refused: "refused"
        case nil: "unknown"
        }
    }
}

/// The events that have a callback, and the callback of each.
extension TencentPushCallback {
    /// The events to which one of Tencent's callbacks corresponds.
    static let kinds: Set<RoomEvent.Kind> = [
        .streamBegin, .streamEnd, .recordStarted, .recordFinished, .recordFailed, .recordEnded, .snapshotTaken, .linkStarted,
        .linkConnected, .linkInterrupted, .linkStopped,
    ]

    /// The callback that corresponds to the delivery's event. Throws when there is none, or the event's data is incomplete.
    static func callback(for entry: WebhookDelivery) throws(WebhookBodyError) -> any TencentCallback {
        let event = entry.event
        let details: EventDetails?
        do throws(EventDataError) {
            details = try event.details()
        } catch {
            throw WebhookBodyError(description: error.description)
        }
        return switch details {
        case .push(let push)?: TencentPushCallback(event, push, query: entry.query)
        case .recording(let recording)?: TencentRecordCallback(event: event, record: recording, query: entry.query ?? "")
        case .snapshot(let picture)?: TencentSnapshotCallback(picture: picture)
        case .link(let link)?: TencentLinkCallback(event: event, link: link)
        case nil: throw WebhookBodyError(description: "\(event.kind.rawValue) has no counterpart among Tencent's callbacks")
        }
    }
}
