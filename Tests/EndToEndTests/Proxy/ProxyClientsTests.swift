import Foundation
import NIOCore
import RTMP
import RTMPTestSupport
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer
@testable import Listening
@testable import Streaming

/// A live server behind TCP proxies: every port uses the client address from the header.
@Suite struct ProxyClientsTests {
    private static let stranger = "203.0.113.9"
    /// Of a network whose addresses need no credential.
    private static let near = "192.0.2.7"
    /// One of loopback's many addresses. The tests call the API from the usual one.
    private static let proxy = "127.0.0.2"

    private static func v1(_ address: String = stranger, port: Int = 40_000) -> [UInt8] {
        Array("PROXY TCP4 \(address) 198.51.100.1 \(port) 1935\r\n".utf8)
    }

    private static func v2(_ address: [UInt8] = [203, 0, 113, 9]) -> [UInt8] {
        ProxyBytes.v2(0x21, 0x11, address + [198, 51, 100, 1, 0x9C, 0x40, 0x07, 0x8F])
    }

    /// Opens an RTMP connection behind a proxy that sends this header first.
    private static func client(_ server: TestServer, _ header: [UInt8]) async throws -> RawClient {
        let client = try await RawClient.open(server.port, .from(self.proxy))
        try await client.channel.writeAndFlush(ByteBuffer(bytes: header))
        return client
    }

    private static func trusting(_ config: inout ServerConfig) {
        config.access.proxyProtocolFrom = [CIDR.address([127, 0, 0, 2])]
        for list in [\ServerConfig.access.publishFrom, \.access.playFrom, \.access.apiFrom] {
            config[keyPath: list].append(CIDR.address([192, 0, 2, 7]))
        }
        config.rooms.autoCreate = .always
    }

    /// Admission, log and list use the header's address, not the socket's.
    @Test(arguments: [1, 2]) func rtmpClientsAreTheHeaders(_ version: Int) async throws {
        try await TestServer.run(Self.trusting) { server in
            let local = version == 1 ? Self.v1(Self.near) : Self.v2([192, 0, 2, 7])
            let camera = try await Self.client(server, local)
            try await camera.handshake()
            try await camera.connect(app: "live")
            try await camera.publish("cam1", on: camera.createStream())
            camera.send(.video, SyntheticTag.videoHeader)
            camera.send(.video, SyntheticTag.video(1, isKeyframe: true, bytes: 2_000))
            // A viewer with the same header, whose media goes straight to its socket.
            let viewer = try await Self.client(server, local)
            try await viewer.handshake()
            try await viewer.connect(app: "live")
            try await viewer.play("cam1", on: viewer.createStream())
            try await eventually("media") { viewer.received.contains { $0.message.type == .video } }
            try await server.wait("sessions") { list in
                list["total"].int == 2 && list["list"].list.allSatisfy { $0["address"].string == "\(Self.near):40000" }
            }
            // A client from elsewhere needs a credential, although the proxy's own address needs none.
            let stranger = try await Self.client(server, version == 1 ? Self.v1() : Self.v2())
            try await stranger.handshake()
            try await stranger.connect(app: "live")
            _ = try await stranger.createStream()
            try? await stranger.play("cam1")
            try await stranger.waitUntilClosed()
            #expect(stranger.statuses.last?.description.contains(Self.stranger) == true, "\(stranger.statuses)")
            #expect(await server.lines.comes("Connection closed", "remote=\(Self.stranger):40000", "reason=credential_missing"))
            for client in [camera, viewer] { await client.close() }
        }
    }

    /// Header and request arrive one byte at a time.
    @Test func theHeaderMayComeByteByByte() async throws {
        try await TestServer.run(Self.trusting) { server in
            for header in [Self.v1(Self.near), Self.v2([192, 0, 2, 7])] {
                let socket = try await SocketClient.open(server.addresses.http.port, from: Self.proxy)
                for byte in header + Array("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8) { try await socket.send([byte]) }
                #expect(try await socket.answer().body == "ok\n")
                await socket.close()
            }
        }
    }

    @Test(arguments: [1, 2]) func httpClientsAreTheHeaders(_ version: Int) async throws {
        try await TestServer.run(Self.trusting) { server in
            let camera = try await Self.client(server, Self.v1(Self.near))
            try await camera.handshake()
            try await camera.connect(app: "live")
            try await camera.publish("cam1", on: camera.createStream())
            camera.send(.video, SyntheticTag.videoHeader)
            camera.send(.video, SyntheticTag.video(1, isKeyframe: true, bytes: 2_000))
            func ask(_ header: [UInt8], _ path: String, _ more: String = "") async throws -> (head: String, body: String) {
                let socket = try await SocketClient.open(server.addresses.http.port, from: Self.proxy)
                try await socket.send(header + Array("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\(more)\r\n".utf8))
                defer { Task { await socket.close() } }
                return try await socket.answer()
            }
            let (local, elsewhere) = version == 1 ? (Self.v1(Self.near), Self.v1()) : (Self.v2([192, 0, 2, 7]), Self.v2())
            let token = "Authorization: Bearer \(server.token)\r\n"
            #expect(try await ask(local, "/api/v1/streams", token).head.contains(" 200 "))
            let kept = try await ask(elsewhere, "/api/v1/streams", token)
            #expect(kept.head.contains(" 403 ") && kept.body.contains("access.apiFrom"), "\(kept)")
            for path in ["/live/cam1.flv", "/live/cam1.m3u8", "/live/cam1.mp4"] {
                let refused = try await ask(elsewhere, path)
                #expect(refused.head.contains(" 403 ") && refused.body.contains(Self.stranger), "\(path): \(refused)")
            }
            #expect(try await ask(local, "/live/cam1.flv").head.contains(" 200 "))
            // X-Forwarded-For from the client itself is still not trusted.
            let forged = try await ask(elsewhere, "/live/cam1.flv", "X-Forwarded-For: 127.0.0.1\r\n")
            #expect(forged.head.contains(" 403 "), "\(forged)")
            await camera.close()
        }
    }

    /// The header precedes TLS. curl writes it, as an independent implementation.
    @Test func overTLS() async throws {
        try await TestServer.runSecure(Self.trusting) { server in
            for (scheme, port) in [("https", try server.addresses.https.orThrow().port), ("http", server.addresses.http.port)] {
                let url = "\(scheme)://127.0.0.1:\(port)/api/v1/streams"
                let asked = try await ClientProcess.run(
                    [
                        "curl", "-sk", "--interface", Self.proxy, "--haproxy-protocol", "-H", "Authorization: Bearer \(server.token)",
                        "-w", "%{http_code}", url,
                    ])
                // Its header names an address of loopback, which never makes a client local.
                #expect(asked.text.hasSuffix("403"), "\(scheme): \(asked.text) \(asked.errors)")
                let without = try await ClientProcess.run(["curl", "-sk", "--interface", Self.proxy, url])
                #expect(without.status != 0, "\(scheme): \(without.text)")
            }
            // RTMPS rejects a TLS hello without the header.
            let hello: [UInt8] = [0x16, 0x03, 0x01]
            let port = try server.addresses.rtmps.orThrow().port
            let socket = try await SocketClient.open(port, from: Self.proxy)
            try await socket.send(hello)
            try await eventually("the end") { socket.isClosed }
            try await eventually("three refusals") { server.closed(.proxyHeader) == 3 }
        }
    }

    /// A missing, foreign or incomplete header closes the connection. Each case is counted and logged once.
    @Test func withoutTheHeaderNobodyComesIn() async throws {
        try await TestServer.run({
            Self.trusting(&$0)
            $0.limits.handshakeMs = 300
        }) { server in
            for port in [server.port, server.addresses.http.port] {
                for bytes in [
                    Array("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8), [3] + [UInt8](repeating: 0, count: 1_536), [],
                    Self.v1().dropLast(3),
                ]
                    as [[UInt8]]
                {
                    let before = server.closed(.proxyHeader)
                    let socket = try await SocketClient.open(port, from: Self.proxy)
                    // The server may have closed it before.
                    _ = try? await socket.send(bytes)
                    try await eventually("the end") { socket.isClosed }
                    #expect(socket.received.isEmpty, "\(socket.text)")
                    try await eventually("the counter") { server.closed(.proxyHeader) == before + 1 }
                }
            }
            let lines = server.lines.all.filter { $0.contains("Connection closed") && $0.contains("reason=proxy_header") }
            #expect(
                lines.count == 8 && lines.allSatisfy { $0.contains("PROXY protocol header") && $0.contains("remote=\(Self.proxy):") },
                "\(lines)")
            try await eventually("nobody is left") {
                let counters = server.server.parts.connections.counters.current
                return counters.connectionsAccepted == counters.closed.values.reduce(0, +)
            }
        }
    }

    /// A header from an address that is no trusted proxy is garbage like any other.
    @Test func strangersHeadersAreNotRead() async throws {
        for networks in [[], [try CIDR(parsing: "192.0.2.1")]] {
            try await TestServer.run({ $0.access.proxyProtocolFrom = networks }) { server in
                for header in [Self.v1(Self.near), Self.v2([192, 0, 2, 7])] {
                    let client = try await Self.client(server, header)
                    try await server.expectClosed(client, .notRTMP)
                    let socket = try await SocketClient.open(server.addresses.http.port, from: Self.proxy)
                    try await socket.send(header + Array("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
                    #expect(try await socket.answer().head.contains(" 400 "))
                }
                #expect(server.closed(.proxyHeader) == 0)
            }
        }
    }

    /// A proxy's own check (LOCAL) counts as the proxy. A client of unknown address always needs a credential.
    @Test func localAndUnknown() async throws {
        try await TestServer.run(Self.trusting) { server in
            let check = try await Self.client(server, ProxyBytes.v2(0x20, 0, []))
            try await check.handshake()
            try await check.connect(app: "live")
            try await check.publish("cam1", on: check.createStream())
            for header in [Array("PROXY UNKNOWN\r\n".utf8), ProxyBytes.v2(0x21, 0, [])] {
                let unknown = try await Self.client(server, header)
                try await unknown.handshake()
                try await unknown.connect(app: "live")
                _ = try await unknown.createStream()
                try? await unknown.play("cam1")
                try await unknown.waitUntilClosed()
                #expect(unknown.statuses.last?.description.contains("an unknown address") == true, "\(unknown.statuses)")
            }
            await check.close()
        }
    }

    /// Limits count clients, not proxies.
    @Test func limitsGoByTheClient() async throws {
        try await TestServer.run({
            Self.trusting(&$0)
            $0.limits.connectionsPerAddress = 1
        }) { server in
            let first = try await Self.client(server, Self.v1())
            try await first.handshake()
            let other = try await Self.client(server, Self.v1("203.0.113.10"))
            try await other.handshake()
            // Of the first one's client, whose place it takes.
            let second = try await Self.client(server, Self.v2())
            try await first.waitUntilClosed()
            try await eventually("the counter") { server.closed(.tooManyFromAddress) == 1 }
            for client in [second, other] { await client.close() }
        }
    }

    /// So do the limits of HTTP.
    @Test func httpLimitsGoByTheClient() async throws {
        try await TestServer.run({
            Self.trusting(&$0)
            $0.limits.httpPerAddress = 1
            $0.access.playFrom = CIDR.any
            $0.http.firstWaitMs = 600_000
        }) { server in
            try await server.makeRoom("cam1")
            var open: [SocketClient] = []
            for (address, path) in [("203.0.113.9", "/live/cam1.flv"), ("203.0.113.10", "/live/cam1.flv")] {
                let socket = try await SocketClient.open(server.addresses.http.port, from: Self.proxy)
                try await socket.send(Self.v1(address) + Array("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".utf8))
                open.append(socket)
            }
            try await eventually("players") { server.server.parts.connections.counters.current.playsWaited == 2 }
            let more = try await SocketClient.open(server.addresses.http.port, from: Self.proxy)
            try await more.send(Self.v1("203.0.113.9") + Array("GET /live/cam1.flv HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".utf8))
            let answer = try await more.answer()
            #expect(answer.head.hasPrefix("HTTP/1.1 503 ") && answer.body.contains("limits.httpPerAddress"), "\(answer)")
            for socket in open + [more] { await socket.close() }
        }
    }

    /// HAProxy as in docs/operations/network.md, with either version, in front of RTMP and HTTP.
    @Test(arguments: ["send-proxy", "send-proxy-v2"]) func behindHAProxy(_ way: String) async throws {
        try await TestServer.run(Self.trusting) { server in
            try await Fixture.withDirectory { directory in
                let (rtmp, http) = (try await FreePort.reserve(), try await FreePort.reserve())
                let file = directory.appendingPathComponent("haproxy.cfg")
                try """
                defaults
                    mode tcp
                    timeout connect 5s
                    timeout client 30s
                    timeout server 30s
                listen rtmp
                    bind 127.0.0.1:\(rtmp)
                    server earshot 127.0.0.1:\(server.port) source \(Self.proxy) \(way)
                listen http
                    bind 127.0.0.1:\(http)
                    server earshot 127.0.0.1:\(server.addresses.http.port) source \(Self.proxy) \(way)

                """.write(to: file, atomically: true, encoding: .utf8)
                let proxy = try ClientProcess(["haproxy", "-db", "-f", file.path])
                defer { proxy.send(SIGKILL) }
                try await eventually("haproxy") {
                    guard proxy.isRunning else { throw TimedOut(description: "haproxy ended: \(proxy.errorsSoFar)") }
                    do { return try await HTTPAnswer.get("http://127.0.0.1:\(http)/healthz").status == 200 } catch is URLError {
                        return false
                    }
                }
                // HAProxy names the client's own address, which is one of loopback and so nobody's: the push needs a credential.
                let camera = try await RawClient.connected(rtmp, .from("127.0.0.77"))
                try? await camera.publish("cam1", on: camera.createStream())
                try await camera.waitUntilClosed()
                #expect(camera.statuses.last?.description.contains("an unknown address") == true, "\(camera.statuses)")
            }
        }
    }
}
