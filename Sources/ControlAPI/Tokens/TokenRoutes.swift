import HTTPAPI
import HTTPServer
import HTTPTypes
import RoomRegistry
import Rooms
import Support

enum TokenRoutes {
    private static let name = Input("name", .text(length: 1...RoomLimits.tokenNameLength), "The owner, for the audit trail.").required
    private static let role = Input(
        "role", .choice() as InputType<TokenRole>,
        "backend: rooms, members, URLs and talk; ops: also streams, sessions and recordings; admin: everything."
    ).required
    private static let onlyApps = Input(
        "apps", .names(most: TokenScope.most), "The only apps that the token sees and changes; if omitted, all.")
    private static let onlyRooms = Input(
        "rooms", .names(most: TokenScope.most),
        "Beginnings of the ids of the only rooms (and names of streams) that the token sees and changes; if omitted, all.")
    private static let id = Input("tokenId", .whole(1...Int64.max), "The token's id.").required

    /// API tokens.
    static let all: [ControlRoute] = [
        ControlRoute(
            .get, "/tokens", "listTokens", .tokens, .admin, .server, "List all tokens, including revoked ones, without their secrets.",
            answers: TokenListAnswer.outputType
        ) { call in
            let list = try await call.rooms.tokens()
            return TokenListAnswer(total: list.count, list: list)
        },
        ControlRoute(
            storing: "/tokens", "createToken", .tokens, .admin, .server, "Create a token. Only this answer contains its secret.",
            body: [Self.name, Self.role, Self.onlyApps, Self.onlyRooms], answers: NewTokenAnswer.outputType,
            status: .created,
            location: ("/tokens/", "tokenId"),
            secret: "secret"
        ) { call, keep in
            let (name, role) = (try call.value(Self.name), try call.value(Self.role))
            let scope = TokenScope(apps: call[Self.onlyApps] ?? [], rooms: call[Self.onlyRooms] ?? [])
            let secret = RoomRegistry.randomTokenSecret()
            return try await keep({ NewTokenAnswer(token: $0, secret: secret) }) {
                try await call.rooms.createToken(name: name, role: role, scope: scope, secret: secret, keeping: $0).token
            }
        },
        ControlRoute(
            .delete, "/tokens/{tokenId}", "revokeToken", .tokens, .admin, .server, "Revoke a token, immediately and permanently.",
            in: [Self.id], answers: APIToken.outputType
        ) { call in
            let id = try call.value(Self.id)
            guard let token = try await call.rooms.revokeToken(id) else { throw APIError.notFound("token", "\(id)", field: "tokenId") }
            return token
        },
    ]
}

struct TokenListAnswer: Sendable {
    let total: Int
    let list: [APIToken]

    static let outputType = OutputType<TokenListAnswer>.object(
        "TokenList",
        [.field("total", .count, "The number of tokens.", \.total), .field("list", .list(APIToken.outputType), "The tokens.", \.list)])
}

struct NewTokenAnswer: Sendable {
    let token: APIToken
    let secret: String

    static let outputType = OutputType<NewTokenAnswer>.object(
        "NewToken",
        APIToken.fields.map { field in field.within { $0.token } } + [
            .field("secret", .nullable(.text), "For the Authorization header; null in an answer repeated for its Idempotency-Key.") {
                $0.secret
            }
        ])
}

extension InputType<[String]> {
    /// Ids, or beginnings of ids.
    static func names(most: Int) -> InputType {
        let id = InputType<String>.id
        let item: JSONValue = ["type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"]
        let schema = Schema.keywords("array", ("items", item), ("maxItems", .integer(Int64(most))))
        return InputType(schema) { (json: JSONValue) throws(BrokenRule) in
            guard case .array(let values) = json, values.count <= most else { throw BrokenRule("expected a list of at most \(most) names") }
            var names: [String] = []
            for value in values {
                do throws(BrokenRule) {
                    names.append(try id.read(value))
                } catch {
                    throw BrokenRule(error.rule, value: value.shown)
                }
            }
            return names
        }
    }
}

extension APIToken {
    static let fields: [Field<APIToken>] = [
        .field("tokenId", .count, "The token's id.", \.id),
        .field("name", .text, "The token's owner.", \.name),
        .field("role", .choice(), "The token's role.", \.role),
        .field("apps", .list(.text), "The only apps that it sees and changes; empty: all.", \.scope.apps),
        .field("rooms", .list(.text), "Beginnings of the rooms and streams that it sees and changes; empty: all.", \.scope.rooms),
        .field("createdAt", .instant, "When the token was created.", \.createdAt),
        .field("revokedAt", .nullable(.instant), "When the token was revoked; null while it is valid.", \.revokedAt),
    ]
    static let outputType = OutputType<APIToken>.object("Token", Self.fields)
}
