import Access
import Apps
import Delivery
import HTTPServer
import HTTPTypes
import Hummingbird
import Listening
import NIOCore
import Playback
import ServerConfiguration
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

    /// Headers that let the page behind a request read the answer. Throws for pages that may not call at all: only this server's own origin and the
    /// one in `http.allowOrigin` may. Its `*` applies only to requests with a credential: otherwise any page that a user at an allowed address opens
    /// could call. A call by a name that the server does not know may come from such a page, too.
    func crossOrigin(_ request: Request, _ context: APIContext, showsCredential: Bool) throws(APIError) -> HTTPFields {
        let page = PageRequest(request, context.channel)
        if !showsCredential {
            _ = try self.services.pages.check(page, showsCredential: false)
        } else if !self.services.pages.letsSocket(page) {
            throw APIError(
                .forbidden, .forbidden,
                "Pages of this origin may not call this; the server's setting http.allowOrigin names the one that may.")
        }
        guard let origin = request.headers[.origin] else { return [:] }
        return [.accessControlAllowOrigin: origin, .accessControlAllowCredentials: "true", .vary: "Origin"]
    }

    /// The answer to a preflight; nil for other requests.
    func preflight(_ request: Request, _ context: APIContext) -> Response? {
        guard request.method == .options else { return nil }
        guard var headers = try? self.crossOrigin(request, context, showsCredential: true) else { return Response(status: .forbidden) }
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
        self.paces.withLock { $0.take(HostKey.of(client), nowNs: NIODeadline.now().uptimeNanoseconds) }.isAllowed
    }

    /// The body as text. Throws ``APIError`` when it is too long or cannot be read.
    func body(_ request: Request, _ context: APIContext) async throws(APIError) -> String {
        let bytes = try await BodyReader(request, context, self.services.memory.ledger, atMost: self.longestBody).collect()
        return String(buffer: bytes)
    }

    /// Throws unless the request's Host header has the server's name. Only then may it be part of an address that others open.
    func checkName(_ request: Request, _ context: APIContext) throws(APIError) {
        guard self.services.config.urls.http == nil else { return }
        try self.services.pages.checkHost(PageRequest(request, context.channel))
    }

    /// The server's addresses from this client's view. Nil while the server starts.
    func publicAddress(_ request: Request) -> PublicAddress? {
        self.services.connections.addresses.map {
            PublicAddress(config: self.services.config.current, addresses: $0, requestHost: request.head.authority)
        }
    }

    func urls(_ request: Request) -> StreamURLs? {
        self.publicAddress(request).map {
            StreamURLs(address: $0, keys: self.services.keys, hash: self.services.config.credentials.hash)
        }
    }

    static func answer(
        _ value: JSONValue, _ headers: HTTPFields, to request: Request, status: HTTPResponse.Status = .ok
    ) -> Response {
        var answer = APIAnswer(status, value)
        answer.headers.append(contentsOf: headers)
        answer.headers[.cacheControl] = "no-store"
        return answer.response(to: request)
    }
}
