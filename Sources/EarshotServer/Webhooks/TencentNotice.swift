import Crypto
import Rooms

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Stream begin (1) and end (0) in the shape of Tencent Cloud's callbacks, so that a back end made for those needs no change. Pure.
///
/// Common to all: `t`, until when the notice is good, in seconds since 1970; `sign`, MD5 of key and `t`; `event_type`.
struct TencentNotice {
    /// What the events stream.begin and stream.end carry.
    private struct Stream: Decodable {
        let app: String
        let name: String
        let sequence: Int64
        let clientAddress: String?
        let parameters: String?
        let width: Int?
        let height: Int?
        /// Of the end:
        let durationMs: Int64?
        let end: String?
        let code: Int?
    }

    private let isBegin: Bool
    private let at: Int64
    private let stream: Stream

    /// How long a notice is good, from when it is sent.
    static let lifetimeSeconds: Int64 = 600

    init(_ event: RoomEvent) throws(WebhookBodyError) {
        switch event.kind {
        case .streamBegin: self.isBegin = true
        case .streamEnd: self.isBegin = false
        default: throw WebhookBodyError(description: "\(event.kind.rawValue) has no counterpart among Tencent's callbacks")
        }
        self.at = event.at
        do {
            self.stream = try JSONDecoder().decode(Stream.self, from: Data(event.data.utf8))
        } catch {
            throw WebhookBodyError(description: "the data of event \(event.id) lacks what the callback tells")
        }
    }

    func body(_ sender: WebhookRequest.Sender, atSeconds: Int64) -> String {
        let stream = self.stream
        let t = atSeconds + Self.lifetimeSeconds
        var fields: [(String, JSONValue)] = [
            ("event_type", .integer(self.isBegin ? 1 : 0)),
            // There are no accounts here.
            ("appid", 0),
            ("app", .string(sender.domain)),
            ("appname", .string(stream.app)),
            ("stream_id", .string(stream.name)),
            ("channel_id", .string(stream.name)),
            ("event_time", .integer(self.at / 1_000)),
            ("sequence", .string(String(stream.sequence))),
            ("node", .string(sender.node)),
            ("user_ip", .string(Self.host(stream.clientAddress ?? ""))),
            ("stream_param", .string(stream.parameters ?? "")),
            ("errcode", .integer(Int64(self.isBegin ? 0 : stream.code ?? 0))),
            ("errmsg", .string(self.isBegin ? "ok" : Self.words(stream.end))),
            ("set_id", 1),
            ("width", .integer(Int64(stream.width ?? 0))),
            ("height", .integer(Int64(stream.height ?? 0))),
        ]
        if !self.isBegin { fields.append(("push_duration", .string(String(stream.durationMs ?? 0)))) }
        fields.append(("t", .integer(t)))
        fields.append(("sign", .string(Self.sign(key: sender.key, t: t))))
        return JSONValue.object(fields.map(JSONValue.Member.init)).text
    }

    static func sign(key: String, t: Int64) -> String { SecretText.hex(Insecure.MD5.hash(data: Array("\(key)\(t)".utf8))) }

    /// Without the port.
    private static func host(_ address: String) -> String {
        if address.hasPrefix("["), let end = address.firstIndex(of: "]") { return String(address.dropFirst()[..<end]) }
        let parts = address.split(separator: ":", omittingEmptySubsequences: false)
        return parts.count == 2 ? String(parts[0]) : address
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
