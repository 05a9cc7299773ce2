import Access
import Foundation
import PortlessTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer

/// Every door that browsers can reach, asked by a page of another origin with credentials that are none: shown is not verified.
@Suite struct DoorTests {
    struct Door: Sendable, CustomTestStringConvertible {
        let method: String
        let path: String
        var body = ""
        /// Opens a WebSocket.
        var isSocket = false
        var testDescription: String { "\(self.method) \(self.path)" }
    }

    static let doors: [Door] = [
        Door(method: "GET", path: "/live/cam1.flv"), Door(method: "GET", path: "/live/cam1.mp4"),
        Door(method: "GET", path: "/live/cam1.m3u8"),
        Door(method: "GET", path: "/live/cam1.hls/media.m3u8"), Door(method: "GET", path: "/live/cam1.flv", isSocket: true),
        Door(method: "GET", path: "/talk/cam1/mix.mp4"),
        Door(method: "POST", path: "/push/live/cam1/heartbeat", body: #"{"status":"finished"}"#),
        Door(method: "POST", path: "/classroom/api/v1/room/join", body: #"{"roomId":"math","userName":"Eve"}"#),
        Door(method: "POST", path: "/dollsCatcher/tourist"),
        Door(method: "POST", path: "/dollsCatcher/host/create", body: "accid=a&nickname=b&name=c"),
        Door(method: "POST", path: "/channel/ticket", body: #"{"token":"x"}"#), Door(method: "GET", path: "/channel", isSocket: true),
        Door(method: "GET", path: "/mesh", isSocket: true),
        Door(method: "GET", path: "/board/0123456789abcdef0123456789abcdef", isSocket: true),
        Door(method: "GET", path: "/events", isSocket: true), Door(method: "GET", path: "/api/v1/rooms"),
        Door(method: "POST", path: "/api/v1/rooms", body: "{}"), Door(method: "GET", path: "/metrics"),
        Door(method: "POST", path: "/console/login", body: #"{"token":"x"}"#), Door(method: "GET", path: "/console/session"),
        Door(method: "GET", path: "/?Action=DescribeLiveStreamState"),
    ]

    private static let junk: [(query: String, header: String?)] = [
        ("", nil), ("", "Authorization: x"), ("", "Authorization: Bearer x"), ("", "Authorization: Bearer eyJhbGciOiJub25lIn0.e30."),
        ("", "Authorization: Basic YTpi"), ("", "Cookie: earshot-console=x"), ("", "X-Csrf-Token: x"), ("token=x", nil), ("jwt=x", nil),
        ("txSecret=00&txTime=7FFFFFFF", nil), ("ticket=x", nil), ("authorization=x", nil), ("s=x", nil), ("user=ann", nil), ("x=y", nil),
        ("token=x&token=y", "Authorization: x"),
    ]

    @Test(arguments: doors) func junkOpensNothing(_ door: Door) async throws {
        try await PortlessServer.run({ $0.credentials.key = TestCredential.keys.key }) { server in
            _ = try await server.call("POST", "rooms", #"{"roomId":"cam1"}"#)
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            for (query, header) in Self.junk {
                for page in ["Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Host: evil.example"] {
                    let socket = try await SocketClient.open(server.addresses.http.port)
                    let target = query.isEmpty ? door.path : "\(door.path)\(door.path.contains("?") ? "&" : "?")\(query)"
                    var lines = ["\(door.method) \(target) HTTP/1.1", "Content-Length: \(door.body.utf8.count)", page]
                    if !page.hasPrefix("Host") { lines.append("Host: 127.0.0.1:\(server.addresses.http.port)") }
                    if let header { lines.append(header) }
                    if door.isSocket {
                        lines += ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
                        lines.append("Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")
                    } else {
                        lines.append("Content-Type: text/plain")
                    }
                    try await socket.send(lines.joined(separator: "\r\n") + "\r\n\r\n" + door.body)
                    let (head, body) = try await socket.answer()
                    await socket.close()
                    let status = Int(head.split(separator: " ").dropFirst().first ?? "") ?? 0
                    // Answers of apps' vendors have status 200, and say in their body that they refuse.
                    let says = [
                        #""errCode":2"#, #""code":403"#, #""Code":"AuthFailure"#, #""Code":"MissingParameter"#,
                        #""Code":"InvalidParameter"#, #""Code":"RequestLimit"#,
                    ].contains { body.contains($0) }
                    #expect((400..<500).contains(status) || (status == 200 && says), "\(lines): \(head) \(body)")
                }
            }
            #expect(!publisher.current.isClosed && !publisher.current.sawEOF, "the push goes on")
            await publisher.close()
        }
    }
}
