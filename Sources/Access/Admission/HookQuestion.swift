internal import NIOCore
internal import RTMP
import Support

/// The body of a hook's question or notice. A value.
struct HookQuestion {
    /// JSON; the members are in alphabetical order.
    let body: [UInt8]

    /// `known`: whose values the hook does not get. `reason`: why the publish or play ended; in notices only. `atMs` is milliseconds since 1970.
    init(
        _ action: String, _ request: AdmissionRequest, _ pass: AdmissionPass, hiding known: CredentialParameters,
        reason: CloseReason? = nil, atMs: Int64 = WallClock.ms
    ) {
        let query = known.redactOwn(request.address.query)
        var members: [JSONValue.Member] = []
        members.add("action", action)
        members.add("app", request.asked.app)
        members.add("client_id", "\(request.session)")
        members.add("ip", request.remote?.ipAddress ?? "")
        // SRS's word for it is `stream`; the API and the events say `name`.
        members.add("name", request.asked.name)
        members.add("param", query.isEmpty ? "" : "?\(query)")
        members.add("reason", reason?.rawValue)
        members.add("room", pass.room)
        members.add("session", "\(request.session)")
        members.add("stream", request.asked.name)
        members.add("time", Instant.secondsText(atMs))
        members.add("user", pass.user)
        // By this server: the same in the notice of the end as in the question, which had no answer yet.
        members.append(JSONValue.Member(name: "verified", value: .bool(pass.isVerified && !pass.isVerifiedByHook)))
        var body: [UInt8] = []
        JSONValue.object(members).write(to: &body)
        self.body = body
    }
}
