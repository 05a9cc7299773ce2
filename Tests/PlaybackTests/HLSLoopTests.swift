import PortlessTestSupport
import RTMPTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer
@testable import HTTPServer
@testable import Packaging

/// HLS that is answered on the connection's loop, below the router.
@Suite struct HLSLoopTests {
    private struct Player {
        let server: PortlessServer
        /// "/live/cam1.hls/media.m3u8?s=…"
        let media: String
        let publisher: TagClient

        /// A stream of four seconds with parts, and what follows.
        static func open(_ server: PortlessServer) async throws -> Player {
            let tags = try await FLVTag.media(of: Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 4))
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            try await publisher.send(tags)
            try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
            async let answer = HTTPAnswer.call("GET", "\(server.http)/live/cam1.m3u8")
            try await eventually("the remuxer") { await server.parts.remuxers.find("live/cam1")?.isFollowing == true }
            try await publisher.send(tags.map { $0.later(by: 4_000) })
            let line = try await answer.text.split(separator: "\n").first { $0.contains("media.m3u8?s=") }
            return Player(server: server, media: "/live/\(try line.map(String.init).orThrow())", publisher: publisher)
        }

        func more(_ ms: UInt32) async throws {
            let tags = try await FLVTag.media(of: Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 4))
            try await self.publisher.send(tags.map { $0.later(by: ms) })
        }

        func playlist() async throws -> String {
            try await HTTPAnswer.call("GET", "\(self.server.http)\(self.media)").text
        }

        /// The path of a file that the playlist names.
        func path(_ file: some StringProtocol) -> String { "/live/cam1.hls/\(file)" }

        /// The Media Sequence Number of the segment after the one that is being filled.
        func nextSequence() async throws -> Int {
            let lines = try await self.playlist().split(separator: "\n")
            let sequence = try lines.first { $0.hasPrefix("#EXT-X-MEDIA-SEQUENCE:") }.flatMap { Int($0.dropFirst(22)) }.orThrow()
            return sequence + lines.count { $0.hasPrefix("#EXTINF:") } + 1
        }

        /// The newest listed part, and the hinted one.
        func parts() async throws -> (newest: String, hinted: String) {
            let lines = try await self.playlist().split(separator: "\n")
            func uri(_ tag: String) throws -> String {
                let line = try lines.last { $0.hasPrefix(tag) }.map(String.init).orThrow()
                return self.path(try line.split(separator: "\"").first { $0.contains("?s=") }.map(String.init).orThrow())
            }
            return (try uri("#EXT-X-PART:"), try uri("#EXT-X-PRELOAD-HINT:"))
        }
    }

    private static func get(_ path: String, _ headers: String...) -> String {
        (["GET \(path) HTTP/1.1", "Host: 127.0.0.1"] + headers).joined(separator: "\r\n") + "\r\n\r\n"
    }

    /// The same answer, whoever gives it: a range of the whole goes to the router.
    @Test func loopAndRouterAnswerAlike() async throws {
        try await PortlessServer.run { server in
            let player = try await Player.open(server)
            let part = try await player.parts().newest
            let url = "\(server.http)\(part)"
            let onLoop = try await HTTPAnswer.call("GET", url)
            let byRouter = try await HTTPAnswer.call("GET", url, headers: ["Range": "bytes=0-"])
            let head = try await HTTPAnswer.call("HEAD", url)
            #expect(onLoop.status == 200 && byRouter.status == 206 && head.status == 200)
            #expect(onLoop.body == byRouter.body && !onLoop.body.isEmpty && head.body.isEmpty)
            let names = [
                "content-type", "cache-control", "accept-ranges", "etag", "vary", "x-content-type-options", "server", "content-length",
            ]
            for name in names {
                let value = onLoop.headers[name]
                #expect(value != nil && value == byRouter.headers[name] && value == head.headers[name], "\(name): \(value ?? "none")")
            }
            // Both are counted as the player's, and as requests of the route.
            let metrics = try await server.request("GET", "/metrics", token: server.token).text
            #expect(metrics.contains("route=\"/{app}/{stream}.hls/{file}\""), "\(metrics)")
            await player.publisher.close()
        }
    }

    /// Asks for what is not there yet, and behind it, on the same connection, for what is. Answers keep the order of the requests.
    @Test func whatComesLaterKeepsItsPlace() async throws {
        try await PortlessServer.run { server in
            let player = try await Player.open(server)
            let next = try await player.nextSequence()
            let socket = try await SocketClient.open(server.addresses.http.port)
            let requests = ["\(player.media)&_HLS_msn=\(next)", "/healthz", "\(player.media)&_HLS_msn=\(next - 1)", "/nothing"]
            try await socket.send(requests.map { Self.get($0) }.joined())
            try await eventually("the wait") { await server.parts.remuxers.find("live/cam1")?.waiting == 1 }
            #expect(socket.received.isEmpty)
            try await player.more(8_000)
            try await player.more(12_000)
            for (status, body) in [(200, "#EXTM3U"), (200, "ok"), (200, "#EXTM3U"), (404, "{")] {
                let answer = try await socket.answer()
                #expect(answer.head.hasPrefix("HTTP/1.1 \(status) ") && answer.body.hasPrefix(body), "\(answer)")
            }
            await socket.close()
            await player.publisher.close()
        }
    }

    /// Requests without end behind one that waits end the connection, and nobody else's.
    @Test func tooManyBehindOneThatWaits() async throws {
        try await PortlessServer.run { server in
            let player = try await Player.open(server)
            let next = try await player.nextSequence()
            let socket = try await SocketClient.open(server.addresses.http.port)
            let wait = Self.get("\(player.media)&_HLS_msn=\(next)")
            try await socket.send(wait + String(repeating: Self.get("/healthz"), count: 1_000))
            try await eventually("the end") { socket.isClosed }
            #expect(socket.received.isEmpty && server.hits(.httpMemory) == 1)
            #expect(try await HTTPAnswer.call("GET", "\(server.http)/healthz").status == 200)
            await player.publisher.close()
        }
    }

    /// A reload that waits is answered with the part that it waited for, also to a client that has closed its own half; that connection ends then.
    @Test(arguments: [false, true]) func reloadsWait(_ closesHalf: Bool) async throws {
        try await PortlessServer.run { server in
            let player = try await Player.open(server)
            let next = try await player.nextSequence()
            let socket = try await SocketClient.open(server.addresses.http.port)
            try await socket.send(Self.get("\(player.media)&_HLS_msn=\(next)"))
            try await eventually("the wait") { await server.parts.remuxers.find("live/cam1")?.waiting == 1 }
            if closesHalf { try await socket.closeOutput() }
            try await player.more(8_000)
            try await player.more(12_000)
            let answer = try await socket.answer()
            #expect(answer.head.hasPrefix("HTTP/1.1 200 ") && answer.body.hasPrefix("#EXTM3U"), "\(answer.head)")
            #expect(answer.head.lowercased().contains("connection: close") == closesHalf)
            if closesHalf { try await eventually("the end") { socket.isClosed } }
            await socket.close()
            await player.publisher.close()
        }
    }

    /// A player that is sent away while it waits gets nothing more of the stream.
    @Test func kickedWhileItWaits() async throws {
        try await PortlessServer.run { server in
            let player = try await Player.open(server)
            let next = try await player.nextSequence()
            let socket = try await SocketClient.open(server.addresses.http.port)
            try await socket.send(Self.get("\(player.media)&_HLS_msn=\(next)"))
            try await eventually("the wait") { await server.parts.remuxers.find("live/cam1")?.waiting == 1 }
            let list = try await server.api("sessions?role=player")["list"].list
            let id = try #require(list.first { $0["transport"].string == "hls" }?["sessionId"].int, "\(list)")
            #expect(try await server.call("DELETE", "sessions/\(id)").status == 200)
            try await player.more(8_000)
            try await player.more(12_000)
            #expect(try await socket.answer().head.hasPrefix("HTTP/1.1 403 "))
            await socket.close()
            await player.publisher.close()
        }
    }

    /// Who has no session, one of another stream, or one that has ended is refused as before.
    @Test func refusals() async throws {
        try await PortlessServer.run { server in
            let player = try await Player.open(server)
            let part = try await player.parts().newest
            let bare = String(part.split(separator: "?")[0])
            for path in [part.replacing("cam1.hls", with: "cam2.hls"), part.dropLast(2) + "zz", bare] {
                #expect(try await HTTPAnswer.call("GET", "\(server.http)\(path)").status == 403, "\(path)")
            }
            let foreign = ["Origin": "https://other.example"]
            #expect(try await HTTPAnswer.call("GET", "\(server.http)\(part)", headers: foreign).status == 403)
            #expect(try await HTTPAnswer.call("GET", "\(server.http)\(player.media)&_HLS_msn=x").status == 400)
            #expect(try await HTTPAnswer.call("GET", "\(server.http)\(player.media)&_HLS_msn=99999999999").status == 400)
            await player.publisher.close()
        }
    }
}
