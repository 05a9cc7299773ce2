package import Logging
internal import NIOCore
package import Outbound
internal import RTMP
internal import Rooms
package import ServerConfiguration
package import Support

/// Admits publishers and viewers by credential, address and hook. Pure except for the throttle and the hooks' requests; any thread.
///
/// A credential in the query is always checked: a wrong one is refused even from an address that needs none. Without one, the address must be in
/// `access.publishFrom` or `access.playFrom`, or a hook must decide. A hook, if set, decides last, on every request that passes the other checks.
/// Expiry is checked here only: a credential that expires later ends nothing. ``CredentialThrottle`` slows down addresses that show wrong credentials
/// too often.
package struct AdmissionRules: Sendable {
    private let config: Live<ServerConfig>
    private let liveKeys: Live<KeyRing>
    private let hooks: AuthorizationHooks
    private let throttle: CredentialThrottle

    package init(_ config: Live<ServerConfig>, _ keys: Live<KeyRing>, outbound: OutboundClient, log: Logger) {
        self.init(config, keys, outbound: outbound, throttle: CredentialThrottle(), log: log)
    }

    init(_ config: Live<ServerConfig>, _ keys: Live<KeyRing>, outbound: OutboundClient, throttle: CredentialThrottle, log: Logger) {
        self.throttle = throttle
        self.config = config
        self.liveKeys = keys
        self.hooks = AuthorizationHooks(config, keys, outbound: outbound, log: log)
    }

    private var keys: KeyRing { self.liveKeys.current }
    /// Where this server's credentials are in a query.
    package var parameters: CredentialParameters { CredentialParameters(self.config.current.credentials) }

    /// Checks address and credential. `nowSeconds` is the wall clock, since 1970.
    package func check(_ request: AdmissionRequest, nowSeconds: Int64) -> Result<AdmissionPass, AdmissionRefusal> {
        Result { () throws(AdmissionRefusal) in try self.pass(request, nowSeconds) }
    }

    private func pass(_ request: AdmissionRequest, _ nowSeconds: Int64) throws(AdmissionRefusal) -> AdmissionPass {
        let address = request.address
        let query = QueryParameters(address.query)
        let known = self.parameters
        let parameters = known.redact(address.query)
        let credential = try Credential(query, known)
        guard let credential else { return try self.openPass(request, query, parameters) }
        // Digests the path and the whole query, not the credential alone, so a known credential counts as known only with the same other parameters.
        let digest = CredentialThrottle.digest("\(address.path)?\(address.query)")
        let source = HostKey.of(request.remote)
        if let wait = self.throttle.wait(source, digest) {
            throw AdmissionRefusal(
                reason: .credentialThrottled,
                message: "Too many wrong credentials came from this address; this one was not checked. Try again in"
                    + " \(max(1, Int(wait.rounded(.up)))) s.",
                retrySeconds: max(1, Int(wait.rounded(.up))))
        }
        do throws(AdmissionRefusal) {
            let pass = try self.verified(credential, request, nowSeconds, parameters)
            self.throttle.succeeded(digest)
            return pass
        } catch {
            // An expired credential is no guess.
            if error.reason == .credentialWrong { self.throttle.failed(source) }
            throw error
        }
    }

    private func verified(
        _ credential: Credential, _ request: AdmissionRequest, _ nowSeconds: Int64, _ parameters: String
    ) throws(AdmissionRefusal) -> AdmissionPass {
        let address = request.address
        switch credential {
        case .txSecret(let secret, let time):
            let keys = request.action == .publish ? self.keys.publishKeys : self.keys.playKeys
            func pass(until seconds: Int64) -> AdmissionPass {
                AdmissionPass(identity: "signed \(address.path)", rank: seconds, user: nil, isVerified: true, parameters: parameters)
            }
            do throws(AdmissionRefusal) {
                return pass(until: try TxSecret.check(secret, txTime: time, streamName: address.name, keys: keys, nowSeconds: nowSeconds))
            } catch {
                throw error.late(error.reason == .credentialExpired ? time.flatMap(TxSecret.seconds).map(pass) : nil)
            }
        case .token(let text):
            let token = try AccessToken(signed: text, keys: self.keys)
            do throws(AdmissionRefusal) {
                try token.checkTimes(nowSeconds: nowSeconds)
            } catch {
                let isLate = error.reason == .credentialExpired && (try? token.check(request.action, address)) != nil
                throw error.late(isLate ? Self.pass(token, address, parameters) : nil)
            }
            try token.check(request.action, address)
            return Self.pass(token, address, parameters)
        }
    }

    private static func pass(_ token: AccessToken, _ address: StreamAddress, _ parameters: String) -> AdmissionPass {
        let identity: String
        if let subject = token.sub, !subject.isEmpty {
            identity = "user \(subject)"
        } else if let room = token.room {
            identity = "jwt room \(room)"
        } else {
            identity = "jwt stream \(address.path)"
        }
        return AdmissionPass(
            identity: identity, user: token.sub.flatMap { RoomID.isID($0) ? $0 : nil }, room: token.room, role: token.role,
            isVerified: true, parameters: parameters)
    }

    /// Admits a request without a credential, by its address or for the hook to decide.
    private func openPass(
        _ request: AdmissionRequest, _ query: QueryParameters, _ parameters: String
    ) throws(AdmissionRefusal) -> AdmissionPass {
        let remote = request.remote?.ipAddress ?? "an unknown address"
        let isOpen = request.remote.map { self.open(for: request.action).contains(address: $0) } ?? false
        guard isOpen || self.hasHook(request.action) else { throw self.missing(request.action, remote) }
        // Without a query the address is the identity; with one, the same device may come back from another network.
        let identity = request.address.query.isEmpty ? "address \(remote)" : "query \(request.address.query)"
        var pass = AdmissionPass(
            identity: identity, user: (query.all("user") + query.all("uid")).first { RoomID.isID($0) }, isVerified: false,
            parameters: parameters)
        pass.needsHook = !isOpen
        return pass
    }

    /// Whether the query has a credential: this server's, or possibly the hook's. If so, the address alone does not admit the request.
    package func showsCredential(_ query: String, _ action: AdmissionRequest.Action) -> Bool {
        self.parameters.own(of: query, beside: "").hasCredential || (self.hasHook(action) && !query.isEmpty)
    }

    private func open(for action: AdmissionRequest.Action) -> [CIDR] {
        switch action {
        case .publish: self.config.access.publishFrom
        case .play: self.config.access.playFrom
        }
    }

    private func missing(_ action: AdmissionRequest.Action, _ remote: String) -> AdmissionRefusal {
        let what = action == .publish ? "Publishing" : "Playing"
        let setting = action == .publish ? "access.publishFrom" : "access.playFrom"
        return AdmissionRefusal(
            reason: .credentialMissing,
            message: "\(what) from \(remote) needs a credential in the query behind the stream's name: "
                + self.parameters.tokens.prefix(1).map { "?\($0)=…, or " }.joined() + "?txSecret=…&txTime=…."
                + " A user name and password are not read. (The server's setting \(setting) names the networks that need none.)")
    }

    /// Whether a hook is set for this action, so that `ask` must be called too.
    package func hasHook(_ action: AdmissionRequest.Action) -> Bool { self.hooks.url(action) != nil }

    /// Whether a hook must decide about a request with this pass.
    package func mustAsk(_ action: AdmissionRequest.Action, _ pass: AdmissionPass) -> Bool { pass.needsHook || self.hasHook(action) }

    /// Asks the authorisation hook; takes at most `hooks.timeout`. ``AuthorizationHooks`` defines its answers. Not for an event loop's own
    /// thread; await it in a task.
    package func ask(_ request: AdmissionRequest, pass: AdmissionPass) async -> Result<AdmissionPass, AdmissionRefusal> {
        await self.hooks.ask(request, pass)
    }

    /// Sends on_unpublish or on_stop to the hooks, without waiting.
    package func notifyEnded(_ request: AdmissionRequest, pass: AdmissionPass, reason: CloseReason) {
        self.hooks.notifyEnded(request, pass, reason)
    }

    /// Waits until all notices so far are sent, for `limit` at most.
    package func finishReports(within limit: Duration) async { await self.hooks.finishReports(within: limit) }

    /// Notices to hooks that were dropped because the queue was full, and those that failed.
    package var lostReports: (dropped: Int, failed: Int) { self.hooks.lost }
}

/// The credential in a query, as given.
private enum Credential {
    case txSecret(String, time: String?)
    case token(String)

    /// Returns nil without a credential. Throws when there are several: a guess could be wrong in either direction.
    init?(_ query: QueryParameters, _ known: CredentialParameters) throws(AdmissionRefusal) {
        let secrets = query.all("txSecret")
        let times = query.all("txTime")
        let tokens = known.tokens.flatMap { query.all($0) }
        guard secrets.count <= 1, times.count <= 1, tokens.count <= 1, secrets.isEmpty || tokens.isEmpty else {
            throw AdmissionRefusal(
                reason: .credentialWrong,
                message: "The URL has more than one credential; expected one txSecret with one txTime, or one token.")
        }
        if let secret = secrets.first {
            self = .txSecret(secret, time: times.first)
        } else if let token = tokens.first {
            self = .token(token)
        } else if !times.isEmpty {
            // Reports half a signed URL as a mistake instead of ignoring it.
            throw AdmissionRefusal(
                reason: .credentialMissing, message: "The URL has txTime without txSecret; expected both, as txSecret=…&txTime=…")
        } else {
            return nil
        }
    }
}
