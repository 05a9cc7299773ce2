import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// Limits and waits of the HTTP port, changed by a reload. The former values are so long that no test would wait for them.
@Suite struct ReloadHTTPTests {
    private static func get(_ path: String) -> String { "GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" }

    @Test func times() async throws {
        try await ReloadingServer.run([
            "limits.httpHead": "1h", "limits.httpBody": "1h", "limits.httpIdle": "1h", "http.firstWait": "50s",
        ]) { server in
            let port = try server.httpPort
            try await server.makeRoom("cam1")
            try await server.apply(["limits.httpHead": "2s", "limits.httpBody": "1h", "limits.httpIdle": "1h", "http.firstWait": "50s"])
            let silent = try await SocketClient.open(port)
            try await eventually("the silent one's end") { silent.isClosed }
            // A busy machine may need a while to send a head.
            try await server.apply(["limits.httpHead": "1h", "limits.httpBody": "1h", "limits.httpIdle": "1h", "http.firstWait": "0s"])
            let player = try await SocketClient.open(port)
            try await player.send(Self.get("/live/cam1.flv"))
            #expect(try await player.answer(within: 45).head.hasPrefix("HTTP/1.1 404 "))

            try await server.apply(["limits.httpHead": "1h", "limits.httpBody": "300ms", "limits.httpIdle": "300ms"])
            let slow = try await SocketClient.open(port)
            try await slow.send(
                "POST /api/v1/rooms HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer \(server.earshot.token)\r\n"
                    + "Content-Type: application/json\r\nContent-Length: 20000\r\n\r\n")
            // Fast enough for the least rate of bodies: all of it would be there after five seconds, and is no JSON.
            for _ in 0..<100 where slow.received.isEmpty && !slow.isClosed {
                _ = try? await slow.send([UInt8](repeating: 32, count: 200))
                try await Task.sleep(for: .milliseconds(50))
            }
            let answer = try await slow.answer(within: 60)
            #expect(answer.head.hasPrefix("HTTP/1.1 408 ") && answer.body.contains("limits.httpBody"), "\(answer)")
            let idle = try await SocketClient.open(port)
            try await idle.send(Self.get("/healthz"))
            #expect(try await idle.answer().body == "ok\n")
            try await eventually("the idle one's end") { idle.isClosed }
        }
    }

    /// The addresses in the next answer to a player by WebRTC.
    @Test func addresses() async throws {
        try await ReloadingServer.run { server in
            try await server.makeRoom("cam1")
            let offer =
                "v=0\r\na=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\na=fingerprint:sha-256 "
                + Array(repeating: "00", count: 32).joined(separator: ":") + "\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=recvonly\r\n"
            func candidates() async throws -> [String] {
                let answer = try await HTTPAnswer.call(
                    "POST", "http://127.0.0.1:\(server.httpPort)/whep/live/cam1", body: Data(offer.utf8),
                    headers: ["Content-Type": "application/sdp"])
                #expect(answer.status == 201, "\(answer.text)")
                return answer.text.split(separator: "\r\n").filter { $0.hasPrefix("a=candidate:") && $0.contains(" udp ") }.map {
                    String($0.split(separator: " ")[4])
                }
            }
            #expect(try await candidates() == ["127.0.0.1"])
            try await server.apply(["webrtc.addresses": "[203.0.113.7, \"2001:db8::7\"]"])
            #expect(try await candidates() == ["203.0.113.7", "2001:db8::7"])
        }
    }

    /// Players that wait for a publisher hold their places.
    @Test func places() async throws {
        try await ReloadingServer.run(["http.firstWait": "50s"]) { server in
            let port = try server.httpPort
            try await server.makeRoom("cam1")
            /// Opens players until one is refused with this text.
            func refused(_ text: String, from address: String, most: Int) async throws -> Int {
                var players: [SocketClient] = []
                for _ in 0..<most {
                    let player = try await SocketClient.open(port, from: address)
                    players.append(player)
                    // The server may have closed it on arrival.
                    _ = try? await player.send(Self.get("/live/cam1.flv"))
                }
                let open = players
                try await eventually(text) { open.contains { $0.text.contains(text) } }
                let count = open.count { $0.text.contains(text) }
                for player in open { await player.close() }
                return count
            }
            try await server.apply(["http.firstWait": "50s", "limits.httpPerAddress": "3"])
            #expect(try await refused("(limits.httpPerAddress)", from: "127.0.0.9", most: 4) == 1)
            try await server.apply(["http.firstWait": "50s", "limits.httpConnections": "16"])
            #expect(try await refused("(limits.httpConnections)", from: "127.0.0.9", most: 20) > 0)
        }
    }

    /// A proxy's connections begin with its header once it is one.
    @Test func proxies() async throws {
        try await ReloadingServer.run { server in
            func answer(_ bytes: String) async throws -> String? {
                let socket = try await SocketClient.open(server.httpPort, from: "127.0.0.7")
                try await socket.send(bytes)
                let answer = try? await socket.answer()
                await socket.close()
                return answer?.body
            }
            let header = "PROXY TCP4 192.0.2.8 127.0.0.1 4000 8080\r\n"
            #expect(try await answer(Self.get("/healthz")) == "ok\n")
            #expect(try await answer(header + Self.get("/healthz")) != "ok\n")
            try await server.apply(["access.proxyProtocolFrom": "[127.0.0.7]"])
            #expect(try await answer(Self.get("/healthz")) != "ok\n")
            try await server.logs("no PROXY protocol header")
            #expect(try await answer(header + Self.get("/healthz")) == "ok\n")
        }
    }
}
