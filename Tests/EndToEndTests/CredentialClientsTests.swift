import Access
import Foundation
import Media
import RTMP
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer
@testable import Listening
@testable import Streaming

/// Credentials over RTMP, on a server where even loopback needs one.
@Suite struct CredentialClientsTests {
    private static func close(_ config: inout ServerConfig) {
        config.access.publishFrom = []
        config.access.playFrom = []
        config.credentials.key = TestCredential.keys.key
        config.credentials.backupKey = TestCredential.keys.backupKey
        config.credentials.jwtKey = TestCredential.keys.jwtKey
        config.outbound.allowPrivate = CIDR.loopback
    }

    private static func urls(_ server: TestServer) -> StreamURLs {
        let address = PublicAddress(config: ServerConfig(), addresses: server.addresses, requestHost: nil)
        return StreamURLs(address: address, keys: server.server.parts.keys, credentials: ServerConfig().credentials)
    }

    private let path = StreamPath(app: "live", name: "cam1")

    /// Waits for the refusal and the end of the connection.
    private func refusal(_ server: TestServer, _ role: TagClient.Role, _ path: String) async throws -> Status {
        let client = try await TagClient.connect(to: server, role, path)
        try await eventually("the refusal of \(path)") { client.current.isClosed }
        #expect(!client.current.hasStarted)
        return try (client.current.refusal ?? client.current.statuses.last).orThrow()
    }

    /// ffmpeg with each kind of URL, as devices use them; our own client sends the query in the app, as HaishinKit does.
    @Test(arguments: [StreamURLs.Scheme.txSecret, .jwt])
    func urlsMadeHereAreGoodForFFmpeg(_ scheme: StreamURLs.Scheme) async throws {
        let file = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 2)
        try await TestServer.run({
            Self.close(&$0)
            $0.rooms.policy.cleanStopMs = 500
        }) { server in
            let now = WallClock.seconds * 1_000
            let signing = StreamURLs.Signing(scheme: scheme, lifetimeSeconds: 60, user: "alice")
            let push = try Self.urls(server).push(self.path, signing, nowMs: now)
            let play = try Self.urls(server).play(self.path, signing, nowMs: now)
            let query = String(push.streamKey.drop { $0 != "?" })
            try await ClientProcess.during(Probe.packets(play.rtmp)) { viewer in
                try await server.wait("streams") { $0["list"][0]["viewers"].int == 1 }
                let pushed = try await ClientProcess.run(FFmpeg.push(file, to: push.rtmp))
                #expect(pushed.status == 0, "\(pushed.errors)")
                let played = PacketList(csv: try await viewer.outcome().text)
                #expect(played.difference(from: try await PacketList.of(file: file)) == nil)
            }
            let split = try await TagClient.publish(to: server, "live\(query)/cam1")
            #expect(split.current.hasStarted)
            await split.close()
            // A trace in the log may name the parameter; its value it hides.
            let secrets = [query, play.rtmp].flatMap { $0.split { "?&=".contains($0) }.filter { $0.utf8.count >= 32 } }
            #expect(secrets.count >= 2)
            for secret in secrets where !secret.hasPrefix("rtmp:") {
                #expect(!server.lines.contains(String(secret)), "\(secret) was logged")
            }
        }
    }

    /// Expiry is checked when a push or play begins, and never again.
    @Test func aURLThatExpiresDoesNotCut() async throws {
        try await TestServer.run(Self.close) { server in
            // A busy machine may take seconds to connect both.
            let now = WallClock.seconds * 1_000
            let push = try Self.urls(server).push(self.path, .init(scheme: .txSecret, lifetimeSeconds: 15), nowMs: now)
            let play = try Self.urls(server).play(self.path, .init(scheme: .jwt, lifetimeSeconds: 15), nowMs: now)
            let publisher = try await TagClient.publish(to: server, "live/\(push.streamKey)")
            let viewer = try await TagClient.play(from: server, "live/cam1\(play.rtmp.drop { $0 != "?" })")
            try await eventually("the URL to expire") {
                let late = try await TagClient.connect(to: server, .play, "live/\(push.streamKey)")
                try await eventually("an answer") { late.current.hasStarted || late.current.isClosed }
                await late.close()
                return late.current.refusal?.description.contains("The URL expired") == true
            }
            let tag = FLVTag(kind: .audio, timestamp: 40, payload: [0xAF, 1, 2, 3])
            try await publisher.send([FLVTag(kind: .audio, timestamp: 0, payload: [0xAF, 0, 0x12, 0x10]), tag])
            try await eventually("the media") { viewer.tags.contains(tag) }
            #expect(!publisher.current.isClosed && !viewer.current.isClosed)
            await publisher.close()
            await viewer.close()
        }
    }

    @Test func hooksDecide() async throws {
        try await ScriptedServer.run { request in
            switch request.json["stream"].string {
            case "good": .status(200, #"{"code":0,"user":"alice"}"#)
            case "bad": .status(200, #"{"code":7,"message":"not today"}"#)
            case "dead": .silence
            default: .status(500, "")
            }
        } _: { hook in
            try await TestServer.run({
                $0.outbound.allowPrivate = CIDR.loopback
                $0.hooks.onPublish = "http://127.0.0.1:\(hook.port)/"
                $0.hooks.onPlay = "http://127.0.0.1:\(hook.port)/"
                $0.hooks.onUnpublish = "http://127.0.0.1:\(hook.port)/"
                $0.hooks.onStop = "http://127.0.0.1:\(hook.port)/"
                $0.hooks.timeoutMs = 8_000
            }) { server in
                let dead = try await TagClient.connect(to: server, .publish, "live/dead")
                try await eventually("the dead hook's question") { hook.requests.count == 1 }
                // Others are admitted meanwhile.
                let good = try await TagClient.publish(to: server, "live/good?key=theirs")
                let viewer = try await TagClient.play(from: server, "live/good")
                #expect(!dead.current.isClosed)
                for role in [TagClient.Role.publish, .play] {
                    let refused = try await self.refusal(server, role, "live/bad")
                    #expect(refused.code == (role == .publish ? "NetStream.Publish.Denied" : "NetStream.Play.Failed"))
                    #expect(refused.description == "[hook_denied] The authorisation hook said no: not today")
                    #expect(try await self.refusal(server, role, "live/broken").description.contains("could not be read"))
                }
                try await eventually("the dead one's refusal") { dead.current.isClosed }
                #expect(dead.current.statuses.last?.description.contains("gave no answer") == true)
                #expect(server.lines.contains("reason=hook_denied") && server.lines.contains("reason=hook_unavailable"))
                #expect(!server.lines.contains("theirs"))
                await viewer.close()
                try await eventually("on_stop") { hook.requests.contains { $0.json["action"].string == "on_stop" } }
                #expect(!good.current.isClosed)
            }
            // The server stopped during this push, and notified the hook before its end.
            let told = hook.requests.filter { $0.json["action"].string == "on_unpublish" }
            #expect(told.count == 1)
            #expect(told.first?.json["stream"].string == "good" && told.first?.json["reason"].string == "server_shutdown")
            #expect(told.first?.json["user"].string == "alice")
            let asked = hook.requests.first { $0.json["stream"].string == "good" }
            #expect(asked?.json["session"].string == told.first?.json["session"].string)
            #expect(asked?.json["param"].string == "?key=theirs")
        }
    }

    /// Without credentials and open addresses the hook decides alone; while it fails, all are refused.
    @Test func hooksAloneLetIn() async throws {
        try await ScriptedServer.run { request in
            switch request.json["stream"].string {
            case "good": .status(200, #"{"code":0}"#)
            case "bad": .status(200, #"{"code":7}"#)
            default: .status(500, "")
            }
        } _: { hook in
            try await TestServer.run({
                APIURLTests.closed(&$0)
                $0.outbound.allowPrivate = CIDR.loopback
                $0.hooks.onPublish = "http://127.0.0.1:\(hook.port)/"
                $0.hooks.onPlay = "http://127.0.0.1:\(hook.port)/"
            }) { server in
                let good = try await TagClient.publish(to: server, "live/good")
                let viewer = try await TagClient.play(from: server, "live/good")
                #expect(hook.requests.map { $0.json["verified"].bool } == [false, false])
                for role in [TagClient.Role.publish, .play] {
                    #expect(try await self.refusal(server, role, "live/bad").description.hasPrefix("[hook_denied] "))
                    #expect(try await self.refusal(server, role, "live/broken").description.hasPrefix("[hook_unavailable] "))
                    let asked = hook.requests.count
                    #expect(
                        try await self.refusal(server, role, "live/good?txSecret=00&txTime=7FFFFFFF").description.hasPrefix(
                            "[credential_wrong] "))
                    #expect(hook.requests.count == asked)
                }
                await viewer.close()
                await good.close()
            }
        }
    }
}
