import Access
import HTTPServer
import HTTPTypes
import Hummingbird
import Listening
import NIOCore
import Playback
import ServerConfiguration
import Streaming
import Support

extension AppServices {
    /// The ICE servers for a member of the mesh, with credentials made now. Nil: a member whose address needs no token.
    func iceServers(_ token: ChannelToken?) -> JSONValue { self.config.ice.servers(for: token?.user, nowSeconds: WallClock.seconds) }
}

/// `GET /mesh/ice` answers `{"iceServers": […]}`, the settings of an `RTCPeerConnection`, to whoever may join the mesh: with the `token` or `ticket` of
/// ``MeshEndpoint``, or from an address that needs none. Any thread.
struct MeshICERoute: HTTPPart {
    static let path = "/mesh/ice"

    let mesh: MeshEndpoint
    private var services: AppServices { self.mesh.services }

    func door(_ request: Request) -> Door? { request.uri.path == Self.path ? .mesh : nil }

    func respond(to request: Request, _ context: APIContext) async -> Response {
        let page = PageRequest(request, context.channel)
        var answer: APIAnswer
        do throws(APIError) {
            answer = try self.answer(request, page, context)
        } catch {
            var error = error
            for (name, value) in self.services.pages.withCredential(page) { error.headers[name] = value }
            answer = APIAnswer(error, requestID: context.id)
        }
        answer.headers[.cacheControl] = "no-store"
        return answer.response(to: request)
    }

    private func answer(_ request: Request, _ page: PageRequest, _ context: APIContext) throws(APIError) -> APIAnswer {
        guard request.method == .get || request.method == .head else {
            var error = APIError(.methodNotAllowed, .methodNotAllowed, "ICE servers are read by GET.")
            error.headers[.allow] = "GET, HEAD"
            throw error
        }
        let clients = self.services.connections.clients
        let client = clients.client(peer: clients.peer(of: context.channel), request.headers)
        let token = try self.mesh.token(QueryParameters(request.uri.query ?? ""), page, client)
        var answer = APIAnswer(.ok, ["iceServers": self.services.iceServers(token)])
        for (name, value) in try self.services.pages.check(page, token.map { VerifiedCaller($0) }) { answer.headers[name] = value }
        return answer
    }
}
