import AppServer
import ControlAPI
package import HTTPAPI
import HTTPServer
import HTTPTypes
import Links
import NIOCore
import Playback
import Streaming
import Support

// The HTTP API as this server has it: the calls of the control API and those of the apps, and the document of all.

extension APIRoute {
    /// Every call of the API, in the document's order.
    package static let all: [APIRoute] =
        ControlRoutes.all.map(\.route) + LinkRoutes.all.map(\.route) + GatheringRoutes.all.map(\.route)
}

extension OpenAPIDocument {
    /// Made once.
    package static let bytes: [UInt8] = {
        var bytes: [UInt8] = []
        Self.whole.write(to: &bytes)
        return bytes
    }()

    fileprivate static let buffer = ByteBuffer(bytes: Self.bytes)

    fileprivate static var whole: JSONValue { Self.document(APIRoute.all, webhooks: OpenAPIWebhooks.document) }
}

extension APIReference {
    package static var markdown: String { Self.markdown(OpenAPIDocument.whole) }
}

extension ServerParts {
    var nodes: NodeForwarder { NodeForwarder(self.rooms, self.outbound) }

    /// `auditor` and `sessions`: shared with the console's logins.
    func apiService(auditor: Auditor, sessions: (any BrowserSessions)?) -> APIService {
        let core = APICore(
            self.live, self.liveKeys, self.rooms, clients: self.connections.clients,
            addresses: { [connections = self.connections] in connections.addresses },
            ledger: self.memory.ledger, nodes: self.nodes, auditor: auditor, figures: self.api.figures.calls,
            document: { OpenAPIDocument.buffer }, log: self.log)
        let routes =
            ControlRoutes.all.map { $0.served(by: self.api) } + LinkRoutes.all.map { $0.served(by: self.links) }
            + GatheringRoutes.all.map { $0.served(by: self.apps) }
        return APIService(core, routes, sessions: sessions) { path in
            if let own = ServerPath(rawValue: path) { return own == .events ? [.get] : [.get, .head] }
            return HLSEndpoint.serves(path) || LivePath.format(of: path) != nil ? [.get, .head, .options] : nil
        }
    }
}
