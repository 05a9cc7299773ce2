import Access
import Foundation
import PostgresTestSupport
import RoomRegistry
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing
import WebRTC

/// Two whole servers that share the rooms in one database: calls to either reach the one that has the stream.
@Suite(.enabled(if: TestPostgres.isOn, "on PostgreSQL")) struct ClusterCallTests {
    @Test func callsAreSentOn() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 12)
        try await ClusterServers.run { a, b in
            // Both know all tokens.
            let token = a.token
            #expect(try await b.call("GET", "rooms", token: token).status == 200)
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(a.rtmp)/live/cam1"))
            defer { push.send(SIGKILL) }
            try await a.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
            let list = try await b.call("GET", "streams", token: token).json()["data"]["list"]
            #expect(list.count == 0, "only calls about one stream are sent on")
            try await eventually("the stream through the other node") {
                try await b.call("GET", "streams/live/cam1", token: token).json()["data"]["state"].string == "active"
            }
            let none = try await b.call("GET", "streams/live/none", token: token)
            #expect(try none.json()["data"]["state"].string == "inactive")

            // Each node compares its own pushes with the store, and not the other's.
            for node in [a, b] {
                try await eventually("counters that agree") {
                    try await node.call("GET", "selfcheck", token: token).json()["data"]["ok"].bool == true
                }
            }

            let picture = try await b.call("GET", "rooms/cam1/snapshot.jpg", token: token)
            #expect(picture.status == 200 && picture.contentType == "image/jpeg", "\(picture.status)")
            #expect(picture.body.starts(with: [0xFF, 0xD8]) && picture.body.count > 1_000)

            let session = try await a.api("sessions")["list"][0]["sessionId"].int.orThrow()
            #expect(session > 1 << 40, "ids are unique among the nodes")
            #expect(try await b.call("GET", "sessions/\(session)", token: token).json()["data"]["publishing"][0].value != nil)

            // Neither the wrong token nor none gets through.
            #expect(try await b.call("GET", "streams/live/cam1", token: "").status == 401)

            let dropped = try await b.call("POST", "streams/live/cam1/drop", "{}", token: token)
            #expect(dropped.status == 200, "\(dropped.text)")
            try await eventually("the end of the push") {
                try await a.api("streams/live/cam1")["state"].string != "active" || !push.isRunning
            }
        }
    }

    /// What a player by WebRTC says to its session's address reaches the session, whichever node hears it.
    @Test func sessionsByWebRTCAreReachedEverywhere() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 12)
        try await ClusterServers.run { a, b in
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(a.rtmp)/live/cam1"))
            defer { push.send(SIGKILL) }
            try await a.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
            func call(_ method: String, _ url: String, _ body: String = "", _ type: String = "application/sdp") async throws -> HTTPAnswer {
                try await HTTPAnswer.call(method, url, body: Data(body.utf8), headers: ["Content-Type": type])
            }
            let offer = try WatchingClient().offer
            let answer = try await call("POST", "\(a.http)/whep/live/cam1", offer)
            #expect(answer.status == 201, "\(answer.text)")
            let place = try #require(URL(string: answer.headers["location"] ?? "")).path
            func sessions() async throws -> Int {
                try await a.api("sessions")["list"].list.count { $0["transport"].string == "webrtc" }
            }
            #expect(try await sessions() == 1)
            let trickled = try await call("PATCH", b.http + place, "a=ice-ufrag:watch\r\n", "application/trickle-ice-sdpfrag")
            #expect(trickled.status == 204, "\(trickled.text)")
            #expect(try await call("DELETE", b.http + place.dropLast() + "x").status == 404, "another secret")
            #expect(try await sessions() == 1)
            #expect(try await call("DELETE", b.http + place).status == 200)
            try await eventually("the end of the session") { try await sessions() == 0 }
            #expect(try await call("DELETE", b.http + place).status == 404)
        }
    }

    /// A forbidden stream ends on the other node, and is refused there.
    @Test func aBanHoldsEverywhere() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 12)
        try await ClusterServers.run { a, b in
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(a.rtmp)/live/cam1"))
            defer { push.send(SIGKILL) }
            try await a.wait("rooms/cam1") { $0["state"].string == "live" }
            let answer = try await b.call("POST", "streams/live/cam1/forbid", "{\"seconds\": 3600}", token: a.token)
            #expect(answer.status == 200, "\(answer.text)")
            try await eventually("the end of the push") { !push.isRunning }
            #expect(try await b.call("GET", "rooms/cam1", token: a.token).json()["data"]["state"].string != "live")
        }
    }

    /// A report about a push at the other node counts as the publisher's, and as nobody else's.
    @Test func reportsAreThePublishersEverywhere() async throws {
        try await ClusterServers.run({ $0.credentials.jwtKey = TestCredential.keys.jwtKey }) { a, b in
            func token(_ user: String) -> String {
                let claims: JSONValue = ["sub": .string(user), "stream": "live/cam1", "act": ["publish"], "exp": 4_000_000_000]
                return "token=\(TestCredential.token(claims.text))"
            }
            let publisher = try await TagClient.publish(to: a, "live/cam1?\(token("ann"))")
            try await publisher.send(FLVTag.media(of: Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 2)))
            try await b.wait("rooms/cam1") { $0["state"].string == "live" }
            for (user, query) in [("another user", token("bob")), ("nobody", "x=y")] {
                var answer = try await b.beat("cam1", query, "finished")
                try await eventually("a turn") {
                    if answer.status == 429 { answer = try await b.beat("cam1", query, "finished") }
                    return answer.status != 429
                }
                #expect((400..<500).contains(answer.status), "\(user): \(answer.text)")
            }
            #expect(try await b.pacedBeat("cam1", token("ann"))["state"].string == "live")
            #expect(try await a.api("rooms/cam1")["state"].string == "live" && !publisher.current.isClosed)
            await publisher.close()
        }
    }

    /// A link that one node was asked for belongs to all: it runs on one of them, and each can end it.
    @Test func linksAreOfAllNodes() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 12)
        try await TestServer.run { origin in
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(origin.rtmp)/live/cam1"))
            defer { push.send(SIGKILL) }
            try await origin.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
            try await ClusterServers.run({ $0.outbound.allowPrivate = CIDR.loopback }) { a, b in
                let token = a.token
                @Sendable func links(_ server: TestServer) async throws -> JSON {
                    try await server.call("GET", "links", token: token).json()["data"]["list"]
                }
                let answer = try await b.call(
                    "POST", "links",
                    #"{"direction":"pull","app":"live","name":"copy","url":"\#(origin.rtmp)/live/cam1"}"#, token: token)
                #expect(answer.status == 201, "\(answer.text)")
                try await eventually("the link on the other node") { try await links(a).count == 1 }
                // One of them pulls.
                try await eventually("the stream on one of them") {
                    let lists = [
                        try await a.api("streams")["list"], try await b.call("GET", "streams", token: token).json()["data"]["list"],
                    ]
                    return lists.map { $0.list.count { $0["name"].string == "copy" } }.sorted() == [0, 1]
                }
                let id = try await links(b)[0]["linkId"].int.orThrow()
                #expect(try await b.call("DELETE", "links/\(id)", token: token).status == 200)
                try await eventually("the link's end on the other node") { try await links(a).count == 0 }
                try await eventually("the stream's end") {
                    for server in [a, b] {
                        let list = try await server.call("GET", "streams", token: token).json()["data"]["list"]
                        if list.list.contains(where: { $0["state"].string == "live" }) { return false }
                    }
                    return true
                }
            }
        }
    }

    /// While the key changes, one node after the other, each accepts what the other has signed.
    @Test func theKeyChangesNodeByNode() async throws {
        let (former, next) = ("the-former-key-of-all-nodes-0123456789", "the-next-key-of-all-nodes-0123456789")
        let configure: @Sendable (inout ServerConfig) -> Void = { config in
            let isAhead = config.cluster.name == "b"
            config.cluster.key = isAhead ? next : former
            config.cluster.previousKey = isAhead ? former : next
            config.access.publishFrom = []
        }
        try await ClusterServers.run(configure) { a, b in
            for (room, signer, other) in [("r1", a, b), ("r2", b, a)] {
                #expect(try await signer.call("POST", "rooms", #"{"roomId":"\#(room)"}"#, token: a.token).status == 201)
                let url = try await signer.call("POST", "rooms/\(room)/push-url", "{}", token: a.token).json()["data"]
                let key = try url["streamKey"].string.orThrow()
                let camera = try await RawClient.connected(other.addresses.rtmp.port, app: "live")
                try await camera.publish(key, on: camera.createStream())
                try await eventually("\(room) at the other node") {
                    try await other.call("GET", "streams", token: a.token).json()["data"]["list"].list.contains {
                        $0["name"].string == room
                    }
                }
                await camera.close()
            }
            let stranger = try await RawClient.connected(b.addresses.rtmp.port, app: "live")
            await #expect(throws: (any Error).self) {
                try await stranger.publish("r1?txSecret=0&txTime=7fffffff", on: stranger.createStream())
            }
            await stranger.close()
        }
    }
}
