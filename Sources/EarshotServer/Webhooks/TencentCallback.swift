import Crypto
import Rooms

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An event in the shape of one of Tencent Cloud's callbacks, so that a back end made for those needs no change. Pure.
///
/// Common to all: the stream; `t`, until when the notice is good, in seconds since 1970; `sign`, MD5 of key and `t`; `event_type`.
protocol TencentCallback {
    /// Throws when the event is of another kind, or its data lacks what the callback tells.
    init(_ event: RoomEvent) throws(WebhookBodyError)

    var app: String { get }
    var name: String { get }
    /// What this kind tells beyond what is common to all, its `event_type` included.
    func fields(_ sender: WebhookRequest.Sender) -> [(String, JSONValue)]
}

extension TencentCallback {
    /// How long a notice is good, from when it is sent.
    static var lifetimeSeconds: Int64 { 600 }

    func body(_ sender: WebhookRequest.Sender, atSeconds: Int64) -> String {
        let t = atSeconds + Self.lifetimeSeconds
        var fields: [(String, JSONValue)] = [
            // There are no accounts here.
            ("appid", 0), ("app", .string(sender.domain)), ("appname", .string(self.app)), ("stream_id", .string(self.name)),
            ("channel_id", .string(self.name)),
        ]
        fields += self.fields(sender)
        fields.append(("t", .integer(t)))
        fields.append(("sign", .string(TencentNotice.sign(key: sender.key, t: t))))
        return JSONValue.object(fields.map(JSONValue.Member.init)).text
    }

    /// What an event carries.
    static func data<Data: Decodable>(of event: RoomEvent, as type: Data.Type = Data.self) throws(WebhookBodyError) -> Data {
        do {
            return try JSONDecoder().decode(type, from: .init(event.data.utf8))
        } catch {
            throw WebhookBodyError(description: "the data of event \(event.id) lacks what the callback tells")
        }
    }
}

extension TencentNotice {
    static func sign(key: String, t: Int64) -> String { SecretText.hex(Insecure.MD5.hash(data: Array("\(key)\(t)".utf8))) }

    /// The callback that is this event's counterpart.
    static func callback(for event: RoomEvent) throws(WebhookBodyError) -> any TencentCallback {
        switch event.kind {
        case .recordStarted, .recordFinished, .recordFailed, .recordEnded: try TencentRecordNotice(event)
        case .snapshotTaken: try TencentSnapshotNotice(event)
        case .relayStarted, .relayConnected, .relayInterrupted, .relayStopped: try TencentRelayNotice(event)
        default: try TencentNotice(event)
        }
    }
}
