import Access
import Foundation
import Media
import PortlessTestSupport
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer

/// Who may report on a push, pause it and end it.
@Suite struct PushHeartbeatGateTests {
    private static let statuses = ["pushing", "resumed", "paused", "finished"]

    private static func close(_ config: inout ServerConfig) {
        config.access.publishFrom = []
        config.credentials.key = TestCredential.keys.key
        config.credentials.jwtKey = TestCredential.keys.jwtKey
        // Their media is two seconds.
        config.rooms.policy.mediaIdleMs = 600_000
    }

    /// Clients name their address themselves.
    private static func open(_ config: inout ServerConfig) {
        config.access.trustedProxies = CIDR.loopback
        config.access.publishFrom += [try? CIDR(parsing: "198.51.100.0/24")].compactMap { $0 }
        config.credentials.key = TestCredential.keys.key
        config.credentials.jwtKey = TestCredential.keys.jwtKey
    }

    private static func token(_ user: String, _ stream: String = "cam1") -> String {
        "token=\(TestCredential.token("{\"sub\":\"\(user)\",\"stream\":\"live/\(stream)\",\"act\":[\"publish\"],\"exp\":4102444800}"))"
    }

    /// `text/plain`: what any page sends without a preflight.
    private static func report(
        _ server: PortlessServer, _ name: String, _ query: String, _ status: String, _ headers: [String: String] = [:]
    ) async throws -> HTTPAnswer {
        let url = "\(server.http)/push/live/\(name)/heartbeat\(query.isEmpty ? "" : "?\(query)")"
        return try await HTTPAnswer.call(
            "POST", url, body: Data("{\"status\":\"\(status)\"}".utf8),
            headers: headers.merging(["Content-Type": "text/plain"]) { own, _ in own })
    }

    /// Reports once the stream may be reported again.
    private static func paced(
        _ server: PortlessServer, _ name: String, _ query: String, _ status: String, _ headers: [String: String] = [:]
    ) async throws -> Int {
        var answer = try await Self.report(server, name, query, status, headers)
        try await eventually("a turn") {
            if answer.status == 429 { answer = try await Self.report(server, name, query, status, headers) }
            return answer.status != 429
        }
        return answer.status
    }

    private static func push(_ server: PortlessServer, _ path: String) async throws -> TagClient {
        let tags = try await FLVTag.media(of: Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 2))
        let publisher = try await TagClient.publish(to: server, path)
        try await publisher.send(tags)
        return publisher
    }

    /// A page of an origin in `http.allowOrigin` may read the answer, a refusal too, and learns beforehand that it may send JSON.
    @Test func pagesMayReadTheAnswer() async throws {
        let page = "https://app.example"
        try await PortlessServer.run({
            Self.close(&$0)
            $0.http.allowOrigin = [page]
        }) { server in
            _ = try await server.call("POST", "rooms", #"{"roomId":"cam1"}"#)
            for (query, status) in [(TestCredential.signed("cam1"), 200), ("", 401)] {
                let answer = try await Self.report(server, "cam1", query, "pushing", ["Origin": page])
                #expect(answer.status == status, "\(answer.text)")
                #expect(answer.headers["access-control-allow-origin"] == page && answer.headers["vary"] == "Origin", "\(answer.headers)")
            }
            let foreign = try await Self.report(
                server, "cam1", TestCredential.signed("cam1"), "pushing", ["Origin": "https://evil.example"])
            #expect(foreign.headers["access-control-allow-origin"] == nil && foreign.headers["vary"] == "Origin")
            let asked = try await HTTPAnswer.call("OPTIONS", "\(server.http)/push/live/cam1/heartbeat", headers: ["Origin": page])
            #expect(asked.status == 204 && asked.headers["access-control-allow-origin"] == page, "\(asked.headers)")
            #expect(asked.headers["access-control-allow-methods"]?.contains("POST") == true)
            #expect(asked.headers["access-control-allow-headers"] == "content-type")
        }
    }

    /// A push without a credential is its device's alone: no page, no other address and no other query acts on it.
    @Test func anOpenPush() async throws {
        try await PortlessServer.run(Self.open) { server in
            let publisher = try await Self.push(server, "live/cam1")
            try await server.wait("rooms/cam1") { $0["state"].string == "live" }
            let evil = "https://evil.example"
            // Headers, query, and the status.
            let others: [([String: String], String, Int)] = [
                (["Origin": evil], "", 403), (["Origin": "null"], "", 403), (["Sec-Fetch-Site": "cross-site"], "", 403),
                (["Host": "evil.example"], "", 403), (["Host": "evil.example", "Origin": "http://evil.example"], "", 403),
                (["Origin": evil], "x=1", 403), (["Origin": evil], "token=x", 401),
                (["Origin": evil, "Authorization": "Bearer x"], "", 403),
                ([:], "x=1", 403), ([:], "user=alice", 403), (["X-Forwarded-For": "198.51.100.7"], "", 403),
                (["X-Forwarded-For": "203.0.113.9"], "", 401),
            ]
            for (headers, query, expected) in others {
                for status in Self.statuses {
                    let answer = try await Self.report(server, "cam1", query, status, headers)
                    #expect(answer.status == expected, "\(status) \(headers) \(query): \(answer.status) \(answer.text)")
                }
            }
            #expect(!publisher.current.isClosed && !publisher.current.sawEOF)
            #expect(try await server.api("rooms/cam1")["state"].string == "live")
            for status in ["pushing", "paused", "finished"] {
                #expect(try await Self.paced(server, "cam1", "", status) == 200, "\(status)")
            }
            try await eventually("the push to end") { publisher.current.isClosed || publisher.current.sawEOF }
            await publisher.close()
            // While nobody pushes, an address is no credential.
            #expect(try await Self.paced(server, "cam1", "", "finished") == 401)
            #expect(try await Self.paced(server, "cam1", TestCredential.signed("cam1"), "pushing") == 200)
        }
    }

    /// A query without a credential is an identity for takeovers, but others may know it.
    @Test func anOpenPushWithAQuery() async throws {
        try await PortlessServer.run(Self.open) { server in
            let publisher = try await Self.push(server, "live/cam1?device=7")
            try await server.wait("rooms/cam1") { $0["state"].string == "live" }
            #expect(try await Self.paced(server, "cam1", "device=7", "finished", ["X-Forwarded-For": "198.51.100.7"]) == 403)
            #expect(try await Self.paced(server, "cam1", "", "finished") == 403)
            #expect(!publisher.current.isClosed && !publisher.current.sawEOF)
            #expect(try await Self.paced(server, "cam1", "device=7", "finished") == 200)
            try await eventually("the push to end") { publisher.current.isClosed || publisher.current.sawEOF }
            await publisher.close()
        }
    }

    /// Another user's token is good for the stream's name, not for the push that runs; an older signed URL is outdated.
    @Test func anotherCredential() async throws {
        try await PortlessServer.run(Self.close) { server in
            for name in ["cam1", "cam2"] { _ = try await server.call("POST", "rooms", "{\"roomId\":\"\(name)\"}") }
            let alice = try await Self.push(server, "live/cam1?\(Self.token("alice"))")
            let signed = try await Self.push(server, "live/cam2?\(TestCredential.signed("cam2", txTime: "7FFFFFF0"))")
            for name in ["cam1", "cam2"] { try await server.wait("rooms/\(name)") { $0["state"].string == "live" } }
            for status in Self.statuses {
                for query in [Self.token("bob"), TestCredential.signed("cam1")] {
                    #expect(try await Self.report(server, "cam1", query, status).status == 403, "\(status) \(query)")
                }
                let older = TestCredential.signed("cam2", txTime: "7FFFFFEF")
                #expect(try await Self.report(server, "cam2", older, status).status == 403, "\(status)")
            }
            #expect(!alice.current.isClosed && !alice.current.sawEOF && !signed.current.isClosed && !signed.current.sawEOF)
            // The holder's own credential, from whatever page: it was given to it.
            #expect(try await Self.paced(server, "cam1", Self.token("alice"), "pushing", ["Origin": "https://evil.example"]) == 200)
            #expect(try await Self.paced(server, "cam2", TestCredential.signed("cam2"), "finished") == 200)
            try await eventually("the push to end") { signed.current.isClosed || signed.current.sawEOF }
            for publisher in [alice, signed] { await publisher.close() }
        }
    }

    /// Somebody thrown out of the room has no say in it until the kick is over.
    @Test func aKickedUser() async throws {
        try await PortlessServer.run(Self.close) { server in
            _ = try await server.call("POST", "rooms", #"{"roomId":"cam1"}"#)
            #expect(try await Self.paced(server, "cam1", Self.token("alice"), "pushing") == 200)
            #expect(try await server.call("POST", "rooms/cam1/join", #"{"userId":"alice"}"#).status == 200)
            _ = try await server.call("POST", "rooms/cam1/members/alice/kick")
            for status in Self.statuses {
                let answer = try await Self.report(server, "cam1", Self.token("alice"), status)
                #expect(answer.status == 403 && answer.text.contains("kicked"), "\(status): \(answer.text)")
            }
            #expect(try await Self.paced(server, "cam1", Self.token("bob"), "pushing") == 200)
        }
    }
}
