import Access
package import HTTPServer
import HTTPTypes
package import Hummingbird
import Listening
import Logging
package import NIOCore
import RoomRegistry
import Rooms
package import ServerConfiguration
import Support

/// Serves the calls of the API: authorizes, reads input, runs the handler, answers. Any thread.
package final class APIService: Sendable {
    package static let prefix = PublicAddress.apiPrefix

    private let core: APICore
    private let table: APITable
    /// By the names of their calls.
    private let served: [String: ServedRoute]
    private let limits: RateLimits
    private let authentication: Authentication
    private let idempotency: Idempotency
    private let otherMethods: @Sendable (_ path: String) -> [HTTPRequest.Method]?

    /// `sessions`: logins of browsers, each of which represents a token. `otherMethods`: those of a path outside `/api/v1` that the server answers
    /// itself; nil when there is no such path.
    package init(
        _ core: APICore, _ routes: [ServedRoute], sessions: (any BrowserSessions)? = nil,
        otherMethods: @escaping @Sendable (_ path: String) -> [HTTPRequest.Method]?
    ) {
        self.core = core
        self.table = APITable(routes.map(\.route))
        self.served = Dictionary(routes.map { ($0.route.name, $0) }) { first, _ in first }
        self.limits = RateLimits(rate: core.config.api.rateLimit)
        self.authentication = Authentication(registry: core.rooms, limits: self.limits, figures: core.figures, sessions: sessions)
        self.idempotency = Idempotency(registry: core.rooms, log: core.log)
        self.otherMethods = otherMethods
    }

    private var crossOrigin: CrossOrigin { CrossOrigin(self.core.config.api.allowOrigins) }

    /// Always returns a response: errors become answers.
    package func respond(to request: Request, _ context: APIContext) async -> Response {
        let body = BodyReader(request, context, self.core.ledger)
        var headers = self.crossOrigin.headers(request.headers)
        var answer: APIAnswer
        do {
            answer = try await self.answer(request, body, context, &headers)
        } catch let error as APIError {
            answer = APIAnswer(error, requestID: context.id)
        } catch let error as RegistryError {
            if case .storeFailed(let what) = error { self.log("The store failed", what, context) }
            answer = APIAnswer(APIError(error), requestID: context.id)
        } catch let error as FieldError {
            answer = APIAnswer(APIError(error), requestID: context.id)
        } catch {
            self.log("An API call failed", "\(error)", context)
            let error = APIError(.internalServerError, .internal, "The server failed to carry out the call; its log has the details.")
            answer = APIAnswer(error, requestID: context.id)
        }
        answer.headers.append(contentsOf: headers)
        return answer.response(to: request)
    }

    /// The path pattern of the requested call, such as "/api/v1/rooms/{roomId}"; nil for no call.
    package func pattern(of request: Request) -> String? {
        let path = request.uri.path
        guard path.hasPrefix(Self.prefix), case .route(let route, _) = self.table.match(request.method, path.dropFirst(Self.prefix.count))
        else { return nil }
        return Self.prefix + route.path
    }

    private func log(_ message: Logger.Message, _ error: String, _ context: APIContext) {
        self.core.log.error(message, metadata: ["error": "\(error)", "request": "\(context.id)"])
    }

    /// Answers a call. Sets `headers`, which the answer carries even when this throws.
    private func answer(
        _ request: Request, _ body: BodyReader, _ context: APIContext, _ headers: inout HTTPFields
    ) async throws -> APIAnswer {
        let path = request.uri.path
        guard path == Self.prefix || path.hasPrefix(Self.prefix + "/") else {
            guard let methods = self.otherMethods(path), !methods.contains(request.method) else { throw Self.noSuchCall(request) }
            throw Self.noSuchMethod(request, methods)
        }
        let client = self.core.clients.client(peer: self.core.clients.peer(of: context.channel), request.headers)
        // An address without access must not learn which paths exist.
        guard case .route(let route, let members) = self.table.match(request.method, path.dropFirst(Self.prefix.count)),
            let served = self.served[route.name]
        else {
            try Self.checkAddress(client, self.core.config.access)
            if self.crossOrigin.isPreflight(request.head) { return try self.preflight(request) }
            throw self.noRoute(request)
        }
        let audited = Auditor.begin(route, members, request.headers, client, requestID: context.id)
        var caller: APIToken?
        do {
            let answer = try await AuditedCall.$current.withValue(audited) {
                // A link opens its file from any address, as a signed URL for playing does. A token beside it is checked all the same.
                if try self.hasLink(request, route, client), request.headers[.authorization] == nil {
                    return try await self.answer(served, request, body, context, nil, members)
                }
                try Self.checkAddress(client, self.core.config.access)
                guard let role = route.role else { return try await self.answer(served, request, body, context, nil, members) }
                let token = try await self.authentication.token(request.head, from: client)
                caller = token
                audited?.update { line in
                    line.tokenID = token.id
                    line.token = token.name
                    line.status = route.success.status.code
                }
                try self.checkRate(token, &headers)
                try Self.checkRole(token, role)
                return try await self.answer(served, request, body, context, token, members)
            }
            self.core.auditor.succeeded(audited, route)
            return answer
        } catch {
            await self.core.auditor.failed(audited, route, APIError(any: error), caller, request.headers, client, requestID: context.id)
            throw error
        }
    }

    /// Whether the request has a signed link, which is right then. Throws 403 for one that is wrong or expired.
    private func hasLink(_ request: Request, _ route: APIRoute, _ client: SocketAddress?) throws(APIError) -> Bool {
        guard let link = SignedLink(request, route) else { return false }
        try link.check(self.core.links, nowSeconds: WallClock.seconds) { () throws(APIError) in
            try Self.checkAddress(client, self.core.config.access)
            // Counts as a wrong token does, but not against a caller that shows one.
            guard request.headers[.authorization] == nil else { return }
            try self.authentication.checkFailures(client)
            self.authentication.failed(client)
        }
        return true
    }

    private static func checkRole(_ token: APIToken, _ role: TokenRole) throws(APIError) {
        guard token.role < role else { return }
        let message = "This call needs a token with role \(role.rawValue); this token has role \(token.role.rawValue)."
        var error = APIError(.forbidden, .forbidden, message)
        error.rule = "role \(role.rawValue)"
        throw error
    }

    /// The error for a request that matches no call.
    private func noRoute(_ request: Request) -> APIError {
        let path = request.uri.path
        return switch self.table.match(request.method, path.dropFirst(Self.prefix.count)) {
        case .route, .noSuchPath: Self.noSuchCall(request)
        case .badEncoding: APIError(FieldError("path", path, "expected percent-encoded UTF-8"))
        case .noSuchMethod(let known): Self.noSuchMethod(request, APITable.withHead(known))
        }
    }

    /// 405 with the path's methods in Allow (RFC 9110 §15.5.6).
    private static func noSuchMethod(_ request: Request, _ methods: [HTTPRequest.Method]) -> APIError {
        let allowed = methods.map(\.rawValue)
        let message = "\(request.uri.path.prefix(200)) does not support \(request.method); it supports \(allowed.joined(separator: ", "))."
        var error = APIError(.methodNotAllowed, .methodNotAllowed, message)
        error.allowed = allowed
        error.headers[.allow] = allowed.joined(separator: ", ")
        return error
    }

    /// Needs no token: browsers send none with a preflight.
    private func preflight(_ request: Request) throws(APIError) -> APIAnswer {
        let methods: [HTTPRequest.Method]
        switch self.table.match(.options, request.uri.path.dropFirst(Self.prefix.count)) {
        case .noSuchMethod(let known): methods = APITable.withHead(known)
        case .route(let route, _): methods = [route.method]
        case .noSuchPath, .badEncoding: throw Self.noSuchCall(request)
        }
        return APIAnswer(.noContent, headers: try self.crossOrigin.preflight(request.headers, methods: methods))
    }

    private func answer(
        _ served: ServedRoute, _ request: Request, _ body: BodyReader, _ context: APIContext, _ token: APIToken?,
        _ members: [JSONValue.Member]
    ) async throws -> APIAnswer {
        let route = served.route
        var values = try RequestReader.path(members, route.pathForm)
        try await route.checkReach(self.call(token, values, request, nil, context))
        values.add(try RequestReader.query(request.uri.query, route.query))
        let bytes = try await body.collect()
        if let answer = try await self.core.nodes.answer(route.home, members, request, bytes) {
            AuditedCall.current?.discard()
            return answer
        }
        if let form = route.body { values.add(try RequestReader.body(bytes, request.headers, form)) }
        AuditedCall.current?.update { Auditor.addThings(to: &$0, from: values) }
        let conditions = try Conditions(request.headers, of: route)
        if route.method != .get, !route.isConditional, let header = conditions.headerOfChange {
            throw APIError(FieldError(header, "", "this call does not support conditions; expected no \(header)"))
        }
        let call = self.call(token, values, request, conditions.room, context)
        if route.method == .post, let token, let key = try Idempotency.key(request, bytes, token), route.effect != .nothing {
            return try await self.once(key, served, call, context)
        }
        switch try await served.handle(call) {
        case .data(let data):
            let tag = route.isVersioned ? RoomTag(data) : nil
            if let tag, route.method == .get, let answer = try Self.unchanged(tag, conditions) { return answer }
            return Self.answer(route, data, tag, context)
        case .file(let file): return APIAnswer(try file.response(to: request))
        case .raw(let type, let bytes): return APIAnswer(route.success.status, type: type, bytes)
        }
    }

    private func call(
        _ token: APIToken?, _ values: InputValues, _ request: Request, _ condition: RoomCondition?, _ context: APIContext
    ) -> Call<Void> {
        Call(
            services: (), core: self.core, token: token, values: values, host: request.head.authority, condition: condition, keyed: nil,
            requestID: context.id)
    }

    /// Runs a call with an Idempotency-Key, or replays its stored answer.
    private func once(_ key: IdempotencyKey, _ served: ServedRoute, _ call: Call<Void>, _ context: APIContext) async throws -> APIAnswer {
        let route = served.route
        switch try await self.idempotency.answer(key, served, call, requestID: context.id) {
        case .fresh(let data): return Self.answer(route, data, route.isVersioned ? RoomTag(data) : nil, context)
        case .stored(let stored):
            AuditedCall.current?.discard()
            var answer = APIAnswer(.init(code: stored.status), type: "application/json", ByteBuffer(string: stored.body))
            // This server wrote the body, so it parses.
            if let body = try? JSONParser.parse(stored.body.utf8, deepest: JSONParser.deepestAnswer), let data = body["data"] {
                Self.locate(route, data, &answer)
                if route.isVersioned { answer.headers[.eTag] = RoomTag(data)?.text }
            }
            if let name = Self.replayed { answer.headers[name] = "true" }
            return answer
        }
    }

    private static let replayed = HTTPField.Name("Idempotency-Replayed")

    /// 304 when the caller has the current version, otherwise nil. Throws 412 when If-Match names another version.
    private static func unchanged(_ tag: RoomTag, _ conditions: Conditions) throws(APIError) -> APIAnswer? {
        if let tags = conditions.ifMatch, !tag.isNamed(byVersionIn: tags) {
            throw APIError.versionMismatch("If-Match does not name the room's present version.", expected: "\"\(tag.version)\"")
        }
        guard let tags = conditions.ifNoneMatch, let known = tag.named(in: tags) else { return nil }
        return APIAnswer(.notModified, headers: [.eTag: known])
    }

    // MARK: Checks

    /// Throws 403 unless `access.apiFrom` contains the client. `client` is nil when an untrusted proxy forwarded the request.
    package static func checkAddress(_ client: SocketAddress?, _ access: ServerConfig.Access) throws(APIError) {
        guard let client else {
            throw APIError(
                .forbidden, .forbidden,
                "This request came through a proxy that the server's setting access.trustedProxies does not list; the API refuses it.")
        }
        guard access.apiFrom.contains(address: client) else {
            throw APIError(
                .forbidden, .forbidden,
                "This address may not call the API; the server's setting access.apiFrom lists the addresses that may.")
        }
    }

    /// Sets the RateLimit headers from the token's bucket: its size, the calls left, the seconds until it is full.
    /// Throws 429 when no call is left.
    private func checkRate(_ token: APIToken, _ headers: inout HTTPFields) throws(APIError) {
        let outcome = self.limits.call(token: token.id)
        let reset = String(Int(outcome.fullSeconds.rounded(.up)))
        for (name, value) in [
            ("RateLimit-Limit", String(self.limits.burst)), ("RateLimit-Remaining", String(outcome.remaining)), ("RateLimit-Reset", reset),
            ("RateLimit-Policy", "\(self.limits.burst);w=\(RateLimits.windowSeconds)"),
        ] {
            if let name = HTTPField.Name(name) { headers[name] = value }
        }
        guard outcome.isAllowed else {
            self.core.figures.callOverRate()
            var error = APIError(
                .tooManyRequests, .rateLimited,
                "More than \(self.limits.rate) calls a second with this token; the server's setting api.rateLimit is the limit.")
            error.headers[.retryAfter] = reset
            throw error
        }
    }

    private static func noSuchCall(_ request: Request) -> APIError {
        // HEAD gets the answer to GET.
        let method = request.method == .head ? .get : request.method
        return APIError(.notFound, .notFound, "There is no \(method) \(request.uri.path.prefix(200)).")
    }

    // MARK: Answers

    private static func answer(_ route: APIRoute, _ data: JSONValue, _ tag: RoomTag?, _ context: APIContext) -> APIAnswer {
        var answer = APIAnswer(route.success.status, APIRoute.envelope(data, requestID: context.id))
        Self.locate(route, data, &answer)
        if let tag { answer.headers[.eTag] = tag.text }
        return answer
    }

    private static func locate(_ route: APIRoute, _ data: JSONValue, _ answer: inout APIAnswer) {
        guard let location = route.success.location, let member = data[location.member] else { return }
        answer.headers[.location] = "\(Self.prefix)\(location.path)\(PercentCoding.encode(member.shown))"
    }
}
