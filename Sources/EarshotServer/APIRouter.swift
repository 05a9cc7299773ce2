import AppServer
import Console
import ControlAPI
import Delivery
import HTTPServer
import HTTPTypes
import Hummingbird
import Playback

/// Routes of the HTTP port: health checks for load balancers, metrics, HLS, and the API under `/api/v1`.
struct APIRouter {
    let readiness: Readiness
    let playback: PlaybackServices
    /// Shared by all ports, so that a token's rate limit counts across them.
    let service: APIService
    /// Nil when the console is switched off.
    let console: ConsoleService?
    let apps: AppRoutes

    func router() -> Router<APIContext> {
        let router = Router(context: APIContext.self, options: .autoGenerateHeadEndpoints)
        let readiness = self.readiness
        let service = self.service
        let console = self.console
        let apps = self.apps
        let hls = HLSEndpoint(services: self.playback)
        router.add(middleware: AnswerHeaders(service: service))
        // Health checks need no token: they reveal only the server's health.
        router.get("/healthz") { _, _ in "ok\n" }
        router.get("/readyz") { _, _ in
            guard let problem = await readiness.problem() else { return "ready\n".plain }
            return Response(status: .serviceUnavailable, body: .init(byteBuffer: .init(string: "\(problem)\n")))
        }
        // Prometheus' default path.
        router.get("/metrics") { request, context in
            var head = request.head
            head.path = "/api/v1/metrics"
            return await service.respond(to: Request(head: head, body: request.body), context)
        }
        // The API matches paths itself: an encoded slash stays within its part, and 405 lists the path's methods.
        for path: RouterPath in ["", "/**"] {
            for method: HTTPRequest.Method in [.get, .head, .post, .put, .patch, .delete, .options] {
                router.on(path, method: method) { request, context in
                    if let answer = await apps.respond(to: request, context) { return answer }
                    if let page = await console?.respond(to: request, context) { return page }
                    if let media = await hls.respond(to: request, context) { return media }
                    return await service.respond(to: request, context)
                }
            }
        }
        return router
    }
}

extension String {
    fileprivate var plain: Response { Response(status: .ok, body: .init(byteBuffer: .init(string: self))) }
}

/// Adds the headers that every answer carries.
private struct AnswerHeaders: RouterMiddleware {
    let service: APIService

    func handle(_ request: Request, context: APIContext, next: (Request, APIContext) async throws -> Response) async throws -> Response {
        var response: Response
        do {
            response = try await next(request, context)
        } catch is any HTTPResponseError {
            // The router does not have the method; the API table answers with those that exist.
            response = await self.service.respond(to: request, context)
        }
        if response.headers[.cacheControl] == nil { response.headers[.cacheControl] = "no-store" }
        response.headers[.xContentTypeOptions] = "nosniff"
        if let name = Self.requestID { response.headers[name] = context.id }
        return response
    }

    private static let requestID = HTTPField.Name("X-Request-Id")
}
