import Foundation
import PortlessTestSupport
import RTMPTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import HTTPServer

/// The HTTP port below the router: timeouts, sizes, bytes before a request, and offered upgrades.
@Suite struct HTTPConnectionTests {
    private static func get(_ path: String, _ headers: String...) -> String {
        (["GET \(path) HTTP/1.1", "Host: h"] + headers).joined(separator: "\r\n") + "\r\n\r\n"
    }

    /// A large file for a slow client: the minute limits only the time without progress.
    @Test func anAnswerHasTimeAsLongAsItMoves() {
        var state = HTTPConnectionState(limits: HTTPLimits(), nowMs: 0)
        state.headArrived(nowMs: 1_000)
        state.requestEnded()
        for second in stride(from: Int64(30), through: 300, by: 30) { state.answerProgressed(nowMs: second * 1_000) }
        #expect(!state.isOverdue(nowMs: 359_999) && state.isOverdue(nowMs: 360_000))
        #expect(state.answerEnded(nowMs: 301_000) == false && state.deadlineMs == 361_000)
    }

    /// The page for those who move their cameras' server here.
    @Test func theDocumentTellsTheLimitOfHeads() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../docs/apps/camera.md")
        let text = try String(contentsOf: file, encoding: .utf8)
        #expect(text.contains("than \(HTTPLimits().headBytes >> 10) KiB 431"))
    }

    @Test func aConnectionServesManyRequests() async throws {
        try await PortlessServer.run { server in
            let socket = try await SocketClient.open(server.addresses.http.port)
            for _ in 0..<3 {
                try await socket.send(Self.get("/healthz"))
                let answer = try await socket.answer()
                #expect(answer.head.hasPrefix("HTTP/1.1 200 "))
                #expect(answer.body == "ok\n")
            }
            // Pipelined requests are answered in order.
            try await socket.send(Self.get("/healthz") + Self.get("/readyz/play") + Self.get("/nothing"))
            #expect(try await socket.answer().body == "ok\n")
            #expect(try await socket.answer().body == "ready\n")
            #expect(try await socket.answer().head.hasPrefix("HTTP/1.1 404 "))
            await socket.close()
        }
    }

    /// An upgrade that is offered and not used does not end the connection.
    @Test(arguments: [
        ("GET", "/healthz", "Upgrade: websocket\r\nConnection: Upgrade", "", 200),
        ("GET", "/healthz", "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk", "", 200),
        ("GET", "/healthz", "Upgrade: websocket", "", 200),
        ("GET", "/nothing", "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13", "", 404),
        ("POST", "/nothing", "Upgrade: h2c\r\nConnection: Upgrade", "{\"a\":1}", 404),
        ("POST", "/events", "Upgrade: websocket\r\nConnection: Upgrade", "", 405),
        ("GET", "/events/", "Upgrade: websocket\r\nConnection: Upgrade", "", 404),
        ("GET", "/events", "Connection: keep-alive", "", 426),
        ("GET", "/events?after=1", "Upgrade: h2c\r\nConnection: Upgrade", "", 426),
    ])
    func offersOfOtherProtocols(_ method: String, _ path: String, _ headers: String, _ body: String, _ status: Int) async throws {
        try await PortlessServer.run { server in
            let socket = try await SocketClient.open(server.addresses.http.port)
            let length = body.isEmpty ? "" : "Content-Length: \(body.utf8.count)\r\n"
            try await socket.send("\(method) \(path) HTTP/1.1\r\nHost: h\r\n\(headers)\r\n\(length)\r\n\(body)")
            let answer = try await socket.answer()
            #expect(answer.head.hasPrefix("HTTP/1.1 \(status) "), "\(answer.head)")
            if status != 200 {
                let json = JSON(try JSONSerialization.jsonObject(with: Data(answer.body.utf8)))
                #expect(json["code"].int == status)
                #expect(json["requestId"].string?.isEmpty == false)
            }
            await socket.close()
        }
    }

    /// The answer says that it is the last, so the one to the request behind it, a refusal too, would belong to nothing (RFC 9112 section 9.6).
    @Test(arguments: [
        "GET /healthz HTTP/1.0\r\nConnection: keep-alive", "GET /healthz HTTP/1.1\r\nHost: h\r\nUpgrade: h2c",
        "GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close",
    ])
    func nothingBehindTheLastAnswer(_ request: String) async throws {
        try await PortlessServer.run { server in
            let socket = try await SocketClient.open(server.addresses.http.port)
            try await socket.send("\(request)\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n")
            let answer = try await socket.answer()
            #expect(answer.head.contains(" 200 ") && answer.head.lowercased().contains("connection: close"), "\(answer.head)")
            #expect(answer.body == "ok\n")
            try await eventually("the end") { socket.isClosed }
            #expect(socket.received.isEmpty, "\(String(decoding: socket.received, as: UTF8.self))")
        }
    }

    @Test func headsThatAreTooSlow() async throws {
        try await PortlessServer.run({ $0.limits.httpHeadMs = 400 }) { server in
            let silent = try await SocketClient.open(server.addresses.http.port)
            let slow = try await SocketClient.open(server.addresses.http.port)
            // A byte now and then, without an end: it is closed although more comes. Sending fails once the server has closed, as it should.
            _ = try? await slow.send("GET /healthz HTTP/1.1\r\nHost: h\r\nX-Pad: ")
            try await eventually("the slow one's end") {
                _ = try? await slow.send("a")
                return slow.isClosed
            }
            try await eventually("the silent one's end") { silent.isClosed }
            #expect(slow.received.isEmpty)
            #expect(server.hits(.httpHead) == 2)
        }
    }

    @Test(arguments: [
        ("GET /\(String(repeating: "a", count: 40_000)) HTTP/1.1\r\n\r\n", 431),
        ("GET / HTTP/1.1\r\nHost: h\r\nX-A: \(String(repeating: "a", count: 40_000))\r\n\r\n", 431),
        ("GET / HTTP/1.1\r\nHost: h\r\n" + (0..<150).map { "X-\($0): a\r\n" }.joined() + "\r\n", 431),
        ("GET / HTTP/1.1\r\nHost: h\r\nX-A: " + String(repeating: "a", count: 200_000), 431),
        ("hello\r\n\r\n", 400), ("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}", 400), ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHo st: h\r\n\r\n", 400), ("GET / HTTP/1.1\r\n\r\n", 400), ("GET / HTTP/9.9\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400),
    ])
    func headsThatAreNone(_ bytes: String, _ status: Int) async throws {
        try await PortlessServer.run { server in
            let socket = try await SocketClient.open(server.addresses.http.port)
            try await socket.send(bytes)
            let answer = try await socket.answer()
            #expect(answer.head.hasPrefix("HTTP/1.1 \(status) "), "\(answer.head)")
            #expect(JSON(try JSONSerialization.jsonObject(with: Data(answer.body.utf8)))["code"].int == status)
            try await eventually("the end") { socket.isClosed }
            #expect(try await HTTPAnswer.get("\(server.http)/healthz").status == 200)
        }
    }
}
