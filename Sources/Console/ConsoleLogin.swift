import Access
import ControlAPI
package import HTTPAPI
import HTTPServer
import HTTPTypes
import Hummingbird
import Listening
import Logging
import NIOCore
package import RoomRegistry
import Rooms
package import ServerConfiguration
package import Streaming
package import Support

/// Login by a token or a one-time code, and logout. Any thread.
package final class ConsoleLogin: Sendable {
    package let sessions: ConsoleSessions
    package let codes = ConsoleCodes()
    private let registry: RoomRegistry
    private let authentication: Authentication
    private let connections: Connections
    private let config: Live<ServerConfig>
    private let ledger: MemoryLedger
    private let auditor: Auditor

    package init(
        _ sessions: ConsoleSessions, _ registry: RoomRegistry, _ authentication: Authentication, _ connections: Connections,
        _ config: Live<ServerConfig>, _ ledger: MemoryLedger, _ auditor: Auditor
    ) {
        self.sessions = sessions
        self.registry = registry
        self.authentication = authentication
        self.connections = connections
        self.config = config
        self.ledger = ledger
        self.auditor = auditor
    }

    /// A one-time code for the oldest valid admin token; nil when there is none.
    package func firstCode() async throws -> String? {
        try await self.registry.tokens().first { $0.revokedAt == nil && $0.role == .admin }.map { self.codes.issue(for: $0.id) }
    }

    func logIn(_ request: Request, _ context: APIContext) async throws(APIError) -> Response {
        let client = try self.client(request, context)
        guard RequestOrigin.isOwn(request.head) else {
            throw APIError(.forbidden, .forbidden, "This login does not come from the console's page.")
        }
        let credential = try await self.credential(request, context)
        let token: APIToken
        do throws(APIError) {
            token = try await self.token(credential, from: client)
        } catch {
            // A code is not a token, so nothing of it is recorded.
            let secret: String? = if case .token(let secret) = credential { secret } else { nil }
            await self.auditor.login("logInToConsole", nil, secret: secret, refusal: error, from: client, requestID: context.id)
            throw error
        }
        await self.auditor.login("logInToConsole", token, from: client, requestID: context.id)
        let session = self.sessions.start(for: token.id)
        self.connections.log.info(
            "Somebody logged in to the console",
            metadata: ["token": "\(token.name)", "role": "\(token.role.rawValue)", "from": "\(HostKey.of(client))"])
        return self.answer(session, token, request, context, sets: true)
    }

    func current(_ request: Request, _ context: APIContext) async throws(APIError) -> Response {
        _ = try self.client(request, context)
        // Scripts of other origins cannot read the answer; this check also refuses the attempt.
        guard RequestOrigin.isOwn(request.head), let session = self.sessions.session(of: request.head),
            let token = try await self.token(session.tokenID)
        else { throw APIError(.unauthorized, .unauthorized, "Nobody is logged in.") }
        return self.answer(session, token, request, context, sets: false)
    }

    /// Prolongs the login, for a page that stays open.
    func prolong(_ request: Request, _ context: APIContext) async throws(APIError) -> Response {
        let client = try self.client(request, context)
        guard let session = try self.sessions.provenSession(of: request.head), let token = try await self.token(session.tokenID)
        else { throw APIError(.unauthorized, .unauthorized, "Nobody is logged in.") }
        let renewed = self.sessions.renewed(session)
        if renewed != nil {
            self.connections.log.info(
                "A login to the console was prolonged", metadata: ["token": "\(token.name)", "from": "\(HostKey.of(client))"])
        }
        return self.answer(renewed ?? session, token, request, context, sets: renewed != nil)
    }

    func logOut(_ request: Request, _ context: APIContext) async throws(APIError) -> Response {
        let client = try self.client(request, context)
        if let id = try self.sessions.tokenID(of: request.head), let token = try await self.token(id) {
            await self.auditor.login("logOutOfConsole", token, from: client, requestID: context.id)
        }
        var answer = APIAnswer(.ok, ["code": 0, "message": "", "requestId": .string(context.id), "data": .null])
        answer.headers[.setCookie] = ConsoleSessions.setCookie(nil, for: request.head)
        return answer.response(to: request)
    }

    func code(_ request: Request, _ context: APIContext) async throws(APIError) -> Response {
        let client = try self.client(request, context)
        let token = try await self.authentication.token(request.headers, from: client)
        let answer = APIAnswer(
            .created,
            [
                "code": 0, "message": "", "requestId": .string(context.id),
                "data": ["code": .string(self.codes.issue(for: token.id)), "seconds": .integer(ConsoleCodes.lifetimeMs / 1_000)],
            ])
        return answer.response(to: request)
    }

    // MARK: -

    private enum Credential {
        case token(String)
        case code(String)
    }

    /// `{"token": …}` or `{"code": …}`, and nothing else.
    private func credential(_ request: Request, _ context: APIContext) async throws(APIError) -> Credential {
        let body = try await BodyReader(request, context, self.ledger).collect()
        // A form of another site's page cannot send this type.
        guard request.headers[.contentType]?.lowercased().hasPrefix("application/json") == true else {
            throw APIError(.unsupportedMediaType, .invalid, "The body must be JSON: Content-Type: application/json.")
        }
        guard case .object(let members)? = try? JSONParser.parse(body.readableBytesView), members.count == 1,
            case .string(let secret) = members[0].value, (1...Self.longestSecret).contains(secret.utf8.count),
            secret.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { throw APIError(FieldError("body", "", "expected {\"token\": …} or {\"code\": …}")) }
        switch members[0].name {
        case "token": return .token(secret)
        case "code": return .code(secret)
        default: throw APIError(FieldError(String(members[0].name.prefix(40)), "", "expected token or code"))
        }
    }

    /// Bytes of a token or a code.
    private static let longestSecret = 256

    private func token(_ credential: Credential, from client: SocketAddress) async throws(APIError) -> APIToken {
        switch credential {
        case .token(let secret): return try await self.authentication.token(secret: secret, from: client)
        case .code(let code):
            guard CIDR.loopback.contains(address: client) else {
                throw APIError(.forbidden, .forbidden, "A one-time code opens the console on the server's own machine only; use a token.")
            }
            try self.authentication.checkFailures(client)
            guard let tokenID = self.codes.redeem(code), let token = try await self.token(tokenID) else {
                self.authentication.failed(client)
                throw APIError(
                    .unauthorized, .unauthorized, "This code is unknown, already used, or older than five minutes; use a token.")
            }
            return token
        }
    }

    private func token(_ id: Int64) async throws(APIError) -> APIToken? {
        do { return try await self.registry.token(id: id) } catch { throw APIError(error) }
    }

    /// Throws 403 for an address that may not call the API.
    private func client(_ request: Request, _ context: APIContext) throws(APIError) -> SocketAddress {
        let clients = self.connections.clients
        let client = clients.client(peer: clients.peer(of: context.channel), request.headers)
        try APIService.checkAddress(client, self.config.access)
        guard let client else { throw APIError(.forbidden, .forbidden, "The address of this request is unknown.") }
        return client
    }

    /// Where devices push, such as "rtmp://live.example.com"; nil while the server starts.
    private func rtmp(_ request: Request) -> String? {
        self.connections.addresses.map {
            PublicAddress(config: self.config.current, addresses: $0, requestHost: request.head.authority).rtmp
        }
    }

    private func answer(_ session: ConsoleSession, _ token: APIToken, _ request: Request, _ context: APIContext, sets: Bool) -> Response {
        var answer = APIAnswer(
            .ok,
            [
                "code": 0, "message": "", "requestId": .string(context.id),
                "data": [
                    "tokenId": .integer(token.id), "name": .string(token.name), "role": .string(token.role.rawValue),
                    "isLimited": .bool(token.scope.isLimited),
                    "csrf": .string(session.csrf), "expiresAt": .string(Instant.text(session.expiresAt)),
                    "version": .string(ServerVersion.text), "rtmp": self.rtmp(request).map { .string($0) } ?? .null,
                ],
            ])
        if sets { answer.headers[.setCookie] = ConsoleSessions.setCookie(session, for: request.head) }
        return answer.response(to: request)
    }
}
