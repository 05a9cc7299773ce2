import Access
import Foundation
import Rooms
import Media
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer

/// A broadcaster's reports, by the credential that it pushes with.
@Suite struct PushHeartbeatTests {
    private static func close(_ config: inout ServerConfig) {
        config.access.publishFrom = []
        config.credentials.key = TestCredential.keys.key
        config.credentials.jwtKey = TestCredential.keys.jwtKey
    }

    private func beat(
        _ server: TestServer, _ name: String, _ query: String, _ status: String = "pushing", method: String = "POST"
    ) async throws -> HTTPAnswer {
        try await HTTPAnswer.call(
            method, "\(server.http)/push/live/\(name)/heartbeat?\(query)",
            body: method == "GET" ? nil : Data("{\"status\":\"\(status)\"}".utf8))
    }

    /// Once the stream may be reported again.
    private func paced(_ server: TestServer, _ name: String, _ query: String, _ status: String = "pushing") async throws -> JSON {
        var answer = try await self.beat(server, name, query, status)
        try await eventually("a turn") {
            if answer.status == 429 { answer = try await self.beat(server, name, query, status) }
            return answer.status != 429
        }
        #expect(answer.status == 200, "\(answer.text)")
        return try answer.json()
    }

    @Test func aBroadcastsLife() async throws {
        let tags = try await HLSLatencyTests.media(2)
        try await TestServer.run(Self.close) { server in
            let query = TestCredential.signed("cam1")
            _ = try await server.call("POST", "rooms", #"{"roomId":"cam1"}"#)
            let waiting = try await self.paced(server, "cam1", query)
            #expect(waiting["state"].string == "created" && waiting["stop"].bool == false && waiting["reason"].isNull)
            #expect(waiting["expiresAt"].string != nil)
            let publisher = try await TagClient.publish(to: server, "live/cam1?\(query)")
            try await publisher.send(tags)
            try await server.wait("rooms/cam1") { $0["state"].string == "live" }
            #expect(try await self.paced(server, "cam1", query, "resumed")["state"].string == "live")
            // The room keeps the time of it.
            #expect(try await server.api("rooms/cam1")["state"].string == "live")
            let paused = try await self.paced(server, "cam1", query, "paused")
            #expect(paused["state"].string == "interrupted" && paused["stateReason"].string == "paused" && paused["stop"].bool == false)
            try await eventually("media to make it live again") {
                try await publisher.send(tags)
                return try await server.api("rooms/cam1")["state"].string == "live"
            }
            #expect(try await self.paced(server, "cam1", query, "finished")["stop"].bool == false)
            try await eventually("the push to end") { publisher.current.isClosed || publisher.current.sawEOF }
            try await server.wait("streams/published") { $0["list"][0]["stopReason"].string == "clientStopped" }
            await publisher.close()
            // The answer after a ban says that the broadcaster must stop, and why.
            _ = try await server.call("POST", "streams/live/cam1/forbid", #"{"reason":"face"}"#)
            let forbidden = try await self.paced(server, "cam1", query)
            #expect(forbidden["stop"].bool == true && forbidden["reason"].string == "face", "\(forbidden)")
            _ = try await server.call("POST", "streams/live/cam1/resume")
            _ = try await server.call("POST", "rooms/cam1/close")
            let closed = try await self.paced(server, "cam1", query)
            #expect(closed["stop"].bool == true && closed["state"].string == "closed")
        }
    }

    /// The connection was lost before the broadcaster says that it has finished: the room waits as for one that has stopped, not as for one that may
    /// come back.
    @Test func finishedAfterALoss() async throws {
        let tags = try await HLSLatencyTests.media(2)
        try await TestServer.run({
            Self.close(&$0)
            $0.rooms.policy.graceMs = 600_000
            $0.rooms.policy.cleanStopMs = 3_000
        }) { server in
            let query = TestCredential.signed("cam1")
            _ = try await server.call("POST", "rooms", #"{"roomId":"cam1"}"#)
            #expect(try await self.paced(server, "cam1", query, "finished")["state"].string == "created", "nothing has begun")
            let publisher = try await TagClient.publish(to: server, "live/cam1?\(query)")
            try await publisher.send(tags)
            try await server.wait("rooms/cam1") { $0["state"].string == "live" }
            await publisher.close()
            try await server.wait("rooms/cam1") { $0["stateReason"].string == "publisherLost" }
            let finished = try await self.paced(server, "cam1", query, "finished")
            #expect(finished["state"].string == "interrupted" && finished["stateReason"].string == "stopped", "\(finished)")
            let left = try finished["expiresAt"].string.flatMap(Instant.ms).orThrow() - Int64(Date().timeIntervalSince1970 * 1_000)
            #expect(left <= 3_000, "\(left) ms")
            try await server.wait("rooms/cam1") { $0["state"].string == "expired" }
        }
    }

    /// A URL that has expired is good for reports while its push runs, and no longer.
    @Test func anExpiredURL() async throws {
        try await TestServer.run(Self.close) { server in
            let soon = String(UInt32(Date().timeIntervalSince1970) + 10, radix: 16, uppercase: true)
            let query = TestCredential.signed("cam1", txTime: soon)
            let publisher = try await TagClient.publish(to: server, "live/cam1?\(query)")
            try await server.wait("rooms/cam1") { $0["state"].string == "created" }
            try await eventually("the URL to expire") { Date().timeIntervalSince1970 > Double(UInt32(soon, radix: 16) ?? 0) }
            #expect(try await self.paced(server, "cam1", query)["state"].string == "created")
            await publisher.close()
            try await eventually("the push to be gone") {
                let answer = try await self.beat(server, "cam1", query)
                return answer.status == 401
            }
            let other = TestCredential.signed("cam2", txTime: soon)
            #expect(try await self.beat(server, "cam1", other).status == 401)
        }
    }

    /// An expired token is good for the push that it could have begun, for no other, and for nothing if it was made to watch or to chat.
    @Test func expiredTokens() async throws {
        try await TestServer.run(Self.close) { server in
            let soon = Int(Date().timeIntervalSince1970) + 10
            func own(_ exp: Int) -> String { "token=\(TestCredential.token(#"{"room":"cam1","act":"publish","exp":\#(exp)}"#))" }
            let publisher = try await TagClient.publish(to: server, "live/cam1?\(own(soon))")
            try await server.wait("rooms/cam1") { $0["state"].string == "created" }
            // Signed for the same stream, but not what this push began with.
            #expect(try await self.beat(server, "cam1", TestCredential.signed("cam1", txTime: "5C271099"), "finished").status == 401)
            for claims in [
                #"{"room":"cam1","act":"play","exp":1000}"#, #"{"room":"cam1","role":"viewer","exp":1000}"#,
                #"{"room":"cam2","act":"publish","exp":1000}"#, #"{"stream":"live/cam2","act":"publish","exp":1000}"#,
                #"{"aud":"channel","sub":"ann","room":"cam1","exp":1000}"#, #"{"sub":"eve","room":"cam1","act":"publish","exp":1000}"#,
                #"{"room":"cam1","act":"publish","nbf":4000000000,"exp":4000000001}"#,
            ] {
                let answer = try await self.beat(server, "cam1", "token=\(TestCredential.token(claims))", "finished")
                #expect(answer.status == 401, "\(claims): \(answer.text)")
            }
            #expect(!publisher.current.isClosed && !publisher.current.sawEOF)
            try await eventually("the token to expire") { Int(Date().timeIntervalSince1970) > soon }
            #expect(try await self.paced(server, "cam1", own(soon))["state"].string == "created")
            _ = try await self.paced(server, "cam1", own(soon), "finished")
            try await eventually("the push to end") { publisher.current.isClosed || publisher.current.sawEOF }
            await publisher.close()
        }
    }

    @Test func whatIsRefused() async throws {
        try await TestServer.run(Self.close) { server in
            let query = TestCredential.signed("cam1")
            _ = try await server.call("POST", "rooms", #"{"roomId":"cam1"}"#)
            #expect(try await self.beat(server, "cam1", "").status == 401)
            #expect(try await self.beat(server, "cam1", TestCredential.signed("cam2")).status == 401)
            #expect(try await self.beat(server, "cam2", TestCredential.signed("cam2")).status == 404)
            #expect(try await self.beat(server, "cam1", query, "dancing").status == 400)
            #expect(try await self.beat(server, "cam1/%2E%2E%2Fx", query).status == 400)
            let wrong = try await HTTPAnswer.call("POST", "\(server.http)/push/live/cam1/heartbeat?\(query)", body: Data("[1".utf8))
            #expect(wrong.status == 400 && wrong.text.contains("pushing, paused, resumed, finished"), "\(wrong.text)")
            let large = Data(String(repeating: "x", count: 10_000).utf8)
            #expect(try await HTTPAnswer.call("POST", "\(server.http)/push/live/cam1/heartbeat?\(query)", body: large).status == 413)
            let get = try await self.beat(server, "cam1", query, method: "GET")
            #expect(get.status == 405 && get.headers["allow"] == "POST")
            // Three at once, then one a second.
            var statuses: [Int] = []
            for _ in 0..<100 where !statuses.contains(429) { statuses.append(try await self.beat(server, "cam1", query).status) }
            #expect(statuses.first == 200 && statuses.contains(429), "\(statuses)")
            #expect(
                !server.lines.all.contains { $0.contains(TestCredential.signed("cam2").split(separator: "&")[0].dropFirst(9)) },
                "no secret is logged")
        }
    }
}
