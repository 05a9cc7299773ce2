import EarshotServer
import Foundation
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import Delivery
@testable import Listening
@testable import ServerConfiguration

/// HTTP/2 on the HTTPS port, frame by frame: limits, refusals, protocol errors and shutdown.
@Suite struct HTTP2ConnectionTests {
    /// Error codes (RFC 9113 §7).
    private enum Code {
        static let none = 0
        static let protocolError = 1
        static let cancel = 8
        static let enhanceYourCalm = 11
    }

    @Test func manyRequestsOnOneConnection() async throws {
        try await TestServer.runSecure { server in
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
        try await TestServer.runSecure { server in
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
        try await TestServer.runSecure({ $0.access.trustedProxies = CIDR.loopback }) { server in
            let client = try await HTTP2Client.open(server.secure)
            let token = ("authorization", "Bearer \(server.token)")
            let cases: [(String, [(String, String)], Int)] = [
                ("/api/v1/streams", [token], 200), ("/api/v1/streams", [], 401),
                ("/api/v1/streams", [token, ("x-forwarded-for", "127.0.0.1")], 200),
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
        try await TestServer.runSecure { server in
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
        try await TestServer.runSecure { server in
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
        try await TestServer.runSecure { server in
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
        try await TestServer.runSecure { server in
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

    @Test func timeLimits() async throws {
        try await TestServer.runSecure({
            $0.limits.httpHeadMs = 8_000
            $0.limits.httpIdleMs = 4_000
        }) { server in
            let mute = try await SocketClient.open(server.secure)
            let silent = try await HTTP2Client.open(server.secure, greets: false)
            let greeter = try await HTTP2Client.open(server.secure)
            let unfinished = try await HTTP2Client.open(server.secure)
            var half = HTTP2Client.request("/healthz", on: 1)
            half[0].flags = 1
            try await unfinished.send(half)
            let idle = try await HTTP2Client.open(server.secure)
            try await idle.get("/healthz", on: 1)
            #expect(try await idle.answer(1).text == "ok\n")
            for client in [silent, greeter, unfinished, idle] { try await eventually("the end") { client.isClosed } }
            try await eventually("the end of what is no TLS") { mute.isClosed }
            #expect(greeter.goAways.map(\.code) == [Code.none])
            #expect(idle.goAways.map(\.code) == [Code.none] && idle.goAways.map(\.last) == [1])
        }
    }

    /// A connection over the limit is not offered HTTP/2, and gets its 503 over HTTP/1.1.
    @Test func connectionsAreCounted() async throws {
        try await TestServer.runSecure({
            $0.limits.httpConnections = 2
            $0.http.firstWaitMs = 600_000
        }) { server in
            try await server.makeRoom("cam1")
            let first = try await HTTP2Client.open(server.secure)
            let second = try await HTTP2Client.open(server.secure)
            for client in [first, second] { try await client.get("/live/cam1.flv", on: 1) }
            try await eventually("players") { server.server.parts.connections.counters.current.playsWaited == 2 }
            let refused = try await ClientProcess.run(["curl", "-sk", "-i", "--http2", "\(server.https)/api/v1/rooms"])
            #expect(refused.text.hasPrefix("HTTP/1.1 503 ") && refused.text.contains("limits.httpConnections"), "\(refused.text)")
            await first.close()
            try await eventually("a place") {
                try await ClientProcess.run(["curl", "-sk", "--http2", "\(server.https)/healthz"]).text == "ok\n"
            }
            try await second.get("/healthz", on: 3)
            #expect(try await second.answer(3).text == "ok\n")
            await second.close()
        }
    }

    /// An idle connection makes room. GOAWAY confirms that none of its requests is lost.
    @Test func idleOnesMakeRoom() async throws {
        try await TestServer.runSecure({ $0.limits.httpConnections = 2 }) { server in
            let idle = try await HTTP2Client.open(server.secure)
            try await idle.get("/healthz", on: 1)
            #expect(try await idle.answer(1).text == "ok\n")
            let second = try await HTTP2Client.open(server.secure)
            try await second.get("/healthz", on: 1)
            #expect(try await second.answer(1).text == "ok\n")
            try await eventually("a place") {
                let curl = ["curl", "-sk", "-o", "/dev/null", "-w", "%{http_version} %{http_code}", "--http2"]
                return try await ClientProcess.run(curl + ["\(server.https)/api/v1/openapi.json"]).text == "2 200"
            }
            try await eventually("the end of the idle one") { idle.isClosed }
            #expect(idle.goAways.map(\.code) == [Code.none] && idle.goAways.map(\.last) == [1])
            await second.close()
        }
    }

    /// A body that does not arrive ends only its stream. A rejected request does not wait for its body.
    @Test func bodiesHaveATime() async throws {
        try await TestServer.runSecure({ $0.limits.httpBodyMs = 2_000 }) { server in
            let client = try await HTTP2Client.open(server.secure)
            let fields = [(":method", "POST"), (":scheme", "https"), (":path", "/api/v1/rooms"), (":authority", "127.0.0.1")]
            try await client.send(HTTP2Client.head(fields, on: 1, ends: false))
            let refused = try await client.answer(1)
            #expect(refused.status == 401, "\(refused)")
            let known = [("authorization", "Bearer \(server.token)"), ("content-type", "application/json")]
            try await client.send(HTTP2Client.head(fields + known, on: 3, ends: false))
            let late = try await client.answer(3)
            #expect(late.status == 408 && late.text.contains("limits.httpBody"), "\(late)")
            try await eventually("the ends") { client.soFar(1).reset != nil && client.soFar(3).reset != nil }
            #expect([client.soFar(1).reset, client.soFar(3).reset] == [0, 0])
            try await client.get("/healthz", on: 5)
            #expect(try await client.answer(5).text == "ok\n")
            await client.close()
        }
    }

    /// Shutdown finishes requests in progress. GOAWAY keeps the client from sending more.
    @Test func shutdown() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 12)
        let (client, idle, late) = try await TestServer.runSecure { server in
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1"))
            defer { push.send(SIGKILL) }
            try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
            let idle = try await HTTP2Client.open(server.secure)
            let client = try await HTTP2Client.open(server.secure)
            try await client.get("/live/cam1.flv", on: 1)
            try await client.send(HTTP2Client.request("/nothing", on: 3, method: "POST", ends: false))
            try await eventually("media") { client.soFar(1).body.count > 20_000 }
            let late = Task {
                try await eventually("the news") { client.goAways.count == 2 }
                // The begun request is finished; a new one is not accepted.
                try await client.send([HTTP2WireFrame(.data, flags: 1, stream: 3)] + HTTP2Client.request("/healthz", on: 5))
            }
            return (client, idle, late)
        }
        try await late.value
        try await eventually("the ends") { client.isClosed && idle.isClosed }
        #expect(client.soFar(1).isEnded, "the viewer's stream has an end")
        #expect(client.soFar(3).isEnded && client.soFar(3).status == 404, "\(client.soFar(3))")
        #expect(client.soFar(5).status == nil)
        #expect(client.goAways.map(\.last) == [0x7FFF_FFFF, 3], "\(client.goAways)")
        #expect((client.goAways + idle.goAways).allSatisfy { $0.code == Code.none })
        // Its first request could have been on its way.
        #expect(idle.goAways.map(\.last) == [0x7FFF_FFFF, 0], "\(idle.goAways)")
    }

    /// A client that ignores GOAWAY and PING does not hold up the shutdown.
    @Test func shutdownOfTheDeaf() async throws {
        let (deaf, begin) = try await TestServer.runSecure { server in
            let deaf = try await HTTP2Client.open(server.secure)
            deaf.answersPings(false)
            try await deaf.send(HTTP2Client.request("/nothing", on: 1, method: "POST", ends: false))
            try await deaf.get("/healthz", on: 3)
            #expect(try await deaf.answer(3).text == "ok\n")
            return (deaf, ContinuousClock.now)
        }
        #expect(ContinuousClock.now - begin < .seconds(30))
        try await eventually("the end") { deaf.isClosed }
        #expect(deaf.goAways.map(\.last) == [0x7FFF_FFFF, 3], "\(deaf.goAways)")
    }

    private static let rounds = ProcessInfo.processInfo.environment["EARSHOT_HTTP2_ROUNDS"].flatMap(Int.init) ?? 120

    /// The process survives any bytes after HTTP/2 is negotiated.
    @Test func garbage() async throws {
        try await Fixture.withDirectory { directory in
            let files = try await Certificate.make("localhost", in: directory)
            let config = directory.appendingPathComponent("earshot.yaml")
            try """
            rtmps: {listen: "127.0.0.1:0", certificate: \(files.certificate), key: \(files.key)}
            https: {listen: "127.0.0.1:0"}
            """.write(to: config, atomically: true, encoding: .utf8)
            try await EarshotProcess.serve(data: directory, ["--config", config.path], under: ["SWIFT_BACKTRACE=enable=no"]) { earshot in
                let port = try earshot.https.orThrow()
                var random = SeededGenerator(seed: 20_261_121)
                for round in 0..<Self.rounds {
                    let client = try await HTTP2Client.open(port, greets: round % 3 > 0)
                    // The server may close before all is sent.
                    try? await client.send(HTTP2Garbage.make(round, &random))
                    try? await client.send(HTTP2Garbage.make(round, &random))
                    await client.close()
                    #expect(earshot.process.isRunning, "round \(round)")
                }
                let after = try await ClientProcess.run(["curl", "-sk", "--http2", "https://127.0.0.1:\(port)/healthz"])
                #expect(after.text == "ok\n", "\(after.errors) \(earshot.process.errorsSoFar.suffix(2_000))")
            }
        }
    }
}

/// Bytes to send after TLS: some random, some nearly valid.
private enum HTTP2Garbage {
    static func make(_ round: Int, _ random: inout some RandomNumberGenerator) -> [UInt8] {
        switch round % 6 {
        case 0: (0..<Int.random(in: 1...3_000, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
        case 1: (0..<30).flatMap { _ in Self.frame(&random).bytes }
        case 2: Self.flipped((0..<10).flatMap { Self.request(2 * $0 + 1, &random) }.flatMap(\.bytes), &random)
        case 3: (0..<20).flatMap { Self.request(2 * ($0 % 4) + 1, &random) + [Self.frame(&random)] }.flatMap(\.bytes)
        case 4:
            // A head after the trailers, and data without a head.
            (HTTP2Client.request("/healthz", on: 1, method: "POST", ends: false) + HTTP2Client.head([("a", "b")], on: 1, ends: false)
                + HTTP2Client.head([("a", "b")], on: 1) + HTTP2Client.head([("a", "b")], on: 1)
                + [HTTP2WireFrame(.data, stream: 3, [1, 2, 3]), HTTP2WireFrame(.reset, stream: 1, [0, 0, 0, 0])]
                + HTTP2Client.head([("a", "b")], on: 5) + HTTP2Client.head([(":method", "GE T"), (":path", "")], on: 7))
                .flatMap(\.bytes)
        default:
            (Self.request(1, &random) + [HTTP2WireFrame(.windowUpdate, stream: 1, HTTP2WireFrame.word(0x7FFF_FFFF))]
                + [HTTP2WireFrame(.settings, [0, 4] + HTTP2WireFrame.word(Int.random(in: 0...0xFFFF_FFFF, using: &random)))])
                .flatMap(\.bytes)
        }
    }

    private static func frame(_ random: inout some RandomNumberGenerator) -> HTTP2WireFrame {
        var frame = HTTP2WireFrame(.data)
        frame.type = UInt8.random(in: 0...12, using: &random)
        frame.flags = UInt8.random(in: 0...255, using: &random)
        frame.stream = Int.random(in: 0...9, using: &random)
        frame.payload = (0..<Int.random(in: 0...40, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
        return frame
    }

    private static func request(_ stream: Int, _ random: inout some RandomNumberGenerator) -> [HTTP2WireFrame] {
        let paths = ["/healthz", "/live/none.flv", "/live/none.m3u8", "/events", "/api/v1/streams", "*", "", "//%00"]
        let methods = ["GET", "POST", "HEAD", "CONNECT", "OPTIONS", "G"]
        return HTTP2Client.request(
            paths.randomElement(using: &random) ?? "/", on: stream, method: methods.randomElement(using: &random) ?? "GET",
            [("x", "y")], ends: Bool.random(using: &random))
    }

    private static func flipped(_ bytes: [UInt8], _ random: inout some RandomNumberGenerator) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<8 { bytes[Int.random(in: 0..<bytes.count, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random) }
        return bytes
    }
}
