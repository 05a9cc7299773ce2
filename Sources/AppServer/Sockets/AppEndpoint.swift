import Apps
package import HTTPServer
import HTTPTypes
import Listening
import NIOCore
import NIOHTTP1
import Playback
import Streaming

/// A path for an app's WebSockets. A refused request gets an ordinary HTTP answer and a log line.
package protocol AppEndpoint: HTTPHandoff {
    var services: AppServices { get }
    /// The subject of that line: "A channel connection".
    static var what: String { get }
    /// Checks the request and returns the session's constructor, which runs on the connection's loop. The handshake has been checked.
    func session(_ request: HTTPHandoffRequest) throws(APIError) -> @Sendable () -> any AppSession
}

extension AppEndpoint {
    /// Throws for pages of origins that may not use this server with a credential.
    func checkOrigin(_ page: PageRequest) throws(APIError) {
        guard !self.services.pages.letsSocket(page) else { return }
        throw APIError(
            .forbidden, .forbidden,
            "Pages of this origin may not connect here; the server's setting http.allowOrigin names those that may.")
    }

    package func decide(_ request: HTTPHandoffRequest) async -> HTTPHandoffDecision {
        do throws(APIError) {
            if let refusal = WebSocketHandshake.refusal(of: request.head) { throw refusal }
            let (session, services) = (try self.session(request), self.services)
            let remote = services.connections.clients.client(of: request)?.ipAddress ?? "unknown"
            return .accept(WebSocketHandshake.response(to: request.head)) {
                let socket = AppSocket(
                    session(), limits: services.socketLimits, sweepers: services.sweepers, counters: services.counters,
                    account: request.account
                ) { why, detail in
                    services.noteRefusal("\(Self.what) was cut", ["reason": why.rawValue, "remote": remote, "detail": detail])
                }
                return [socket]
            }
        } catch {
            self.services.noteRefusal(
                "\(Self.what) was refused",
                [
                    "status": "\(error.status.code)",
                    "remote": "\(self.services.connections.clients.client(of: request)?.ipAddress ?? "unknown")",
                    "error": "\(error.message)",
                ])
            return .refuse(error)
        }
    }
}
