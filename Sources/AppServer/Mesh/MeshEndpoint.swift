import Access
import Apps
package import HTTPServer
import HTTPTypes
import Listening
import NIOCore
package import NIOHTTP1
import Playback
import ServerConfiguration
import Streaming
package import Support

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `GET /mesh`, `/mesh/`, `/mesh/…` as a WebSocket: rooms in which browsers find each other, in SkyRTC's protocol (``MeshFrame``).
///
/// | query | |
/// |---|---|
/// | `token` | a ``ChannelToken`` for the only room that the connection may join |
/// | `ticket` | a ticket of ``AppTicketRoute``, instead of the token |
/// | `names=double` | names that begin with two underscores |
///
/// Without a token, the client's address must be in `apps.mesh.from`, and a browser's page of this server's origin or of `http.allowOrigin`.
package struct MeshEndpoint: AppEndpoint {
    package static let what = "A mesh connection"
    package let services: AppServices

    package init(_ services: AppServices) { self.services = services }

    static func isMesh(_ path: some StringProtocol) -> Bool { path == "/mesh" || path.hasPrefix("/mesh/") }

    package func door(_ head: HTTPRequestHead) -> Door? {
        guard head.method == .GET, Self.isMesh(head.path),
            head.list("upgrade", contains: "websocket") || !(AppPages.hasMeshFile(head.path) || head.path == MeshICERoute.path)
        else { return nil }
        return .mesh
    }

    package func route(_ head: HTTPRequestHead) -> String { "/mesh" }

    package func session(_ request: HTTPHandoffRequest) throws(APIError) -> @Sendable () -> any AppSession {
        let query = QueryParameters(String(request.head.query ?? ""))
        let names = query.all("names")
        guard names.count <= 1, names.allSatisfy({ ["single", "double"].contains($0) }) else {
            throw APIError(FieldError("names", names.first ?? "", "expected single or double, once"))
        }
        let token = try self.token(query, PageRequest(request), self.services.connections.clients.client(of: request))
        let writer = MeshWriter(isDouble: names == ["double"])
        // Each tab is a member of its own.
        return { [services = self.services] in
            MeshSession(services.mesh, writer, id: UUID().uuidString.lowercased(), token: token) { services.iceServers(token) }
        }
    }

    /// Who may join: the token shown, or nil for an address that needs none. Throws for everybody else.
    func token(_ query: QueryParameters, _ page: PageRequest, _ client: SocketAddress?) throws(APIError) -> ChannelToken? {
        if let token = try self.services.credential(query) {
            try self.checkOrigin(page)
            guard token.kind == MeshService.kind else {
                throw APIError(.unauthorized, .unauthorized, "The token is for the kind \(token.kind); expected mesh.")
            }
            return token
        }
        guard let client, self.services.config.apps.meshFrom.contains(address: client) else {
            throw APIError(
                .unauthorized, .unauthorized,
                "Mesh rooms need a channel token from this address; the server's setting apps.mesh.from lists the addresses that need none."
            )
        }
        _ = try self.services.pages.check(page, nil)
        return nil
    }
}
