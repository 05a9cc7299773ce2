package import HTTPServer
package import Hummingbird

/// The apps' ordinary requests: the cloud's API, the push heartbeat, tickets, pages. Any thread.
package final class AppRoutes: Sendable {
    private let tencent: TencentFacade
    private let heartbeat: PushHeartbeat
    private let pages: AppPages
    private let tickets: AppTicketRoute
    private let dollsCatcher: DollsCatcher
    private let classroom: ClassroomAPI

    package init(_ services: AppServices) {
        self.tencent = TencentFacade(services)
        self.heartbeat = PushHeartbeat(services)
        self.pages = AppPages(services)
        self.tickets = AppTicketRoute(services: services)
        self.dollsCatcher = DollsCatcher(services)
        self.classroom = ClassroomAPI(services)
    }

    /// Nil when the request is not for the apps.
    package func respond(to request: Request, _ context: APIContext) async -> Response? {
        if TencentFacade.claims(request) { return await self.tencent.respond(to: request, context) }
        if let stream = PushHeartbeat.stream(of: request.uri.path) { return await self.heartbeat.respond(stream, request, context) }
        if DollsCatcher.claims(request) { return await self.dollsCatcher.respond(to: request, context) }
        if ClassroomAPI.claims(request) { return await self.classroom.respond(to: request, context) }
        if AppTicketRoute.claims(request) { return await self.tickets.respond(to: request, context) }
        return self.pages.respond(to: request)
    }
}
