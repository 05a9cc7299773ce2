import HTTPServer
import HTTPTypes
import NIOHTTP1
import Rooms
import Support
import Testing

@Suite struct WebSocketHandshakeTests {
    static func head(_ change: (inout HTTPHeaders) -> Void = { _ in }, version: HTTPVersion = .http1_1) -> HTTPRequestHead {
        var headers: HTTPHeaders = [
            "Host": "example.com", "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Version": "13",
        ]
        change(&headers)
        return HTTPRequestHead(version: version, method: .GET, uri: "/events", headers: headers)
    }

    /// RFC 6455 §1.3's own example.
    @Test func theStandardsAnswer() {
        let response = WebSocketHandshake.response(to: Self.head())
        #expect(response.status.code == 101)
        #expect(response.headers["sec-websocket-accept"] == ["s3pPLMBiTxaQ9kYGzzhZRbK+xOo="])
        #expect(response.headers["upgrade"] == ["websocket"])
        #expect(response.headers["sec-websocket-extensions"].isEmpty)
    }

    @Test func wellFormedRequests() {
        #expect(WebSocketHandshake.refusal(of: Self.head()) == nil)
        // As Firefox sends it.
        #expect(WebSocketHandshake.refusal(of: Self.head { $0.replaceOrAdd(name: "Connection", value: "keep-alive, Upgrade") }) == nil)
        #expect(WebSocketHandshake.refusal(of: Self.head { $0.replaceOrAdd(name: "Upgrade", value: "WebSocket") }) == nil)
        #expect(WebSocketHandshake.refusal(of: Self.head { $0.add(name: "Sec-WebSocket-Extensions", value: "permessage-deflate") }) == nil)
    }

    @Test(
        arguments: [
            ("Upgrade", nil, 426), ("Upgrade", "h2c", 426), ("Connection", nil, 426), ("Connection", "keep-alive", 426),
            ("Sec-WebSocket-Version", nil, 426), ("Sec-WebSocket-Version", "8", 426), ("Sec-WebSocket-Key", nil, 400),
            ("Sec-WebSocket-Key", "dGhl", 400), ("Sec-WebSocket-Key", "not base64 at all!!!!!!!", 400),
        ] as [(String, String?, Int)])
    func whatIsMissingOrWrong(_ name: String, _ value: String?, _ status: Int) throws {
        let refusal = WebSocketHandshake.refusal(
            of: Self.head { headers in
                headers.remove(name: name)
                if let value { headers.add(name: name, value: value) }
            })
        #expect(refusal?.status.code == status)
        #expect(refusal?.headers[.secWebSocketVersion] == (name == "Sec-WebSocket-Version" ? "13" : nil))
    }

    @Test func twoKeysAndOldHTTP() {
        #expect(
            WebSocketHandshake.refusal(of: Self.head { $0.add(name: "Sec-WebSocket-Key", value: "dGhlIHNhbXBsZSBub25jZQ==") })?.status
                == .badRequest)
        #expect(WebSocketHandshake.refusal(of: Self.head(version: .http1_0))?.status == .upgradeRequired)
    }
}
