import Access
import HTTPServer
import HTTPTypes
import Hummingbird
import NIOCore
import Playback
import Streaming
package import Support

extension ChannelToken: TicketHolder {
    package static var ticketKind: String { "channel" }
    package var ticketOwner: String { "\(self.room) \(self.user)" }

    package var ticketContent: [JSONValue.Member] {
        var content: [JSONValue.Member] = []
        content.add("user", self.user)
        content.add("name", self.name)
        content.add("room", self.room)
        content.add("kind", self.kind)
        content.add("role", self.role)
        content.add("expires", self.expires)
        return content
    }

    package init?(ticketContent: JSONValue) {
        guard let user = ticketContent.string("user"), let name = ticketContent.string("name"), let room = ticketContent.string("room"),
            let kind = ticketContent.string("kind"), let role = ticketContent.string("role"), let expires = ticketContent.integer("expires")
        else { return nil }
        self.init(user: user, name: name, room: room, kind: kind, role: role, expires: expires)
    }
}

extension AppServices {
    /// The identity behind a connection: from `token`, a ``ChannelToken``, or from `ticket`, which stands for its token once. Nil without either.
    func credential(_ query: QueryParameters) throws(APIError) -> ChannelToken? {
        let (tokens, tickets) = (query.all("token"), query.all("ticket"))
        guard tokens.count + tickets.count <= 1 else {
            throw APIError(.unauthorized, .unauthorized, "Expected one token or one ticket; there are \(tokens.count + tickets.count).")
        }
        if let text = tokens.first { return try self.verified(text) }
        guard let text = tickets.first else { return nil }
        guard let token = self.tickets.redeem(text) else {
            throw APIError(.unauthorized, .unauthorized, "The ticket is unknown, used or older than a minute.")
        }
        return token
    }

    func verified(_ text: String) throws(APIError) -> ChannelToken {
        do throws(AdmissionRefusal) {
            return try ChannelToken(verifying: text, keys: self.keys, nowSeconds: WallClock.seconds)
        } catch {
            throw APIError(.unauthorized, .unauthorized, error.message)
        }
    }
}

/// `POST /channel/ticket` with `{"token": …}`, a ``ChannelToken``, answers `{"ticket", "expiresAt"}` for `/channel?ticket=` or `/mesh?ticket=`. This
/// keeps the token out of addresses that proxies log. The body may be of any type, so browsers need no preflight. Any thread.
struct AppTicketRoute: HTTPPart {
    let services: AppServices

    private static let bodyBytes = 8 << 10

    func door(_ request: Request) -> Door? { request.uri.path == "/channel/ticket" ? .ticket : nil }

    func respond(to request: Request, _ context: APIContext) async -> Response {
        let answer: APIAnswer
        do {
            answer = try await self.answer(request, context)
        } catch {
            var error = (error as? APIError) ?? APIError(.internalServerError, .internal, "The server failed to carry out the call.")
            for (name, value) in self.services.pages.withCredential(PageRequest(request, context.channel)) { error.headers[name] = value }
            answer = APIAnswer(error, requestID: context.id)
        }
        return answer.response(to: request)
    }

    private func answer(_ request: Request, _ context: APIContext) async throws -> APIAnswer {
        guard request.method == .post else {
            var error = APIError(.methodNotAllowed, .methodNotAllowed, "A ticket is made by POST.")
            error.headers[.allow] = "POST"
            throw error
        }
        let body = try await BodyReader(request, context, self.services.memory.ledger, atMost: Self.bodyBytes).collect()
        guard let value = try? JSONParser.parse(body.readableBytesView), case .string(let text)? = value["token"] else {
            throw APIError(FieldError("token", "", "expected {\"token\": …} with a channel token"))
        }
        let token = try self.services.verified(text)
        guard let ticket = self.services.tickets.issue(to: token) else {
            throw APIError(.tooManyRequests, .rateLimited, "There are too many unused tickets; each lasts a minute.")
        }
        var answer = APIAnswer(.ok, ["ticket": .string(ticket.text), "expiresAt": .string(Instant.text(ticket.expiresAt))])
        answer.headers[.cacheControl] = "no-store"
        for (name, value) in try self.services.pages.check(PageRequest(request, context.channel), VerifiedCaller(token)) {
            answer.headers[name] = value
        }
        return answer
    }
}
