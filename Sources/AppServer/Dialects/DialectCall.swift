import Access
import Apps
import HTTPServer
import HTTPTypes
import Hummingbird
import Listening
import NIOCore
import Playback
import ServerConfiguration
import Streaming
import Support
import Synchronization

/// The part that the HTTP APIs of classes and machines share: client addresses, pages of other origins, bodies, and each address's rate. Answers have
/// status 200, refusals too. Any thread.
final class DialectCall: Sendable {
    private let services: AppServices
    private let paces: Mutex<PaceTable<HostKey>>
    private let longestBody: Int

    /// `perTenSeconds`: requests from one address.
    init(_ services: AppServices, perTenSeconds: Int, longestBody: Int) {
        self.services = services
        self.longestBody = longestBody
        self.paces = Mutex(PaceTable(rate: Double(perTenSeconds) / 10, burst: Double(perTenSeconds)))
    }

    /// Throws for a page that may not call. Without a verified credential only this server's own pages and those of the origins in
    /// `http.allowOrigin` may, by a name that the server knows: otherwise any page that a user at an allowed address opens could call.
    func checkPage(_ request: Request, _ context: APIContext, _ caller: VerifiedCaller?) throws(APIError) {
        let page = PageRequest(request, context.channel)
        if caller == nil { _ = try self.services.pages.check(page, nil) }
        guard self.services.pages.letsSocket(page) else {
            throw APIError(
                .forbidden, .forbidden,
                "Pages of this origin may not call this; the server's setting http.allowOrigin names those that may.")
        }
    }

    /// Headers that let the page behind a request read the answer, a refusal too: without a credential, or with one that has expired, it must learn so.
    /// None for pages that may not call with any credential. ``checkPage(_:_:_:)`` comes before all that an answer may tell.
    func readable(_ request: Request, _ context: APIContext) -> HTTPFields {
        let page = PageRequest(request, context.channel)
        guard let origin = request.headers[.origin], self.services.pages.letsSocket(page) else { return [:] }
        return [.accessControlAllowOrigin: origin, .accessControlAllowCredentials: "true", .vary: "Origin"]
    }

    /// The answer to a preflight, which shows no credential yet; nil for other requests.
    func preflight(_ request: Request, _ context: APIContext) -> Response? {
        guard request.method == .options else { return nil }
        guard self.services.pages.letsSocket(PageRequest(request, context.channel)) else { return Response(status: .forbidden) }
        var headers = self.readable(request, context)
        headers[.accessControlAllowMethods] = "GET, POST, OPTIONS"
        headers[.accessControlAllowHeaders] = "content-type, authorization"
        headers[.accessControlMaxAge] = "86400"
        return Response(status: .noContent, headers: headers)
    }

    /// Nil when the client's address is unknown.
    func client(_ request: Request, _ context: APIContext) -> SocketAddress? {
        let clients = self.services.connections.clients
        return clients.client(peer: clients.peer(of: context.channel), request.headers)
    }

    func mayGoOn(_ client: SocketAddress) -> Bool {
        self.paces.withLock { $0.acquire(HostKey.of(client), nowNs: NIODeadline.now().uptimeNanoseconds) }.isAllowed
    }

    /// The body as text. Throws ``APIError`` when it is too long or cannot be read.
    func body(_ request: Request, _ context: APIContext) async throws(APIError) -> String {
        let bytes = try await BodyReader(request, context, self.services.memory.ledger, atMost: self.longestBody).collect()
        return String(buffer: bytes)
    }

    /// The server's addresses for others than this client. Nil while the server starts.
    func addressForOthers(_ context: APIContext) -> PublicAddress? {
        self.services.connections.addresses.map {
            PublicAddress(forOthers: self.services.config.current, addresses: $0, arrivedAt: context.channel.localAddress)
        }
    }

    /// URLs for this client alone: they may have the name by which it reached the server. Nil while the server starts.
    func urls(_ request: Request) -> StreamURLs? {
        self.services.connections.addresses.map {
            StreamURLs(
                address: PublicAddress(config: self.services.config.current, addresses: $0, requestHost: request.head.authority),
                keys: self.services.keys, credentials: self.services.config.credentials)
        }
    }

    static func answer(_ value: JSONValue, _ headers: HTTPFields, to request: Request, status: HTTPResponse.Status = .ok) -> Response {
        var answer = APIAnswer(status, value)
        answer.headers.append(contentsOf: headers)
        answer.headers[.cacheControl] = "no-store"
        return answer.response(to: request)
    }
}
