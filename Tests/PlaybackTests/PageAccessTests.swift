import Foundation
import PortlessTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

/// Pages of other origins: the rules for playing.
@Suite struct PageAccessTests {
    /// Runs a server with a live stream. `signed` is the query that plays it.
    private static func live(
        _ configure: @escaping @Sendable (inout ServerConfig) -> Void = { _ in },
        _ body: @escaping @Sendable (_ server: PortlessServer, _ signed: String) async throws -> Void
    ) async throws {
        let tags = try await FLVTag.media(of: Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 2))
        try await PortlessServer.run({
            $0.credentials.key = "a key for tests"
            configure(&$0)
        }) { server in
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            try await publisher.send(tags)
            try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
            try await body(server, "?\(TestCredential.signed("cam1", key: "a key for tests"))")
            await publisher.close()
        }
    }

    private static func upgrade(_ server: PortlessServer, _ path: String, origin: String?) async throws -> String {
        let socket = try await SocketClient.open(server.addresses.http.port)
        var head = "GET \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(server.addresses.http.port)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        head += "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        if let origin { head += "Origin: \(origin)\r\n" }
        try await socket.send("\(head)\r\n")
        let (answer, _) = try await socket.answer()
        await socket.close()
        return String(answer.prefix { $0 != "\r\n" })
    }

    /// Browsers let any page open WebSockets to any host. The server decides which pages may.
    @Test(arguments: ["*", "https://good.example", ""]) func webSockets(_ allowed: String) async throws {
        try await Self.live({ $0.http.allowOrigin = allowed.isEmpty ? [] : [allowed] }) { server, signed in
            let own = "http://127.0.0.1:\(server.addresses.http.port)"
            let isNamed = allowed == "https://good.example"
            // Origin; allowed with a credential; allowed without.
            let expected = [
                (nil, true, true), (own, true, true), ("https://good.example", allowed != "", isNamed),
                ("https://evil.example", allowed == "*", false), ("null", allowed == "*", false),
                ("https://good.example.evil.example", allowed == "*", false),
            ]
            for (origin, isLetInSigned, isLetIn) in expected {
                for format in ["flv", "fmp4"] {
                    let line = try await Self.upgrade(server, "/live/cam1.\(format)\(signed)", origin: origin)
                    #expect(line.contains(isLetInSigned ? " 101 " : " 403 "), "signed \(format) for \(origin ?? "no page"): \(line)")
                    let open = try await Self.upgrade(server, "/live/cam1.\(format)", origin: origin)
                    #expect(open.contains(isLetIn ? " 101 " : " 403 "), "\(format) for \(origin ?? "no page"): \(open)")
                }
            }
        }
    }

    /// A wrong credential does not bypass the rules.
    @Test func aWrongCredentialIsRefused() async throws {
        try await Self.live { server, _ in
            for query in ["?token=x", "?txSecret=00&txTime=7FFFFFFF", "?txTime=7FFFFFFF"] {
                for path in ["flv", "mp4", "m3u8"] {
                    let head = try await Self.head(server, "/live/cam1.\(path)\(query)", ["Origin: https://evil.example"])
                    #expect(head.hasPrefix("http/1.1 403"), "\(query): \(head)")
                }
            }
        }
    }

    /// A script's own headers need a preflight by its browser first (Fetch §4.8).
    @Test(arguments: ["flv", "mp4", "m3u8"]) func preflights(_ format: String) async throws {
        try await PortlessServer.run { server in
            let answer = try await HTTPAnswer.call(
                "OPTIONS", "\(server.http)/live/cam1.\(format)?token=x", headers: ["Origin": "https://a.example"])
            #expect(answer.status == 204 && answer.headers["access-control-allow-origin"] == "*")
            #expect(answer.headers["access-control-allow-headers"]?.contains("range") == true)
            let without = try await HTTPAnswer.call(
                "OPTIONS", "\(server.http)/live/cam1.\(format)", headers: ["Origin": "https://a.example"])
            #expect(without.status == 403 && without.headers["access-control-allow-origin"] == "*")
        }
    }

    /// Sends one request as a browser would. Returns the answer's head, in lower case.
    private static func head(
        _ server: PortlessServer, _ path: String, host: String? = nil, _ lines: [String] = [], method: String = "GET"
    ) async throws -> String {
        let socket = try await SocketClient.open(server.addresses.http.port)
        let host = host ?? "127.0.0.1:\(server.addresses.http.port)"
        try await socket.send(([("\(method) \(path) HTTP/1.1"), "Host: \(host)"] + lines).joined(separator: "\r\n") + "\r\n\r\n")
        var head = ""
        try await eventually("an answer to \(path)") {
            guard let end = socket.text.range(of: "\r\n\r\n") else { return false }
            head = socket.text[..<end.lowerBound].lowercased()
            return true
        }
        await socket.close()
        return head
    }
}
