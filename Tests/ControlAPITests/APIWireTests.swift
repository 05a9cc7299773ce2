import APITestSupport
import Foundation
import HTTPTypes
import NIOCore
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ControlAPI
@testable import HTTPAPI
@testable import HTTPServer
@testable import ServerConfiguration

/// HTTP around the answers: codings, CORS, wrong methods, rate limits.
@Suite struct APIWireTests {
    // MARK: - Compression

    @Test func codingsAreChosenAsTheHeaderSays() {
        for (lines, isAccepted) in [
            (["gzip"], true), (["GZIP"], true), (["x-gzip"], true), (["deflate, gzip;q=1.0, *;q=0.5"], true), (["*"], true),
            (["br", "gzip"], true),
            (["gzip;q=0.001"], true), ([], false), ([""], false), (["br"], false), (["gzip;q=0"], false), (["gzip;q=0, *"], false),
            (["*;q=0"], false), (["gzip;q=no"], false), ([";;,,;q=1"], false),
        ] {
            #expect(Gzip.isAccepted(lines) == isAccepted, "\(lines)")
        }
    }

    @Test func packedBytesHaveGzipsForm() throws {
        for count in [1, 1_024, 3_000_000] {
            let packed = try Gzip.pack(ByteBuffer(repeating: 0x61, count: count)).orThrow()
            // RFC 1952 §2.3: magic number and deflate at the start, length at the end.
            #expect(packed.getBytes(at: 0, length: 3) == [0x1F, 0x8B, 8])
            #expect(packed.getInteger(at: packed.readableBytes - 4, endianness: .little, as: UInt32.self) == UInt32(count))
        }
    }

    // MARK: - Other origins

    private static let origin = "https://console.example.com"

    @Test func pagesOfNamedOriginsMayCall() async throws {
        try await UnboundServer.run({ $0.api.allowOrigins = [Self.origin, "http://localhost:5173"] }) { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            for origin in [Self.origin, "http://localhost:5173"] {
                let answer = try await api("GET", "rooms/r1", headers: ["Origin": origin])
                #expect(answer.headers["access-control-allow-origin"] == origin)
                #expect(answer.headers["access-control-allow-credentials"] == nil)
                #expect(answer.headers["access-control-expose-headers"]?.contains("ETag") == true)
                #expect(answer.headers["vary"]?.contains("Origin") == true)
            }
            // Pages can read errors too.
            let error = try await api("GET", "rooms/none", headers: ["Origin": Self.origin])
            #expect(error.status == 404 && error.headers["access-control-allow-origin"] == Self.origin)
            let wrong = try await api("GET", "rooms", token: "", headers: ["Origin": Self.origin])
            #expect(wrong.status == 401 && wrong.headers["access-control-allow-origin"] == Self.origin)
            for origin in ["https://evil.example", "null", "https://console.example.com.evil.example", "http://console.example.com"] {
                let answer = try await api("GET", "rooms/r1", headers: ["Origin": origin])
                #expect(answer.headers["access-control-allow-origin"] == nil, "\(origin)")
                #expect(answer.headers["vary"]?.contains("Origin") == true)
            }
        }
    }

    private static func preflight(_ server: UnboundServer, _ path: String, _ method: String, from origin: String) async throws -> HTTPAnswer
    {
        try await server.call(
            "OPTIONS", path, token: "",
            headers: [
                "Origin": origin, "Access-Control-Request-Method": method,
                "Access-Control-Request-Headers": "authorization, content-type, if-match",
            ])
    }

    @Test func preflightsAreAnswered() async throws {
        try await UnboundServer.run({ $0.api.allowOrigins = [Self.origin] }) { server in
            // Without a token: browsers send none.
            let answer = try await Self.preflight(server, "rooms/r1", "PATCH", from: Self.origin)
            #expect(answer.status == 204 && answer.body.isEmpty)
            #expect(answer.headers["access-control-allow-origin"] == Self.origin)
            #expect(answer.headers["access-control-allow-methods"] == "GET, HEAD, PATCH, DELETE")
            for name in ["Authorization", "Content-Type", "Idempotency-Key", "If-Match"] {
                #expect(answer.headers["access-control-allow-headers"]?.contains(name) == true, "\(name)")
            }
            #expect(answer.headers["access-control-allow-credentials"] == nil && answer.headers["access-control-max-age"] == "600")
            let other = try await Self.preflight(server, "rooms/r1", "PATCH", from: "https://evil.example")
            #expect(other.status == 403 && other.headers["access-control-allow-origin"] == nil)
            #expect(try other.json()["message"].string?.contains("api.allowOrigins") == true)
            #expect(try await Self.preflight(server, "nothing", "GET", from: Self.origin).status == 404)
        }
        // Without the setting there is no CORS.
        try await UnboundServer.run { server in
            let answer = try await Self.preflight(server, "rooms/r1", "PATCH", from: Self.origin)
            #expect(
                answer.status == 405 && answer.headers["access-control-allow-origin"] == nil
                    && answer.headers["vary"]?.contains("Origin") != true)
        }
    }

    @Test func originsAreNamedOneByOne() throws {
        let kind = ConfigValueKind<[String]>.origins
        #expect(try kind.read(["https://A.example", "http://[::1]:8080", "http://localhost:5173"]).first == "https://a.example")
        for bad in [
            "*", "null", "a.example", "https://", "https://a.example/", "https://a.example/x", "https://a b", "ftp://a.example",
            "https://u@a.example", "https://a.example:x",
        ] {
            #expect(throws: ValueProblem.self, "\(bad)") { try kind.read([bad]) }
        }
        #expect(throws: ValueProblem.self) { try kind.read(Array(repeating: "https://a.example", count: 65)) }
    }

    // MARK: - Methods and rates

    @Test func aMethodThatAPathHasNotIsSaidSo() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            for (method, path, allow) in [
                ("PUT", "rooms/r1", "GET, HEAD, PATCH, DELETE"), ("DELETE", "rooms", "POST, GET, HEAD"), ("GET", "rooms/r1/close", "POST"),
                ("OPTIONS", "rooms", "POST, GET, HEAD"), ("POST", "sessions/1", "GET, HEAD, DELETE"), ("TRACE", "counters", "GET, HEAD"),
            ] {
                let answer = try await api(method, path)
                #expect(answer.status == 405 && answer.headers["allow"] == allow, "\(method) \(path): \(answer.headers["allow"] ?? "-")")
                let error = try answer.json()["error"]
                #expect(error["type"].string == "method_not_allowed", "\(answer.text)")
                #expect(error["allowed"].list.compactMap(\.string) == allow.components(separatedBy: ", "))
            }
        }
    }

    /// Limit, remaining and reset describe one bucket: remaining never exceeds the limit, and the bucket is full when reset says.
    @Test(.seeded) func rateHeadersAgree() async throws {
        let second: UInt64 = 1_000_000_000
        for rate in [1, 3, 200] {
            let limits = RateLimits(rate: rate)
            var now: UInt64 = 0
            var dice = TestRandom(rate)
            for _ in 0..<2_000 {
                now += UInt64.random(in: 0...second / UInt64(rate), using: &dice)
                let outcome = limits.call(token: 1, nowNs: now)
                #expect(outcome.remaining < limits.burst && (outcome.isAllowed || outcome.remaining == 0))
                #expect(outcome.fullSeconds <= Double(RateLimits.windowSeconds) && outcome.fullSeconds >= outcome.waitSeconds)
            }
            // A full bucket allows exactly `burst` calls.
            let full = now + UInt64(limits.call(token: 1, nowNs: now).fullSeconds.rounded(.up)) * second
            let taken = (0...limits.burst).map { _ in limits.call(token: 1, nowNs: full).isAllowed }
            #expect(taken == Array(repeating: true, count: limits.burst) + [false])
        }
        try await UnboundServer.run({ $0.api.rateLimit = 2 }) { server in
            let api = try await CheckedAPI(server)
            var last = 4
            var lastAt = ContinuousClock.now
            var refused: HTTPAnswer?
            for _ in 0..<40 where refused == nil {
                let askedAt = ContinuousClock.now
                // Errors take tokens from the bucket as well, and report it.
                let answer = try await api("GET", "rooms/none")
                #expect(answer.headers["ratelimit-limit"] == "4" && answer.headers["ratelimit-policy"] == "4;w=2")
                let remaining = try answer.headers["ratelimit-remaining"].flatMap { Int($0) }.orThrow()
                // Accounts for this call's token and the refill since the last one.
                let refill = Int((ContinuousClock.now - lastAt) / .seconds(1) * 2) + 1
                #expect((0...3).contains(remaining) && remaining < last + refill)
                (last, lastAt) = (remaining, askedAt)
                let reset = try answer.headers["ratelimit-reset"].flatMap { Int($0) }.orThrow()
                #expect((1...2).contains(reset))
                if answer.status == 429 { refused = answer }
            }
            let answer = try refused.orThrow()
            #expect(answer.headers["ratelimit-remaining"] == "0")
            #expect(answer.headers["retry-after"] == answer.headers["ratelimit-reset"])
        }
    }
}
