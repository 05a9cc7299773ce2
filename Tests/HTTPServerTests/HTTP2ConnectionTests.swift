import Foundation
import PortlessTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

/// HTTP/2 on the HTTPS port, frame by frame: limits, refusals and protocol errors.
@Suite struct HTTP2ConnectionTests {
    /// Error codes (RFC 9113 §7).
    private enum Code {
        static let none = 0
        static let protocolError = 1
        static let cancel = 8
        static let enhanceYourCalm = 11
    }

    @Test func manyRequestsOnOneConnection() async throws {
        try await PortlessServer.runSecure { server in
            let client = try await HTTP2Client.open(server.secure)
            let streams = stride(from: 1, to: 81, by: 2)
            try await client.send(streams.flatMap { HTTP2Client.request($0 % 4 == 1 ? "/healthz" : "/nothing", on: $0) })
            for stream in streams {
                let answer = try await client.answer(stream)
                #expect(answer.status == (stream % 4 == 1 ? 200 : 404) && answer.isEnded && answer.reset == nil, "\(stream): \(answer)")
            }
            #expect(client.frames.contains { $0.kind == .settings && $0.flags == 0 })
            #expect(client.goAways.isEmpty && !client.isClosed)
            await client.close()
        }
    }

    /// Errors arrive on their stream, in the API's form and without connection headers. The connection goes on.
    @Test func refusals() async throws {
        try await PortlessServer.runSecure { server in
            let client = try await HTTP2Client.open(server.secure)
            let long = String(repeating: "a", count: 40_000)
            let many = (0..<150).map { ("x-\($0)", "a") }
            let cases: [([(String, String)], Int, String)] = [
                ([(":method", "GET"), (":scheme", "https"), (":path", "/live/none.flv")], 404, "no live stream"),
                ([(":method", "GET"), (":scheme", "https"), (":path", "/live/none.mp4")], 404, "no live stream"),
                ([(":method", "GET"), (":scheme", "https"), (":path", "/live/a%00.flv")], 400, "control character"),
                ([(":method", "GET"), (":scheme", "https"), (":path", "/events")], 426, "over HTTP/1.1"),
                ([(":method", "CONNECT"), (":authority", "example.com:443")], 501, "CONNECT"),
                ([(":method", "GET"), (":scheme", "https"), (":path", "/healthz"), ("x-a", long)], 431, "too large"),
                ([(":method", "GET"), (":scheme", "https"), (":path", "/\(long)")], 431, "too large"),
                ([(":method", "GET"), (":scheme", "https"), (":path", "https://other.example/healthz")], 400, ":path is not a path"),
                ([(":method", "GET"), (":scheme", "https"), (":path", "*")], 400, ":path is not a path"),
                ([(":method", "GET"), (":scheme", "https"), (":path", "/healthz")] + many, 431, "too large"),
                ([(":method", "GET"), (":scheme", "http"), (":path", "/api/v1/streams")], 401, "token"),
            ]
            for (index, (fields, status, words)) in cases.enumerated() {
                let stream = 2 * index + 1
                try await client.send(HTTP2Client.head(fields, on: stream))
                let answer = try await client.answer(stream)
                #expect(answer.status == status && answer.text.contains(words), "\(fields.prefix(4)): \(answer)")
                #expect(try answer.json()["code"].int == status)
                #expect(Set(answer.headers.keys).isDisjoint(with: ["connection", "transfer-encoding", "upgrade", "keep-alive"]))
                #expect(answer.headers["x-request-id"]?.isEmpty == false)
            }
            try await client.get("/healthz", on: 101)
            #expect(try await client.answer(101).text == "ok\n")
            await client.close()
        }
    }

    /// The client's address and access are determined as on any other connection.
    @Test func whoAsks() async throws {
        try await PortlessServer.runSecure({ $0.access.trustedProxies = CIDR.loopback }) { server in
            let client = try await HTTP2Client.open(server.secure)
            let token = ("authorization", "Bearer \(server.token)")
            let cases: [(String, [(String, String)], Int)] = [
                ("/api/v1/streams", [token], 200), ("/api/v1/streams", [], 401),
                ("/api/v1/streams", [token, ("x-forwarded-for", "127.0.0.1")], 403),
                ("/api/v1/streams", [token, ("x-forwarded-for", "::ffff:127.0.0.1")], 403),
                ("/api/v1/streams", [token, ("x-forwarded-for", "203.0.113.9")], 403),
                ("/live/none.flv", [], 404), ("/live/none.flv", [("x-forwarded-for", "203.0.113.9")], 403),
                ("/live/none.m3u8", [("x-forwarded-for", "203.0.113.9")], 403),
            ]
            for (index, (path, headers, status)) in cases.enumerated() {
                try await client.get(path, on: 2 * index + 1, headers)
                let answer = try await client.answer(2 * index + 1)
                #expect(answer.status == status, "\(path) \(headers.count): \(answer.text)")
            }
            await client.close()
        }
    }

    /// A request that HTTP/2 does not allow is an error of its stream only.
    @Test(arguments: [
        [(":method", "GET"), (":scheme", "https"), (":path", "/healthz"), ("upgrade", "websocket"), ("connection", "upgrade")],
        [(":method", "GET"), (":scheme", "https"), (":path", "/healthz"), ("transfer-encoding", "chunked")],
        [(":method", "GET"), (":scheme", "https"), (":path", "/healthz"), ("X-Upper", "a")],
        [(":method", "GET"), (":path", "/healthz")],
        [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "https"), (":authority", "h"), (":path", "/events")],
    ]) func malformedRequests(_ fields: [(String, String)]) async throws {
        try await PortlessServer.runSecure { server in
            let client = try await HTTP2Client.open(server.secure)
            try await client.send(HTTP2Client.head(fields, on: 1) + HTTP2Client.request("/healthz", on: 3))
            #expect(try await client.answer(3).text == "ok\n")
            #expect(try await client.answer(1).reset == Code.protocolError)
            #expect(!client.isClosed)
            await client.close()
        }
    }

    /// A head above the announced limits gets no answer: the connection ends with GOAWAY.
    @Test func headsWithoutEnd() async throws {
        try await PortlessServer.runSecure { server in
            let client = try await HTTP2Client.open(server.secure)
            let fields = (0..<40).map { ("x-\($0)", String(repeating: "a", count: 4_000)) }
            try await client.send(HTTP2Client.request("/healthz", on: 1, fields))
            try await eventually("the end") { client.isClosed }
            #expect(client.goAways.first?.code != Code.none && !client.goAways.isEmpty)
            #expect(try await HTTPAnswer.get("\(server.http)/healthz").status == 200)
        }
    }

    /// CVE-2023-44487 (rapid reset), and floods of frames that require an answer.
    @Test(arguments: ["resets", "pings", "settings", "continuations", "empty data"]) func floods(_ kind: String) async throws {
        try await PortlessServer.runSecure { server in
            let client = try await HTTP2Client.open(server.secure)
            let frames: [HTTP2WireFrame] =
                switch kind {
                case "resets":
                    (0..<400).flatMap { index in
                        HTTP2Client.request("/healthz", on: 2 * index + 1)
                            + [HTTP2WireFrame(.reset, stream: 2 * index + 1, HTTP2WireFrame.word(Code.cancel))]
                    }
                case "pings": (0..<1_000).map { _ in HTTP2WireFrame(.ping, [UInt8](repeating: 1, count: 8)) }
                case "settings": (0..<1_000).map { _ in HTTP2WireFrame(.settings) }
                case "continuations":
                    [HTTP2WireFrame(.headers, stream: 1)] + (0..<1_000).map { _ in HTTP2WireFrame(.continuation, stream: 1) }
                default:
                    HTTP2Client.request("/nothing", on: 1, method: "POST", ends: false)
                        + (0..<1_000).map { _ in HTTP2WireFrame(.data, stream: 1) }
                }
            try await client.send(frames)
            try await eventually("the end") { client.isClosed }
            #expect(client.goAways.first?.code == Code.enhanceYourCalm, "\(client.goAways)")
            #expect(try await HTTPAnswer.get("\(server.http)/healthz").status == 200)
        }
    }

    /// Only the streams over the limit are refused.
    @Test func streamsAreCounted() async throws {
        try await PortlessServer.runSecure { server in
            let client = try await HTTP2Client.open(server.secure)
            let limit = try client.frames.first { $0.kind == .settings && $0.flags == 0 }.orThrow()
            #expect(limit.payload.prefix(6) == [0, 3, 0, 0, 0, 100])
            // None of these requests ends.
            let streams = stride(from: 1, through: 199, by: 2)
            // At once: a request's body has only so much time.
            try await client.send(
                streams.flatMap { HTTP2Client.request("/healthz", on: $0, method: "POST", ends: false) }
                    + HTTP2Client.request("/healthz", on: 201))
            let outcome = try await eventuallyRefused(client, 201)
            #expect(outcome)
            #expect(try await HTTPAnswer.get("\(server.http)/healthz").status == 200)
            await client.close()
        }
    }

    private func eventuallyRefused(_ client: HTTP2Client, _ stream: Int) async throws -> Bool {
        try await eventually("a refusal") { client.soFar(stream).reset != nil || !client.goAways.isEmpty }
        return client.soFar(stream).status == nil
    }
}
