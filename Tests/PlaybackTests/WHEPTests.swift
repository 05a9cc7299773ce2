import Foundation
import PortlessTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer
@testable import Playback

/// WHEP's answers, without a client's media: real clients are in Tests/Players.
@Suite struct WHEPTests {
    static let offer =
        "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\na=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n"
        + "a=fingerprint:sha-256 " + Array(repeating: "AB", count: 32).joined(separator: ":") + "\r\na=setup:actpass\r\n"
        + "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:0\r\na=recvonly\r\na=rtcp-mux\r\na=rtpmap:96 H264/90000\r\n"
        + "a=fmtp:96 packetization-mode=1;profile-level-id=42e01f\r\n"
        + "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:1\r\na=recvonly\r\na=rtcp-mux\r\na=rtpmap:111 opus/48000/2\r\n"

    private static func ask(
        _ server: PortlessServer, _ method: String, _ path: String, _ body: String = WHEPTests.offer, type: String? = "application/sdp",
        _ headers: [String: String] = [:]
    ) async throws -> HTTPAnswer {
        var headers = headers
        if let type { headers["Content-Type"] = type }
        return try await HTTPAnswer.call(method, "\(server.http)\(path)", body: Data(body.utf8), headers: headers)
    }

    /// A server whose UDP port is open; the rest is in memory.
    private static func run(
        _ configure: (inout ServerConfig) -> Void = { _ in }, _ body: @Sendable (PortlessServer) async throws -> Void
    ) async throws {
        try await PortlessServer.run(configure) { server in
            let address = HostPort(host: "127.0.0.1", port: 0)
            _ = try await server.parts.webrtc.port.bind(to: address, server.server.sockets)
            try await body(server)
        }
    }

    @Test func `an offer is answered, and its session has an address`() async throws {
        let tags = try await FLVTag.media(of: Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 3))
        try await Self.run { server in
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            try await publisher.send(tags)
            try await server.wait("streams") { $0["list"][0]["video"]["codec"].string != nil }
            let answer = try await Self.ask(server, "POST", "/whep/live/cam1")
            #expect(answer.status == 201, "\(answer.text)")
            let place = try answer.headers["location"].orThrow()
            #expect(place.hasPrefix("\(server.http)/whep/resource/") && !place.contains("?") && answer.headers["etag"]?.count == 18)
            #expect(answer.headers["content-type"] == "application/sdp" && answer.text.hasPrefix("v=0\r\n"))
            let port = try server.parts.webrtc.port.port.orThrow()
            #expect(answer.text.contains("127.0.0.1 \(port) typ host") && answer.text.contains("a=ice-lite"))
            try await server.wait("sessions?role=player") { $0["list"][0]["transport"].string == "webrtc" }
            let path = String(place.dropFirst(server.http.count))
            let fragment = "application/trickle-ice-sdpfrag"
            #expect(try await Self.ask(server, "PATCH", path, "a=ice-ufrag:abcd\r\na=candidate:1\r\n", type: fragment).status == 204)
            #expect(try await Self.ask(server, "PATCH", path, "a=ice-ufrag:other\r\n", type: fragment).status == 422)
            #expect(try await Self.ask(server, "PATCH", path, "x", type: "text/plain").status == 415)
            let got = try await HTTPAnswer.call("GET", place)
            #expect(got.status == 405 && got.headers["allow"] == "DELETE, PATCH, OPTIONS")
            #expect(try await HTTPAnswer.call("DELETE", place).status == 200)
            try await server.wait("sessions?role=player") { $0["list"].list.isEmpty }
            #expect(try await HTTPAnswer.call("DELETE", place).status == 404)
            await publisher.close()
        }
    }

    @Test func `refusals say why`() async throws {
        try await Self.run({ $0.rooms.autoCreate = .never }) { server in
            #expect(try await Self.ask(server, "POST", "/whep/live/nobody").status == 404)
            #expect(try await Self.ask(server, "POST", "/whep/live/cam1", type: "text/plain").status == 415)
            #expect(try await Self.ask(server, "POST", "/whep/live/cam1", "hello").status == 400)
            #expect(try await Self.ask(server, "POST", "/whep/live/cam1", String(repeating: "a", count: 1 << 20)).status == 413)
            #expect(try await Self.ask(server, "POST", "/whep/talk/cam1/mix").status == 404)
            #expect(try await Self.ask(server, "POST", "/whep/live").status == 400)
            let unknown = try await Self.ask(
                server, "POST", "/whep/live/cam1", Self.offer.replacing("H264", with: "VP8").replacing("opus", with: "G722"))
            #expect(unknown.status == 406 && unknown.text.contains("vp8, g722"), "\(unknown.text)")
            let get = try await HTTPAnswer.call("GET", "\(server.http)/whep/live/cam1")
            #expect(get.status == 405 && get.headers["allow"] == "POST, OPTIONS")
            #expect(
                try await Self.ask(server, "POST", "/whep/live/cam1", type: "application/sdp", ["Authorization": "Basic x"]).status == 401)
        }
        try await PortlessServer.run({ $0.webrtc.isEnabled = false }) { server in
            let off = try await Self.ask(server, "POST", "/whep/live/cam1")
            #expect(off.status == 404 && off.text.contains("webrtc.enabled"))
        }
    }

    /// A room waits for its device: the session waits with it, as RTMP's players do.
    @Test func `a session waits for its device`() async throws {
        try await Self.run { server in
            let room = Data(#"{"roomId":"walk"}"#.utf8)
            #expect(try await HTTPAnswer.call("POST", "\(server.http)/api/v1/rooms", body: room, token: server.token).status == 201)
            let answer = try await Self.ask(server, "POST", "/whep/live/walk")
            #expect(answer.status == 201, "\(answer.text)")
            let closed = try await HTTPAnswer.call(
                "POST", "\(server.http)/api/v1/streams/live/walk/forbid", body: Data("{}".utf8), token: server.token)
            #expect(closed.status == 200)
            try await server.wait("sessions?role=player") { $0["list"].list.isEmpty }
            #expect(try await Self.ask(server, "POST", "/whep/live/walk").status == 403)
        }
    }

    @Test func `a stream with B-frames is refused with advice`() async throws {
        let tags = try await FLVTag.media(of: Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 3))
        try await Self.run({ $0.webrtc.bFrames = .refuse }) { server in
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            try await publisher.send(tags)
            try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
            let answer = try await Self.ask(server, "POST", "/whep/live/cam1")
            #expect(
                answer.status == 406 && answer.text.contains("-bf 0") && answer.text.contains(#""rule":"unplayable""#), "\(answer.text)")
            await publisher.close()
        }
    }

    /// What is done is told: by the stream, and by the metrics, which count it until nobody watches.
    @Test func `a stream with B-frames is encoded anew`() async throws {
        let tags = try await FLVTag.media(of: Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 3))
        try await Self.run { server in
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            try await publisher.send(tags)
            try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
            #expect(try await server.api("streams/live/cam1")["stream"]["webrtc"].string == nil)
            #expect(try await Self.ask(server, "POST", "/whep/live/cam1").status == 201)
            try await server.wait("streams/live/cam1") { $0["stream"]["webrtc"].string == "encoded" }
            let metrics = try await server.request("GET", "/metrics", token: server.token).text
            #expect(metrics.contains("earshot_webrtc_encoders 1\n"))
            await publisher.close()
        }
    }

    /// Pages of other origins need a preflight, and may read what a player needs.
    @Test func `pages of other origins`() async throws {
        try await Self.run { server in
            let preflight = try await HTTPAnswer.call(
                "OPTIONS", "\(server.http)/whep/live/cam1",
                headers: ["Origin": "https://app.example", "Access-Control-Request-Method": "POST"])
            #expect(preflight.status == 204 && preflight.headers["access-control-allow-origin"] == "*")
            #expect(preflight.headers["access-control-allow-methods"] == "POST, DELETE, PATCH, OPTIONS")
            #expect(preflight.headers["access-control-allow-headers"] == "authorization, content-type, if-match")
            let refused = try await Self.ask(server, "POST", "/whep/live/cam1", Self.offer, ["Origin": "https://app.example"])
            #expect(refused.status == 403 && refused.headers["access-control-allow-origin"] == "*", "\(refused.text)")
            #expect(refused.headers["access-control-expose-headers"] == "Location, ETag, Link, Retry-After")
        }
    }

    /// Connections that never come up are bounded, by host too.
    @Test func `offers without a handshake`() async throws {
        let tags = try await FLVTag.media(of: Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 2))
        try await Self.run({ $0.limits.connectionsPerAddress = 1_000 }) { server in
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            try await publisher.send(tags)
            try await server.wait("streams") { $0["list"][0]["video"]["codec"].string != nil }
            var answers: [Int: Int] = [:]
            // Within the time that each has to connect.
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<130 { group.addTask { try await Self.ask(server, "POST", "/whep/live/cam1").status } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            for status in statuses { answers[status, default: 0] += 1 }
            #expect(answers == [201: 100, 503: 30], "\(answers)")
            #expect(server.parts.webrtc.viewers == 100 && !publisher.current.isClosed)
            await publisher.close()
        }
    }
}
