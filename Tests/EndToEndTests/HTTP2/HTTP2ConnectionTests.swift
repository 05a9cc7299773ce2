import EarshotServer
import Foundation
import RTMPTestSupport
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import Listening
@testable import ServerConfiguration
@testable import Streaming

/// HTTP/2 on the HTTPS port with other clients, in real time, and at the end. Others are in HTTPServerTests.
@Suite struct HTTP2ConnectionTests {
    /// Error codes (RFC 9113 §7).
    private enum Code {
        static let none = 0
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
