import Crypto
import Rooms
import Support

/// An event in a Tencent Cloud callback's format, for back ends written for those. Pure.
///
/// Common fields: the stream; `t`, the notice's expiry in seconds since 1970; `sign`, MD5 of key and `t`; `event_type`.
protocol TencentCallback {
    var stream: StreamPath { get }
    /// The fields of this kind beyond the common ones, including `event_type`.
    func fields(_ sender: WebhookRequest.Sender) -> [(String, JSONValue)]
}

extension TencentCallback {
    /// Time from sending to a notice's expiry.
    package static var lifetimeSeconds: Int64 { 600 }

    package func body(_ sender: WebhookRequest.Sender, atSeconds: Int64) -> String {
        let t = atSeconds + Self.lifetimeSeconds
        var fields: [(String, JSONValue)] = [
            // This server has no accounts.
            ("appid", 0), ("app", .string(sender.domain)), ("appname", .string(self.stream.app)),
            ("stream_id", .string(self.stream.name)), ("channel_id", .string(self.stream.name)),
        ]
        fields += self.fields(sender)
        fields.append(("t", .integer(t)))
        fields.append(("sign", .string(TencentNotice.sign(key: sender.key, t: t))))
        return JSONValue.object(fields.map(JSONValue.Member.init)).text
    }
}

extension TencentNotice {
    /// The events to which one of Tencent's callbacks corresponds.
    static let kinds: Set<RoomEvent.Kind> = [
        .streamBegin, .streamEnd, .recordStarted, .recordFinished, .recordFailed, .recordEnded, .snapshotTaken, .relayStarted,
        .relayConnected, .relayInterrupted, .relayStopped,
    ]

    static func sign(key: String, t: Int64) -> String { SecretText.hex(Insecure.MD5.hash(data: Array("\(key)\(t)".utf8))) }

    /// The callback that corresponds to the event. Throws when there is none, or the event's data is incomplete.
    static func callback(for event: RoomEvent) throws(WebhookBodyError) -> any TencentCallback {
        let details: EventDetails?
        do throws(EventDataError) {
            details = try event.details()
        } catch {
            throw WebhookBodyError(description: error.description)
        }
        return switch details {
        case .push(let push)?: TencentNotice(event, push)
        case .recording(let recording)?: TencentRecordNotice(event, recording)
        case .snapshot(let picture)?: TencentSnapshotNotice(picture)
        case .relay(let link)?: TencentRelayNotice(event, link)
        case nil: throw WebhookBodyError(description: "\(event.kind.rawValue) has no counterpart among Tencent's callbacks")
        }
    }
}
