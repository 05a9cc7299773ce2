import HTTPServer
import HTTPTypes
import RoomStore
import Rooms

extension APIRoute {
    private static let name = Input("name", .text(length: 1...RoomLimits.tokenNameLength), "The owner, for the audit trail.").required
    private static let role = Input(
        "role", .choice() as InputType<TokenRole>,
        "app: rooms, members, URLs and talk; ops: also streams, sessions and recordings; admin: everything."
    ).required
    private static let id = Input("tokenId", .whole(1...Int64.max), "The token's id.").required

    /// API tokens.
    static let tokens: [APIRoute] = [
        APIRoute(
            .get, "/tokens", "listTokens", .tokens, .admin, "List all tokens, including revoked ones, without their secrets.",
            answers: TokenListAnswer.outputType
        ) { call in
            let list = try await call.rooms.tokens()
            return TokenListAnswer(total: list.count, list: list)
        },
        APIRoute(
            storing: "/tokens", "createToken", .tokens, .admin, "Create a token. Only this answer contains its secret.",
            body: [Self.name.erased, Self.role.erased], answers: NewTokenAnswer.outputType, status: .created,
            location: ("/tokens/", "tokenId"),
            secret: "secret"
        ) { call, keep in
            let (name, role) = (try call.value(Self.name), try call.value(Self.role))
            let secret = RoomRegistry.randomTokenSecret()
            return try await keep({ NewTokenAnswer(token: $0, secret: secret) }) {
                try await call.rooms.createToken(name: name, role: role, secret: secret, keeping: $0).token
            }
        },
        APIRoute(
            .delete, "/tokens/{tokenId}", "revokeToken", .tokens, .admin, "Revoke a token, immediately and permanently.",
            in: [Self.id.erased], answers: APIToken.outputType
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
        APIToken.fields.map { field in Field(property: field.property) { field.write($0.token) } } + [
            .field("secret", .nullable(.text), "For the Authorization header; null in an answer repeated for its Idempotency-Key.") {
                $0.secret
            }
        ])
}

extension APIToken {
    static let fields: [Field<APIToken>] = [
        .field("tokenId", .count, "The token's id.", \.id),
        .field("name", .text, "The token's owner.", \.name),
        .field("role", .choice(), "The token's role.", \.role),
        .field("createdAt", .instant, "When the token was created.", \.createdAt),
        .field("revokedAt", .nullable(.instant), "When the token was revoked; null while it is valid.", \.revokedAt),
    ]
    static let outputType = OutputType<APIToken>.object("Token", Self.fields)
}
