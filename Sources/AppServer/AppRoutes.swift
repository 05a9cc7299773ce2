package import HTTPServer

/// The apps' ordinary requests: the cloud's API, the push heartbeat, classes, claw machines, tickets, ICE servers, pages. Any thread.
package struct AppRoutes: Sendable {
    package let parts: [any HTTPPart]

    package init(_ services: AppServices) {
        self.parts = [
            TencentFacade(services), PushHeartbeat(services), DollsCatcher(services), ClassroomAPI(services),
            AppTicketRoute(services: services), MeshICERoute(mesh: MeshEndpoint(services)), AppPages(services),
        ]
    }
}
