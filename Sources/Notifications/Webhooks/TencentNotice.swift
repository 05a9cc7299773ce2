import Rooms
import Support

/// Stream begin (1) and end (0) in the format of Tencent Cloud's callbacks. Pure.
struct TencentNotice: TencentCallback {
    /// The data of the events stream.begin and stream.end.
    private struct Stream: Decodable {
        let app: String
        let name: String
        let sequence: Int64
        let clientAddress: String?
        let parameters: String?
        let width: Int?
        let height: Int?
        /// Only in stream.end:
        let durationMs: Int64?
        let end: String?
        let code: Int?
        let subcode: Int?
    }

    private let isBegin: Bool
    private let at: Int64
    private let stream: Stream

    var app: String { self.stream.app }
    var name: String { self.stream.name }

    init(_ event: RoomEvent) throws(WebhookBodyError) {
        switch event.kind {
        case .streamBegin: self.isBegin = true
        case .streamEnd: self.isBegin = false
        default: throw WebhookBodyError(description: "\(event.kind.rawValue) has no counterpart among Tencent's callbacks")
        }
        self.at = event.at
        self.stream = try Self.data(of: event)
    }

    func fields(_ sender: WebhookRequest.Sender) -> [(String, JSONValue)] {
        let stream = self.stream
        var fields: [(String, JSONValue)] = [
            ("event_type", .integer(self.isBegin ? 1 : 0)),
            ("event_time", .integer(self.at / 1_000)),
            ("sequence", .string(String(stream.sequence))),
            ("node", .string(sender.node)),
            ("user_ip", .string(Self.host(stream.clientAddress ?? ""))),
            ("stream_param", .string(stream.parameters ?? "")),
            ("errcode", .integer(Int64(self.isBegin ? 0 : stream.code ?? 0))),
            ("errmsg", .string(self.isBegin ? "ok" : Self.words(stream.end, stream.subcode))),
            ("set_id", 1),
            ("width", .integer(Int64(stream.width ?? 0))),
            ("height", .integer(Int64(stream.height ?? 0))),
        ]
        if !self.isBegin { fields.append(("push_duration", .string(String(stream.durationMs ?? 0)))) }
        return fields
    }

    /// The address without its port.
    private static func host(_ address: String) -> String {
        if address.hasPrefix("["), let end = address.firstIndex(of: "]") { return String(address.dropFirst()[..<end]) }
        let parts = address.split(separator: ":", omittingEmptySubsequences: false)
        return parts.count == 2 ? String(parts[0]) : address
    }

    /// Puts the subcode, if any, before the text: Tencent's callbacks have no field for it.
    private static func words(_ end: String?, _ subcode: Int?) -> String {
        (subcode.map { "\($0): " } ?? "") + self.words(end)
    }

    private static func words(_ end: String?) -> String {
        switch end.flatMap(PushEnd.init(rawValue:)) {
        case .clientStopped: "the client stopped"
        case .connectionLost: "the connection broke"
        case .mediaIdle: "no data for too long"
        case .takenOver: "replaced by a new push"
        case .dropped: "dropped by the API"
        case .forbidden: "the stream is forbidden"
        case .roomEnded: "the room ended"
        case .protocolError: "bad RTMP"
        case .serverShutdown, .serverRestart: "the server stopped"
        case .refused: "refused"
        case nil: "unknown"
        }
    }
}
