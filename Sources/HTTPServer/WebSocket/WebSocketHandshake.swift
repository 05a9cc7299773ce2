import Crypto
import HTTPTypes
package import NIOHTTP1
import Support

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Checks and answers requests that open a WebSocket (RFC 6455 §4.2). Pure.
package enum WebSocketHandshake {
    /// Returns nil if the request is valid.
    package static func refusal(of head: HTTPRequestHead) -> APIError? {
        guard head.version.major < 2 else {
            // RFC 8441 is not offered; clients open a separate connection for a WebSocket, as browsers do.
            return APIError(.upgradeRequired, .invalid, "This is a WebSocket: open it over HTTP/1.1, not over HTTP/2.")
        }
        guard head.list("upgrade", contains: "websocket"), head.list("connection", contains: "upgrade"), head.version == .http1_1 else {
            var error = APIError(
                .upgradeRequired, .invalid, "This is a WebSocket: expected the headers Upgrade: websocket and Connection: Upgrade.")
            error.headers[.upgrade] = "websocket"
            return error
        }
        guard head.headers["sec-websocket-version"] == ["13"] else {
            // §4.4
            var error = APIError(.upgradeRequired, .invalid, "Sec-WebSocket-Version: expected 13")
            error.field = "Sec-WebSocket-Version"
            error.rule = "expected 13"
            error.headers[.secWebSocketVersion] = "13"
            return error
        }
        guard self.key(of: head) != nil else {
            return APIError(FieldError("Sec-WebSocket-Key", "", "expected one key of 16 bytes in base64"))
        }
        return nil
    }

    /// The answer that opens the WebSocket, for a valid request. Accepts no extension and no subprotocol.
    package static func response(to head: HTTPRequestHead) -> HTTPResponseHead {
        HTTPResponseHead(
            version: .http1_1, status: .switchingProtocols,
            headers: [
                "upgrade": "websocket", "connection": "upgrade", "sec-websocket-accept": self.accept(self.key(of: head) ?? ""),
                "server": "earshot",
            ])
    }

    private static func key(of head: HTTPRequestHead) -> String? {
        let keys = head.headers["sec-websocket-key"]
        guard keys.count == 1, let key = keys.first, Data(base64Encoded: key)?.count == 16 else { return nil }
        return key
    }

    static func accept(_ key: String) -> String {
        let digest = Insecure.SHA1.hash(data: Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))
        return Data(digest).base64EncodedString()
    }
}
