import Foundation
import PortlessTestSupport
import RTMPTestSupport
import Relay
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer
@testable import HTTPServer
@testable import Listening
@testable import RoomRegistry
@testable import Streaming

/// The HTTP port under load, and when idle connections fill it.
@Suite struct HTTPBusyTests {
    private static func get(_ path: String, _ headers: String...) -> String {
        (["GET \(path) HTTP/1.1", "Host: 127.0.0.1"] + headers).joined(separator: "\r\n") + "\r\n\r\n"
    }

    private static func waits(_ config: inout ServerConfig) { config.http.firstWaitMs = 50_000 }

    /// Opens connections with a request in progress: players that wait for a device.
    private static func players(_ count: Int, _ server: PortlessServer, _ headers: String...) async throws -> [SocketClient] {
        try await server.makeRoom("cam1")
        var open: [SocketClient] = []
        for _ in 0..<count {
            let socket = try await SocketClient.open(server.addresses.http.port)
            try await socket.send("GET /live/cam1.flv HTTP/1.1\r\nHost: 127.0.0.1\r\n" + headers.map { "\($0)\r\n" }.joined() + "\r\n")
            open.append(socket)
        }
        try await eventually("players") { server.server.parts.connections.counters.current.playsWaited == UInt64(count) }
        return open
    }

    /// One address holds all places and leaves them idle.
    @Test func idleConnectionsMakeRoom() async throws {
        try await PortlessServer.run({
            $0.limits.httpConnections = 60
            // On a slow machine these would make room first.
            $0.limits.httpHeadMs = 600_000
            $0.limits.httpIdleMs = 600_000
        }) { server in
            let oldest = try await SocketClient.open(server.addresses.http.port, from: "127.0.0.9")
            try await oldest.send(Self.get("/healthz"))
            #expect(try await oldest.answer().body == "ok\n")
            var others: [SocketClient] = []
            func fill() async throws {
                while others.count < 59 {
                    let socket = try await SocketClient.open(server.addresses.http.port, from: "127.0.0.9")
                    // Half of them never send a request.
                    if others.count % 2 == 0 { try? await socket.send(Self.get("/healthz")) }
                    others.append(socket)
                }
            }
            // Sooner or later one has been idle for long enough to be shed.
            try await eventually("room made by the oldest") {
                // A server whose loops are late turns newcomers away before they have a place: others come for them.
                others.removeAll { $0.isClosed }
                try await fill()
                _ = try? await HTTPAnswer.get("\(server.http)/api/v1/openapi.json")
                return oldest.isClosed
            }
            #expect(server.server.parts.connections.counters.current.httpConnectionsShed >= 1)
            for _ in 0..<3 {
                try await eventually("a place") {
                    (try? await HTTPAnswer.get("\(server.http)/api/v1/openapi.json"))?.status == 200
                }
            }
            for socket in others + [oldest] { await socket.close() }
        }
    }

    /// All places are busy: a player gets a 503 that names the limit; health checks and API callers are served.
    @Test func busyConnectionsDoNot() async throws {
        try await PortlessServer.run({
            Self.waits(&$0)
            $0.limits.httpConnections = 16
            $0.access.apiFrom = [.address([127, 0, 0, 1])]
            $0.access.playFrom = CIDR.any
        }) { server in
            try await server.makeRoom("cam1")
            var players: [SocketClient] = []
            for _ in 0..<15 {
                let socket = try await SocketClient.open(server.addresses.http.port, from: "127.0.0.9")
                try await socket.send(Self.get("/live/cam1.flv"))
                players.append(socket)
            }
            try await eventually("players") { server.server.parts.connections.counters.current.playsWaited == 15 }
            let refused = try await SocketClient.open(server.addresses.http.port, from: "127.0.0.9")
            try await refused.send(Self.get("/live/cam1.flv"))
            let answer = try await refused.answer()
            #expect(answer.head.hasPrefix("HTTP/1.1 503 ") && answer.body.contains("limits.httpConnections"), "\(answer)")
            let check = try await SocketClient.open(server.addresses.http.port, from: "127.0.0.9")
            try await check.send(Self.get("/readyz/play?probe=1"))
            #expect(try await check.answer().body == "ready\n")
            // API callers get the last place.
            let ops = try await SocketClient.open(server.addresses.http.port)
            try await ops.send(Self.get("/api/v1/counters", "Authorization: Bearer \(server.token)"))
            #expect(try await ops.answer().head.hasPrefix("HTTP/1.1 200 "))
            for socket in players + [refused, check, ops] { await socket.close() }
        }
    }

    /// Players that wait for a device are among the connections, though they are no sessions: all counters agree.
    @Test func waitingPlayersAreCounted() async throws {
        try await PortlessServer.run({ Self.waits(&$0) }) { server in
            let players = try await Self.players(3, server)
            let check = try await server.call("GET", "selfcheck").json()["data"]
            #expect(check["ok"].bool == true, "\(check)")
            #expect(server.server.parts.connections.waitingPlayers == 3)
            for socket in players { await socket.close() }
            try await eventually("nobody to wait") { server.server.parts.connections.waitingPlayers == 0 }
            #expect(server.server.parts.connections.admission.current.connections == 0)
        }
    }

    @Test func oneAddressHasItsShare() async throws {
        try await PortlessServer.run({
            Self.waits(&$0)
            $0.limits.httpPerAddress = 3
            $0.access.playFrom = CIDR.any
        }) { server in
            let players = try await Self.players(3, server)
            let more = try await SocketClient.open(server.addresses.http.port)
            try await more.send(Self.get("/live/cam1.flv"))
            let answer = try await more.answer()
            #expect(answer.head.hasPrefix("HTTP/1.1 503 ") && answer.body.contains("limits.httpPerAddress"), "\(answer)")
            let other = try await SocketClient.open(server.addresses.http.port, from: "127.0.0.9")
            try await other.send(Self.get("/healthz"))
            #expect(try await other.answer().body == "ok\n")
            for socket in players + [more, other] { await socket.close() }
        }
    }

    /// A forwarded request counts for the client it names; the proxy's own connections have no limit.
    @Test func behindAnHTTPProxyTheClientCounts() async throws {
        try await PortlessServer.run({
            Self.waits(&$0)
            $0.limits.httpPerAddress = 3
            $0.access.playFrom = CIDR.any
            $0.access.trustedProxies = CIDR.loopback
        }) { server in
            try await server.makeRoom("cam1")
            var open: [SocketClient] = []
            func ask(_ client: String, _ path: String) async throws -> SocketClient {
                let socket = try await SocketClient.open(server.addresses.http.port)
                try await socket.send(Self.get(path, "X-Forwarded-For: \(client)"))
                open.append(socket)
                return socket
            }
            for client in ["198.51.100.1", "198.51.100.2"] { for _ in 0..<3 { _ = try await ask(client, "/live/cam1.flv") } }
            try await eventually("players") { server.server.parts.connections.counters.current.playsWaited == 6 }
            let more = try await ask("198.51.100.1", "/live/cam1.flv").answer()
            #expect(more.head.hasPrefix("HTTP/1.1 503 ") && more.body.contains("limits.httpPerAddress"), "\(more)")
            #expect(try await ask("198.51.100.3", "/healthz").answer().body == "ok\n")
            // Repeated requests of one client on one proxy connection do not add up.
            let shared = try await ask("198.51.100.4", "/healthz")
            #expect(try await shared.answer().body == "ok\n")
            for _ in 0..<5 {
                try await shared.send(Self.get("/healthz", "X-Forwarded-For: 198.51.100.4"))
                #expect(try await shared.answer().body == "ok\n")
            }
            for socket in open { await socket.close() }
        }
    }

    // MARK: Bodies

    /// Credentials are checked with the head: the answer does not wait for a body that would be discarded.
    @Test func credentialsAreJudgedBeforeTheBody() async throws {
        try await PortlessServer.run { server in
            for (headers, status) in [
                ("", 401), ("Authorization: Bearer earshot_wrong\r\n", 401),
                ("Authorization: Bearer \(server.token)\r\nX-Path: none\r\n", 404),
            ] {
                let path = headers.contains("X-Path") ? "/api/v1/nothing" : "/api/v1/rooms"
                let socket = try await SocketClient.open(server.addresses.http.port)
                try await socket.send(
                    "POST \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\(headers)\r\n{")
                let answer = try await socket.answer()
                #expect(answer.head.hasPrefix("HTTP/1.1 \(status) "), "\(answer.head)")
                #expect(answer.head.lowercased().contains("connection: close"), "\(answer.head)")
                try await eventually("the end") { socket.isClosed }
            }
            // If the body has already arrived, the connection stays open.
            let socket = try await SocketClient.open(server.addresses.http.port)
            for _ in 0..<2 {
                try await socket.send("POST /api/v1/rooms HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}")
                let answer = try await socket.answer()
                #expect(answer.head.hasPrefix("HTTP/1.1 401 ") && !answer.head.lowercased().contains("connection: close"), "\(answer.head)")
            }
            await socket.close()
        }
    }

    @Test func bodiesHaveATime() async throws {
        try await PortlessServer.run({ $0.limits.httpBodyMs = 500 }) { server in
            let credential = "Authorization: Bearer \(server.token)\r\nContent-Type: application/json\r\n"
            for framing in ["Content-Length: 60\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"] {
                let socket = try await SocketClient.open(server.addresses.http.port)
                try await socket.send("POST /api/v1/rooms HTTP/1.1\r\nHost: 127.0.0.1\r\n\(credential)\(framing)")
                let answer = try await socket.answer()
                #expect(answer.head.hasPrefix("HTTP/1.1 408 ") && answer.body.contains("limits.httpBody"), "\(answer)")
                try await eventually("the end") { socket.isClosed }
            }
            // Bodies of play requests have the same limit.
            let player = try await SocketClient.open(server.addresses.http.port)
            try await player.send("GET /live/cam1.flv HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 60\r\n\r\n")
            #expect(try await player.answer().head.hasPrefix("HTTP/1.1 408 "))
            #expect(server.hits(.httpBody) == 3 && server.hits(.httpHead) == 0)
        }
    }

    /// An occasional byte does not count as progress.
    @Test func bodiesHaveAPace() {
        var limits = HTTPLimits()
        limits.bodyMs = 60_000
        var slow = BodyPace(limits: limits, nowMs: 1_000)
        for second in 0..<4 as Range<Int64> {
            #expect(!slow.isOverdue(nowMs: 1_000 + second * 1_000))
            slow.arrived(1)
        }
        #expect(slow.isOverdue(nowMs: 5_000))
        var quick = BodyPace(limits: limits, nowMs: 1_000)
        for second in 1..<60 as Range<Int64> {
            quick.arrived(400)
            #expect(!quick.isOverdue(nowMs: 1_000 + second * 1_000))
        }
        #expect(quick.isOverdue(nowMs: 61_000))
    }

    /// RFC 9110 §10.1.1: a good head gets 100 Continue, a bad one its answer at once.
    @Test func continuing() async throws {
        try await PortlessServer.run { server in
            let body = #"{"roomId":"c1"}"#
            let head =
                "POST /api/v1/rooms HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n"
            let good = try await SocketClient.open(server.addresses.http.port)
            try await good.send(head + "Expect: 100-continue\r\nAuthorization: Bearer \(server.token)\r\n\r\n")
            #expect(try await good.answer().head.hasPrefix("HTTP/1.1 100 "))
            try await good.send(body)
            #expect(try await good.answer().head.hasPrefix("HTTP/1.1 201 "))
            try await good.send(Self.get("/healthz"))
            #expect(try await good.answer().body == "ok\n")
            await good.close()
            let bad = try await SocketClient.open(server.addresses.http.port)
            try await bad.send(head + "Expect: 100-continue\r\n\r\n")
            let answer = try await bad.answer()
            #expect(answer.head.hasPrefix("HTTP/1.1 401 ") && answer.head.lowercased().contains("connection: close"), "\(answer.head)")
            try await eventually("the end") { bad.isClosed }
        }
    }

    // MARK: HTTP/1.0, and hosts

    @Test(arguments: ["", "Connection: keep-alive\r\n", "Host: 127.0.0.1\r\n"]) func oldClients(_ headers: String) async throws {
        try await PortlessServer.run { server in
            for (path, status, text) in [("/healthz", 200, "ok\n"), ("/api/v1/openapi.json", 200, "openapi"), ("/nothing", 404, "code")] {
                let socket = try await SocketClient.open(server.addresses.http.port)
                try await socket.send("GET \(path) HTTP/1.0\r\n\(headers)\r\n")
                try await eventually("the end") { socket.isClosed }
                let lower = socket.text.lowercased()
                #expect(lower.hasPrefix("http/1.0 \(status) ") && lower.contains("connection: close"), "\(socket.text.prefix(300))")
                #expect(lower.contains(text) && !lower.contains("transfer-encoding"), "\(socket.text.prefix(300))")
            }
        }
    }

    /// Requests with a missing or malformed Host are rejected (RFC 9112 §3.2).
    @Test(arguments: [
        "", "Host: a\r\nHost: a\r\n", "Host: a b\r\n", "Host: a, b\r\n", "Host: a/b\r\n", "Host: 127.0.0.1:x\r\n",
        "Host: 127.0.0.1:70000\r\n",
        "Host: [::1\r\n", "Host: [127.0.0.1]\r\n", "Host: a%zz\r\n",
    ]) func hostsThatAreNone(_ headers: String) async throws {
        try await PortlessServer.run { server in
            let socket = try await SocketClient.open(server.addresses.http.port)
            // Follows a good request on the same connection.
            try await socket.send(Self.get("/healthz") + "GET /healthz HTTP/1.1\r\n\(headers)\r\n" + Self.get("/healthz"))
            #expect(try await socket.answer().body == "ok\n")
            let answer = try await socket.answer()
            #expect(answer.head.hasPrefix("HTTP/1.1 400 ") && answer.body.contains("Host"), "\(answer)")
            try await eventually("the end") { socket.isClosed }
            #expect(socket.text.isEmpty)
        }
    }

    @Test func hostsThatAreHosts() {
        for host in ["", "a", "a:80", "a:", "127.0.0.1:8080", "[::1]", "[2001:db8::1]:443", "live.example.com", "a_b", "x%20y", "a,b"] {
            #expect(HTTPConnectionHandler.isHost(host), "\(host)")
        }
        for host in ["a b", "a@b", "a:b", "a:1:2", "::1", "[::1]x", "[]", "a:123456", "a?", "\u{e9}"] {
            #expect(!HTTPConnectionHandler.isHost(host), "\(host)")
        }
    }

    /// 405 names the allowed methods, as in the API (RFC 9110 §15.5.6).
    @Test func otherMethodsAreNamed() async throws {
        try await PortlessServer.run { server in
            for (path, allow) in [
                ("/healthz", "GET, HEAD"), ("/readyz", "GET, HEAD"), ("/readyz/play", "GET, HEAD"), ("/readyz/publish", "GET, HEAD"),
                ("/metrics", "GET, HEAD"),
                ("/events", "GET"),
                ("/live/cam1.flv", "GET, HEAD, OPTIONS"), ("/live/cam1.mp4", "GET, HEAD, OPTIONS"),
                ("/live/cam1.m3u8", "GET, HEAD, OPTIONS"),
                ("/live/cam1.hls/media.m3u8", "GET, HEAD, OPTIONS"),
            ] {
                for method in ["POST", "DELETE", "PUT", "PATCH", "TRACE"] {
                    let answer = try await RawHTTP.send(
                        "\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", to: server)
                    #expect(answer.hasPrefix("HTTP/1.1 405 "), "\(method) \(path): \(answer.prefix(200))")
                    #expect(answer.contains("\r\nAllow: \(allow)\r\n"), "\(method) \(path): \(answer.prefix(400))")
                }
            }
            for path in ["/nothing", "/live/cam1", "/api/v1/nothing"] {
                #expect(try await HTTPAnswer.call("POST", server.http + path).status == 404, "\(path)")
            }
        }
    }

    /// An authorized call's body is charged to the memory ledger while it is read.
    @Test func bodiesAreCharged() async throws {
        try await PortlessServer.run { server in
            let ledger = server.server.parts.memory.ledger
            let before = ledger.used
            let socket = try await SocketClient.open(server.addresses.http.port)
            try await socket.send(
                "POST /api/v1/rooms HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer \(server.token)\r\n"
                    + "Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n")
            try await socket.send([UInt8](repeating: 0x20, count: 40_000))
            try await eventually("what has come to be charged") { ledger.used - before >= 40_000 }
            #expect(ledger.used - before <= 192 << 10)
            await socket.close()
            try await eventually("it to be given back") { ledger.used == before }
        }
    }
}
