import Crypto
package import HTTPServer
import HTTPTypes
package import Listening
package import Logging
package import NIOCore
package import RoomRegistry
package import Rooms
import Support
import Synchronization

/// Writes the audit trail's lines of calls, and the log's lines of refused ones. Any thread.
///
/// The API and the console's logins share one, and with it the limit for lines about failed calls.
///
/// A call that changes the store has its line in the change's transaction (``AuditedCall``). All other lines are written after the answer.
package final class Auditor: Sendable {
    private let registry: RoomRegistry
    private let counters: ServerCounters
    private let log: Logger
    private let lines = CountedLines<String>()
    private let pace: Mutex<FailurePace>

    package init(_ registry: RoomRegistry, _ counters: ServerCounters, log: Logger) {
        self.registry = registry
        self.counters = counters
        self.log = log
        self.pace = Mutex(FailurePace(nowNs: NIODeadline.now().uptimeNanoseconds))
    }

    /// Begins a call. `members` are its path's parameters.
    static func begin(
        _ route: APIRoute, _ members: [JSONValue.Member], _ headers: HTTPFields, _ client: SocketAddress?, requestID: String
    ) -> AuditedCall? {
        guard route.isAudited else { return nil }
        var line = AuditLine(route.name)
        line.address = client?.ipAddress ?? ""
        line.via = AuditTool(headers)
        line.requestID = Self.shortened(requestID)
        func value(_ name: String) -> String? { members.first { $0.name == name }.map { Self.shortened($0.value.shown) } }
        line.roomID = value("roomId")
        if let app = value("app"), let name = value("name") { line.stream = "\(app)/\(name)" }
        line.object = Self.objects.lazy.compactMap { name, word in value(name).map { "\(word)/\($0)" } }.first
        return AuditedCall(line)
    }

    /// The path's parameters that name an object, and the object's kind in the trail.
    private static let objects: [(String, String)] = [
        ("userId", "user"), ("sessionId", "session"), ("tokenId", "token"), ("recordingId", "recording"), ("snapshotId", "snapshot"),
        ("linkId", "link"), ("deliveryId", "delivery"), ("webhookId", "webhook"), ("gatheringId", "gathering"),
        ("node", "node"),
    ]

    /// Adds the user and the stream that the call's body names.
    static func addThings(to line: inout AuditLine, from values: InputValues) {
        if line.object == nil, let user = values.text("userId") { line.object = "user/\(user)" }
        if line.stream == nil, let stream = values.stream { line.stream = "\(stream)" }
    }

    private static func shortened(_ text: String) -> String { text.shortened(toBytes: AuditLine.longest) }

    func succeeded(_ call: AuditedCall?, _ route: APIRoute) {
        guard let call else { return }
        call.update { $0.status = $0.status == 0 ? route.success.status.code : $0.status }
        self.registry.ended(call)
    }

    /// Logs a refusal, whether the call is audited or not. `caller` is the valid token, if there was one.
    func failed(
        _ call: AuditedCall?, _ route: APIRoute, _ error: APIError, _ caller: APIToken?, _ headers: HTTPFields, _ client: SocketAddress?,
        requestID: String
    ) async {
        await self.failed(call, route.name, error, caller, secret: Authentication.secret(headers), client, requestID: requestID)
    }

    /// Adds a line for a login to the console or a logout, which are not calls of the API: `name` takes the place of an operationId. `secret`: the
    /// token that the caller sent. `refusal`: nil on success.
    package func login(
        _ name: String, _ token: APIToken?, secret: String? = nil, refusal: APIError? = nil, from client: SocketAddress?, requestID: String
    ) async {
        var line = AuditLine(name)
        line.address = client?.ipAddress ?? ""
        line.via = .console
        line.requestID = Self.shortened(requestID)
        line.tokenID = token?.id
        line.token = token?.name
        line.status = 200
        let call = AuditedCall(line)
        guard let refusal else { return self.registry.ended(call) }
        await self.failed(call, name, refusal, token, secret: secret, client, requestID: requestID)
    }

    private func failed(
        _ call: AuditedCall?, _ name: String, _ error: APIError, _ caller: APIToken?, secret: String?, _ client: SocketAddress?,
        requestID: String
    ) async {
        var token: (id: Int64?, name: String?, hash: String?) = (caller?.id, caller?.name, nil)
        let isRefused = [.unauthorized, .forbidden, .rateLimited].contains(error.kind)
        let isLogged = isRefused && self.lines.pass(error.kind.rawValue, from: HostKey.of(client), nowMs: LoopSweeper.nowMs)
        let isWritten = call == nil ? false : self.mayWrite(HostKey.of(client))
        if call != nil, !isWritten { self.counters.update { $0.auditLinesHeld += 1 } }
        guard isLogged || isWritten else { return }
        if error.kind == .unauthorized, let secret {
            // A revoked token still has its name.
            if let known = try? await self.registry.tokenName(secret: secret) { token = (known.id, known.name, nil) }
            if token.name == nil { token.hash = SecretText.hex(SHA256.hash(data: Array(secret.utf8)).prefix(4)) }
        }
        if isLogged { self.note(name, error, token, client, requestID) }
        guard isWritten, let call else { return }
        call.update { line in
            line.result = error.kind.rawValue
            line.status = error.status.code
            line.tokenID = line.tokenID ?? token.id
            line.token = line.token ?? token.name
            line.tokenHash = token.hash
            (line.before, line.after) = (nil, nil)
        }
        self.registry.ended(call)
    }

    private func mayWrite(_ caller: HostKey) -> Bool {
        let nowNs = NIODeadline.now().uptimeNanoseconds
        return self.pace.withLock { $0.acquire(caller, nowNs: nowNs) }
    }

    private func note(
        _ call: String, _ error: APIError, _ token: (id: Int64?, name: String?, hash: String?), _ client: SocketAddress?,
        _ requestID: String
    ) {
        var metadata: Logger.Metadata = [
            "call": "\(call)", "status": "\(error.status.code)", "remote": "\(client?.ipAddress ?? "unknown")", "request": "\(requestID)",
        ]
        if let name = token.name { metadata["token"] = "\(name)" }
        if let hash = token.hash { metadata["tokenHash"] = "\(hash)" }
        self.log.warning("An API call was refused", metadata: metadata)
    }

    /// Logs how many refused calls had no line, by address and kind; call once a second, and at the end with nil.
    package func report(nowMs: Int64?) {
        for held in self.lines.popHeld(nowMs: nowMs) {
            var metadata: Logger.Metadata = ["reason": "\(held.kind)", "calls": "\(held.count)"]
            if let host = held.host { metadata["remote"] = "\(host)" }
            self.log.warning("More API calls were refused", metadata: metadata)
        }
    }
}

extension AuditTool {
    /// Derives the tool from the kind of credential: a browser that is logged in sends its cookie and no token.
    init(_ headers: HTTPFields) {
        if headers[.authorization] == nil, headers[.cookie] != nil {
            self = .console
        } else {
            self = headers[.userAgent] == Self.commandAgent ? .cli : .api
        }
    }
}

/// Limits the audit trail's lines of failed calls, per address and in total. A value without a clock; `nowNs` is monotonic.
struct FailurePace {
    private var all: TokenBucket
    private var callers: [HostKey: TokenBucket] = [:]

    /// Lines per second, and the burst.
    static let rate = (all: 20.0, caller: 1.0)
    static let burst = (all: 400.0, caller: 60.0)
    static let mostCallers = 1_000

    init(nowNs: UInt64) { self.all = TokenBucket(rate: Self.rate.all, burst: Self.burst.all, nowNs: nowNs) }

    mutating func acquire(_ caller: HostKey, nowNs: UInt64) -> Bool {
        if self.callers.count >= Self.mostCallers, self.callers[caller] == nil {
            for (known, var bucket) in self.callers where bucket.isFull(nowNs: nowNs) { self.callers[known] = nil }
            if self.callers.count >= Self.mostCallers { self.callers.removeAll() }
        }
        let fresh = TokenBucket(rate: Self.rate.caller, burst: Self.burst.caller, nowNs: nowNs)
        // The caller's own limit first, so that one caller does not use up the shared one.
        guard self.callers[caller, default: fresh].acquire(nowNs: nowNs).isAllowed else { return false }
        return self.all.acquire(nowNs: nowNs).isAllowed
    }
}
