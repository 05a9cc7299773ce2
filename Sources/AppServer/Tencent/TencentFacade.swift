import Access
import Apps
import HTTPServer
import HTTPTypes
import Hummingbird
import Listening
import NIOCore
import RoomRegistry
import Rooms
import ServerConfiguration
import Streaming
import Support
import Synchronization

/// The cloud's live API (3.0, `live`, version 2018-08-01) at `/`: an existing back end changes its endpoint and its key. Any thread.
///
/// The header `X-TC-Action` or the parameter `Action` distinguishes requests from the console's. Answers have status 200 and the vendor's envelope,
/// refusals too. ``TencentSignature`` checks the caller, ``TencentAction`` reads the action.
final class TencentFacade: HTTPPart {
    private let services: AppServices
    private let limits: Mutex<Limits>

    private struct Limits {
        var calls: PaceTable<String>
        var failures = FailureBuckets()
        /// Ids of keys with at least one correct signature.
        var proven: Set<String> = []
    }

    init(_ services: AppServices) {
        self.services = services
        let rate = Double(services.config.api.rateLimit)
        self.limits = Mutex(Limits(calls: PaceTable(rate: rate, burst: 2 * rate)))
    }

    func door(_ request: Request) -> Door? {
        guard request.uri.path == "/" else { return nil }
        let isCall = TencentRequest.claims(method: request.method.rawValue, query: request.uri.query) { name in
            HTTPField.Name(name).flatMap { request.headers[$0] }
        }
        return isCall ? .cloud : nil
    }

    func respond(to request: Request, _ context: APIContext) async -> Response {
        var value: JSONValue
        do throws(TencentError) {
            value = TencentAnswer.success(try await self.answer(request, context), requestID: context.id)
            self.count("")
        } catch {
            value = TencentAnswer.failure(error, requestID: context.id)
            self.count(error.code.rawValue)
        }
        var bytes: [UInt8] = []
        value.write(to: &bytes)
        return APIAnswer(.ok, type: TencentAnswer.contentType, ByteBuffer(bytes: bytes)).response(to: request)
    }

    private func count(_ code: String) { self.services.counters.update { $0.tencentCalls[code, default: 0] += 1 } }

    private func answer(_ request: Request, _ context: APIContext) async throws(TencentError) -> [JSONValue.Member] {
        let clients = self.services.connections.clients
        let client = clients.client(peer: clients.peer(of: context.channel), request.headers)
        guard let client, self.services.config.apps.tencentFrom.contains(address: client) else {
            throw self.refused(
                TencentError(
                    .unauthorized,
                    "This address may not call this API; the server's setting apps.tencent.from lists the addresses that may."), client, nil
            )
        }
        let received = try await self.received(request, context)
        let source = HostKey.of(client)
        let signature: TencentSignature
        let key: AccessKey
        do throws(TencentError) {
            (signature, key) = try await self.caller(received, source)
        } catch {
            throw self.refused(error, client, nil)
        }
        guard self.mayCall(key) else {
            throw TencentError(
                .requestLimit,
                "More than \(self.services.config.api.rateLimit) calls a second with this key; the server's setting api.rateLimit is the limit."
            )
        }
        let action: TencentAction
        do throws(TencentError) {
            action = try TencentAction(signature.action, try signature.fields(received), domains: self.services.config.apps.tencentDomains)
            guard key.role >= action.role else {
                throw TencentError(
                    .unauthorized, "This action needs a key with role \(action.role.rawValue); this key has role \(key.role.rawValue).")
            }
        } catch {
            if TencentAction.isChange(named: signature.action) {
                let call = self.auditedCall(signature.action, key, client, context.id)
                call.update { $0.result = error.code.rawValue }
                self.services.rooms.ended(call)
            }
            throw error.code == .unauthorized ? self.refused(error, client, key) : error
        }
        return try await self.audited(action, signature.action, key, client, context.id)
    }

    // MARK: - Callers

    private func received(_ request: Request, _ context: APIContext) async throws(TencentError) -> TencentRequest {
        guard let method = TencentRequest.Method(rawValue: request.method.rawValue) else {
            throw TencentError(.invalid, "The method is \(request.method.rawValue.prefix(20)); expected GET or POST.")
        }
        let body: ByteBuffer
        do throws(APIError) {
            body = try await BodyReader(request, context, self.services.memory.ledger, atMost: TencentRequest.longestBody).collect()
        } catch {
            guard error.kind == .tooLarge else { throw TencentError(.invalid, error.message) }
            throw TencentError(.requestSize, "The body has more than \(TencentRequest.longestBody) bytes.")
        }
        return TencentRequest(
            method: method, host: request.head.authority ?? "", query: request.uri.query ?? "",
            headers: request.headers.map { ($0.name.canonicalName, $0.value) }, body: Array(body.readableBytesView))
    }

    /// Throttles an address after wrong keys and signatures, as after wrong tokens. A key that has signed correctly before is still checked, so that
    /// others behind the same address cannot shut it out.
    private func caller(_ request: TencentRequest, _ source: HostKey) async throws(TencentError) -> (TencentSignature, AccessKey) {
        let nowNs = NIODeadline.now().uptimeNanoseconds
        let signature = try TencentSignature(request)
        let wait = self.limits.withLock { $0.failures.wait(source, nowNs: nowNs) }
        let tooMany = wait.map {
            TencentError(.requestLimit, "Too many wrong signatures came from this address; try again in \(max(1, Int($0.rounded(.up)))) s.")
        }
        if let tooMany, !self.limits.withLock({ $0.proven.contains(signature.keyID) }) { throw tooMany }
        do throws(TencentError) {
            guard let (key, secret) = try await self.key(signature.keyID) else {
                self.limits.withLock { _ = $0.proven.remove(signature.keyID) }
                throw TencentError(.secretIDNotFound, "The SecretId is unknown or revoked.")
            }
            try signature.check(request, secret: secret, nowSeconds: WallClock.seconds)
            self.limits.withLock { _ = $0.proven.insert(signature.keyID) }
            return (signature, key)
        } catch {
            // Only these two count as guesses, unlike a wrong clock.
            guard [.secretIDNotFound, .signatureWrong].contains(error.code) else { throw error }
            if let tooMany { throw tooMany }
            self.limits.withLock { $0.failures.failed(source, nowNs: nowNs) }
            throw error
        }
    }

    private func key(_ id: String) async throws(TencentError) -> (AccessKey, String)? {
        do {
            return try await self.services.rooms.accessKey(id).map { ($0.key, $0.secret) }
        } catch {
            throw TencentError(.failed, "The server's store cannot be read.")
        }
    }

    private func mayCall(_ key: AccessKey) -> Bool {
        let nowNs = NIODeadline.now().uptimeNanoseconds
        return self.limits.withLock { $0.calls.acquire(key.id, nowNs: nowNs) }.isAllowed
    }

    private func refused(_ error: TencentError, _ client: SocketAddress?, _ key: AccessKey?) -> TencentError {
        var metadata: [String: String] = ["code": error.code.rawValue, "remote": client?.ipAddress ?? "unknown"]
        if let key { metadata["key"] = key.name }
        self.services.noteRefusal("A call of the cloud's API was refused", metadata)
        return error
    }

    // MARK: - Actions

    /// Writes a change to the audit trail.
    private func audited(
        _ action: TencentAction, _ name: String, _ key: AccessKey, _ client: SocketAddress, _ requestID: String
    ) async throws(TencentError) -> [JSONValue.Member] {
        guard action.isChange else { return try await self.answer(action, Actor(key.name)) }
        let call = self.auditedCall(name, key, client, requestID)
        call.update { $0.stream = action.stream?.description }
        do throws(TencentError) {
            let outcome: Result<[JSONValue.Member], TencentError> = await AuditedCall.$current.withValue(call) {
                do throws(TencentError) {
                    return .success(try await self.answer(action, Actor(key.name)))
                } catch {
                    return .failure(error)
                }
            }
            let members = try outcome.get()
            self.services.rooms.ended(call)
            return members
        } catch {
            call.update { $0.result = error.code.rawValue }
            self.services.rooms.ended(call)
            throw error
        }
    }

    private func auditedCall(_ name: String, _ key: AccessKey, _ client: SocketAddress, _ requestID: String) -> AuditedCall {
        var line = AuditLine(name)
        line.via = .tencent
        line.address = client.ipAddress ?? ""
        line.requestID = String(requestID.prefix(64))
        line.token = key.name
        line.object = "key/\(key.id)"
        line.status = 200
        return AuditedCall(line)
    }

    private func answer(_ action: TencentAction, _ actor: Actor) async throws(TencentError) -> [JSONValue.Member] {
        do {
            return try await self.run(action, actor)
        } catch {
            throw Self.explained(error)
        }
    }

    private static func explained(_ error: any Error) -> TencentError {
        if let error = error as? TencentError { return error }
        guard let error = error as? RegistryError else {
            return TencentError(.failed, "The server failed to carry out the call; its log has the details.")
        }
        switch error {
        case .storeFailed, .storeGone: return TencentError(.failed, "The server's store failed; its log has the details.")
        case .diskFull: return TencentError(.unavailable, "The server's disk is almost full, so nothing new is stored.")
        case .invalid(let field): return TencentError(.invalidValue, "\(field)")
        case .wrongState(let id, let state, _, _):
            return TencentError(.impossible, "Room \(id) is \(state.rawValue), which does not allow this.")
        default: return TencentError(.impossible, "This is not possible now.")
        }
    }

    private func run(_ action: TencentAction, _ actor: Actor) async throws -> [JSONValue.Member] {
        let lists = TencentLists(services: self.services)
        switch action {
        case .onlineList(let app, let name, let page):
            let stream = await self.stream(app, name)
            return try await lists.online(app: stream.app, name: stream.name, page)
        case .state(let name):
            let path = await self.services.rooms.stream(named: name)
            return [.init(name: "StreamState", value: .string(try await lists.state(of: path).rawValue))]
        case .drop(let name):
            let path = await self.services.rooms.stream(named: name)
            _ = await self.services.control.drop(path, by: actor)
            return []
        case .forbid(let path, let untilMs, let reason):
            let now = self.services.rooms.now
            let until = untilMs ?? now + StreamBan.defaultMs
            guard until > now else { throw TencentError(.invalidValue, "ResumeTime is past.") }
            guard until - now <= StreamBan.longestMs else { throw TencentError(.invalidValue, "ResumeTime is more than 90 days away.") }
            _ = try await self.services.rooms.forbid(path, untilMs: until, reason: reason, by: actor)
            return []
        case .resume(let path):
            do throws(RegistryError) {
                _ = try await self.services.rooms.resume(path, by: actor)
            } catch {
                // As with the vendor: the stream is already allowed.
                guard case .notForbidden = error else { throw error }
            }
            return []
        case .history(var history, let page, let list):
            (history.app, history.name) = await self.stream(history.app, history.name)
            return try await lists.history(history, page, list)
        case .forbidList(let name, let page): return try await lists.forbidden(name: await self.stream(nil, name).name, page)
        case .pushInfo(let app, let page): return try await lists.pushInfo(app: app, page)
        }
    }

    /// What a list is asked for, with the stream's own name in place of its device's.
    private func stream(_ app: String?, _ name: String?) async -> (app: String?, name: String?) {
        guard let name else { return (app, nil) }
        let asked = StreamPath(app: app ?? "live", name: name)
        let path = await self.services.rooms.stream(named: asked)
        return path == asked ? (app, name) : (path.app, path.name)
    }
}
