import Crypto
package import Rooms
import Support

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An event in a Tencent Cloud callback's format. Back ends written for those need no change. Pure.
///
/// Common fields: the stream; `t`, the notice's expiry in seconds since 1970; `sign`, MD5 of key and `t`; `event_type`.
protocol TencentCallback {
    /// Throws when the event is of another kind or its data is incomplete.
    init(_ event: RoomEvent) throws(WebhookBodyError)

    var app: String { get }
    var name: String { get }
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
            ("appid", 0), ("app", .string(sender.domain)), ("appname", .string(self.app)), ("stream_id", .string(self.name)),
            ("channel_id", .string(self.name)),
        ]
        fields += self.fields(sender)
        fields.append(("t", .integer(t)))
        fields.append(("sign", .string(TencentNotice.sign(key: sender.key, t: t))))
        return JSONValue.object(fields.map(JSONValue.Member.init)).text
    }

    /// Decodes the event's data.
    package static func data<Data: Decodable>(of event: RoomEvent, as type: Data.Type = Data.self) throws(WebhookBodyError) -> Data {
        do {
            return try JSONDecoder().decode(type, from: .init(event.data.utf8))
        } catch {
            throw WebhookBodyError(description: "the data of event \(event.id) lacks a field that the callback needs")
        }
    }
}

extension TencentNotice {
    /// The events to which one of Tencent's callbacks corresponds.
    static let kinds: Set<RoomEvent.Kind> = [
        .streamBegin, .streamEnd, .recordStarted, .recordFinished, .recordFailed, .recordEnded, .snapshotTaken, .relayStarted,
        .relayConnected, .relayInterrupted, .relayStopped,
    ]

    static func sign(key: String, t: Int64) -> String { SecretText.hex(Insecure.MD5.hash(data: Array("\(key)\(t)".utf8))) }

    /// The callback that corresponds to the event.
    package static func callback(for event: RoomEvent) throws(WebhookBodyError) -> any TencentCallback {
        switch event.kind {
        case .recordStarted, .recordFinished, .recordFailed, .recordEnded: try TencentRecordNotice(event)
        case .snapshotTaken: try TencentSnapshotNotice(event)
        case .relayStarted, .relayConnected, .relayInterrupted, .relayStopped: try TencentRelayNotice(event)
        default: try TencentNotice(event)
        }
    }
}
