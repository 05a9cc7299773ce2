import EarshotServer
import Foundation
import Testing

/// Pages of other origins: who may play, and what players that must go are told.
@Suite struct PageAccessTests {
    private static func upgrade(_ server: TestServer, _ path: String, origin: String?) async throws -> String {
        let socket = try await SocketClient.open(server.addresses.http.port)
        var head = "GET \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(server.addresses.http.port)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        head += "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        if let origin { head += "Origin: \(origin)\r\n" }
        try await socket.send("\(head)\r\n")
        let (answer, _) = try await socket.answer()
        await socket.close()
        return String(answer.prefix { $0 != "\r\n" })
    }

    /// A browser lets every page open WebSockets to anywhere: whose may is the server's to say.
    @Test(arguments: ["*", "https://good.example", ""]) func webSockets(_ allowed: String) async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 8)
        try await TestServer.run({ $0.http.allowOrigin = allowed }) { server in
            try await ClientProcess.during(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1")) { _ in
                try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                let own = "http://127.0.0.1:\(server.addresses.http.port)"
                let expected = [
                    (nil, true), (own, true), ("https://good.example", allowed != ""), ("https://evil.example", allowed == "*"),
                    ("null", allowed == "*"), ("https://good.example.evil.example", allowed == "*"),
                ]
                for (origin, isLetIn) in expected {
                    for format in ["flv", "fmp4"] {
                        let line = try await Self.upgrade(server, "/live/cam1.\(format)", origin: origin)
                        #expect(line.contains(isLetIn ? " 101 " : " 403 "), "\(format) for \(origin ?? "no page"): \(line)")
                    }
                }
            }
        }
    }

    /// Before a page's script may send a header of its own, its browser asks (Fetch §4.8).
    @Test(arguments: ["flv", "mp4", "m3u8"]) func preflights(_ format: String) async throws {
        try await TestServer.run { server in
            let answer = try await HTTPAnswer.call(
                "OPTIONS", "\(server.http)/live/cam1.\(format)", headers: ["Origin": "https://a.example"])
            #expect(answer.status == 204 && answer.headers["access-control-allow-origin"] == "*")
            #expect(answer.headers["access-control-allow-headers"]?.contains("range") == true)
        }
    }

    /// Who plays what is forbidden is told that, not that the stream is over; nobody stays in the list.
    @Test func forbiddenIsForbidden() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 20)
        try await TestServer.run { server in
            try await ClientProcess.during(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1")) { _ in
                try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                let player = try ClientProcess(["curl", "-sS", "-o", "/dev/null", "\(server.http)/live/cam1.flv"])
                defer { player.send(SIGKILL) }
                #expect(try await HTTPAnswer.get("\(server.http)/live/cam1.m3u8").status == 200)
                try await server.wait("sessions") { list in
                    Set(list["list"].list.compactMap { $0["transport"].string }).isSuperset(of: ["http-flv", "hls"])
                }
                #expect(try await server.call("POST", "streams/live/cam1/forbid", "{}").status == 200)
                let played = try await player.outcome(within: 10)
                #expect(played.status == 0, "the body ended as it should: \(played.errors)")
                try await server.wait("sessions") { list in
                    !list["list"].list.contains { ["http-flv", "hls"].contains($0["transport"].string) }
                }
                // The publisher, and both viewers.
                try await server.wait("counters") { $0["closed"]["forbidden"].int == 3 }
            }
        }
    }
}
