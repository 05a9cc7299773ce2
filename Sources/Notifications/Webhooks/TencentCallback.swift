import Crypto
import Rooms
import Support

/// An event in a Tencent Cloud callback's format, for back ends written for those. Pure.
///
/// Common fields: the stream; `t`, the delivery's expiry in seconds since 1970; `sign`, MD5 of key and `t`; `event_type`.
protocol TencentCallback {
    var stream: StreamPath { get }
    /// The fields of this kind beyond the common ones, including `event_type`.
    func fields(_ sender: WebhookSender, atSeconds: Int64) -> [(String, JSONValue)]
}

extension TencentCallback {
    /// Time from sending to a delivery's expiry.
    package static var lifetimeSeconds: Int64 { 600 }

    static func sign(key: String, t: Int64) -> String { SecretText.hex(Insecure.MD5.hash(data: Array("\(key)\(t)".utf8))) }

    package func body(_ sender: WebhookSender, atSeconds: Int64) -> String {
        let t = atSeconds + Self.lifetimeSeconds
        var fields: [(String, JSONValue)] = [
            // This server has no accounts.
            ("appid", 0), ("app", .string(sender.domain)), ("appname", .string(self.stream.app)),
            ("stream_id", .string(self.stream.name)), ("channel_id", .string(self.stream.name)),
        ]
        fields += self.fields(sender, atSeconds: atSeconds)
        fields.append(("t", .integer(t)))
        fields.append(("sign", .string(Self.sign(key: sender.key, t: t))))
        return JSONValue.object(fields.map(JSONValue.Member.init)).text
    }
}
