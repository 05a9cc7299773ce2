import AppServer
import Console
import ControlAPI
import HTTPAPI
import HTTPServer
import HTTPTypes
import Hummingbird
import Playback
import Streaming

/// Routes of the HTTP port: health checks for load balancers, metrics, HLS, and the API under `/api/v1`.
struct APIRouter {
    let readiness: Readiness
    /// Shared by all ports, so that a token's rate limit counts across them.
    let service: APIService
    /// A part of the port, and the name of its request's route for the figures.
    private struct Part {
        let part: any HTTPPart
        let route: @Sendable (Request) -> String
    }

    /// Asked one after another; the API answers what no part does.
    private let parts: [Part]
    private let requests: RequestFigures

    init(
        readiness: Readiness, playback: PlaybackServices, webrtc: WebRTCServices, service: APIService, console: ConsoleService?,
        apps: AppRoutes, nodes: NodeForwarder,
        requests: RequestFigures
    ) {
        self.readiness = readiness
        self.service = service
        // Media first: most requests are for it.
        var parts = [
            Part(part: HLSEndpoint(services: playback)) {
                $0.uri.path.contains(".hls/") ? HLSEndpoint.fileRoute : "/{app}/{stream}.m3u8"
            }
        ]
        parts.append(Part(part: WHEPEndpoint(webrtc, elsewhere: nodes.answer(ofSession:_:_:))) { _ in WHEPEndpoint.playRoute })
        parts.append(Part(part: WHIPEndpoint(webrtc, elsewhere: nodes.answer(ofSession:_:_:))) { _ in WHIPEndpoint.publishRoute })
        parts += apps.parts.map { Part(part: $0) { _ in "apps" } }
        // Nil when the settings disable it.
        if let console { parts.append(Part(part: console) { _ in "console" }) }
        self.parts = parts
        self.requests = requests
    }

    func router() -> Router<APIContext> {
        let router = Router(context: APIContext.self, options: .autoGenerateHeadEndpoints)
        let readiness = self.readiness
        let service = self.service
        let requests = self.requests
        router.add(middleware: AnswerHeaders(service: service, requests: requests))
        // Health checks need no token, since they reveal only the server's health.
        router.get(RouterPath(ServerPath.alive.rawValue)) { request, _ in
            await requests.timed(ServerPath.alive.rawValue, request) { "ok\n".plain }
        }
        let roles: [(ServerPath, Readiness.Role)] = [(.ready, .publish), (.readyToPublish, .publish), (.readyToPlay, .play)]
        for (path, role) in roles {
            router.get(RouterPath(path.rawValue)) { request, _ in
                await requests.timed(path.rawValue, request) {
                    guard let problem = await readiness.problem(for: role) else { return "ready\n".plain }
                    return Response(status: .serviceUnavailable, body: .init(byteBuffer: .init(string: "\(problem)\n")))
                }
            }
        }
        router.get(RouterPath(ServerPath.metrics.rawValue)) { request, context in
            await requests.timed(ServerPath.metrics.rawValue, request) {
                var head = request.head
                head.path = "/api/v1/metrics"
                return await service.respond(to: Request(head: head, body: request.body), context)
            }
        }
        // The API matches paths itself: an encoded slash stays within its part, and 405 lists the path's methods.
        for path: RouterPath in ["", "/**"] {
            for method: HTTPRequest.Method in [.get, .head, .post, .put, .patch, .delete, .options] {
                router.on(path, method: method, use: self.answer)
            }
        }
        return router
    }

    @Sendable private func answer(_ request: Request, _ context: APIContext) async -> Response {
        guard let one = self.parts.first(where: { $0.part.door(request) != nil }) else {
            return await self.requests.timed(self.service.pattern(of: request) ?? RequestFigures.unmatched, request) {
                await self.service.respond(to: request, context)
            }
        }
        return await self.requests.timed(one.route(request), request) { await one.part.respond(to: request, context) }
    }
}

extension String {
    fileprivate var plain: Response { Response(status: .ok, body: .init(byteBuffer: .init(string: self))) }
}

/// Adds the headers that every answer carries.
private struct AnswerHeaders: RouterMiddleware {
    let service: APIService
    let requests: RequestFigures

    func handle(_ request: Request, context: APIContext, next: (Request, APIContext) async throws -> Response) async throws -> Response {
        var response: Response
        do {
            response = try await next(request, context)
        } catch is any HTTPResponseError {
            // The router does not know the method; the API table answers with the methods that exist.
            response = await self.requests.timed(RequestFigures.unmatched, request) { await self.service.respond(to: request, context) }
        }
        if response.headers[.cacheControl] == nil { response.headers[.cacheControl] = "no-store" }
        response.headers[.xContentTypeOptions] = "nosniff"
        if let name = Self.requestID { response.headers[name] = context.id }
        return response
    }

    private static let requestID = HTTPField.Name("X-Request-Id")
}
