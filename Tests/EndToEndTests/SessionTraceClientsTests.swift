import Access
import EarshotServer
import Foundation
import NIOCore
import RTMP
import RTMPTestSupport
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing
import Trace

@testable import Streaming

/// The flight recorders of sessions on a live server: what ffmpeg, hostile clients and players over HTTP leave in them.
@Suite struct SessionTraceClientsTests {
    private static func session(_ server: TestServer, _ matches: @escaping @Sendable (JSON) -> Bool) async throws -> Int {
        var found: Int?
        try await eventually("the session") {
            found = try await server.api("sessions")["list"].list.first(where: matches)?["sessionId"].int
            return found != nil
        }
        return try found.orThrow()
    }

    private static func names(_ trace: JSON, _ direction: String) -> [String] {
        trace["entries"].list.filter { $0["direction"].string == direction }.compactMap { $0["name"].string }
    }

    private static func text(_ json: JSON) -> String { String(describing: json.value) }

    private static func ordered(_ names: [String], in all: [String]) -> Bool {
        var rest = all[...]
        return names.allSatisfy { name in
            guard let index = rest.firstIndex(of: name) else { return false }
            rest = rest[(index + 1)...]
            return true
        }
    }

    /// A push and a play by ffmpeg with credentials: commands, answers and media are there, in the API and on the command line; the
    /// credentials are nowhere.
    @Test func ffmpegPushesAndPlays() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 4)
        try await Fixture.withDirectory { directory in
            try await TestServer.run({
                $0.access.publishFrom = []
                $0.credentials.key = TestCredential.keys.key
            }) { server in
                let signed = TestCredential.signed("cam1")
                try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1?\(signed)")) { push in
                    let publisher = try await Self.session(server) { $0["publishing"][0].string == "live/cam1" }
                    try await server.wait("sessions/\(publisher)/trace") { $0["entries"].list.count > 100 }
                    let pushed = try await server.api("sessions/\(publisher)/trace")
                    #expect(Self.ordered(["connect", "createStream", "publish"], in: Self.names(pushed, "received")))
                    #expect(Self.ordered(["_result", "_result", "onStatus"], in: Self.names(pushed, "sent")))
                    #expect(Self.ordered(["admitted", "firstMedia"], in: Self.names(pushed, "here")))
                    let messages = pushed["entries"].list.filter { $0["kind"].string == "message" }
                    let video = messages.filter { $0["name"].string == "video" }
                    #expect(video.first?["message"]["sequenceHeader"].bool == true)
                    #expect(video.contains { $0["message"]["keyframe"].bool == true && ($0["message"]["bytes"].int ?? 0) > 100 })
                    #expect(messages.contains { $0["name"].string == "audio" } && messages.contains { $0["name"].string == "data" })
                    let ages = pushed["entries"].list.compactMap { $0["agoMs"].int }
                    #expect(ages.count == pushed["entries"].list.count && ages.allSatisfy { $0 < 120_000 })
                    // Headers get the time of their read turn, so they may be older than the states that they cause by what the machine stood still in it.
                    #expect(zip(ages, ages.dropFirst()).allSatisfy { $0 >= $1 - 2_000 })
                    #expect(pushed["endedAt"].isNull && pushed["reason"].isNull)

                    try await ClientProcess.during(Probe.packets("\(server.rtmp)/live/cam1")) { _ in
                        let player = try await Self.session(server) { $0["playing"][0]["stream"].string == "live/cam1" }
                        let played = try await server.api("sessions/\(player)/trace")
                        #expect(Self.ordered(["connect", "createStream", "play"], in: Self.names(played, "received")))
                        #expect(Self.ordered(["onStatus"], in: Self.names(played, "sent")))
                        #expect(!played["entries"].list.contains { $0["kind"].string == "message" })
                    }

                    let cli = try await server.cli(.ops, in: directory)
                    let table = try await cli.text("sessions", "trace", "\(publisher)")
                    #expect(table.contains("publish #") && table.contains("cam1?txSecret=***&txTime=***"), "\(table.prefix(4_000))")
                    #expect(table.contains("keyframe"))
                    let json = try await cli.json("sessions", "trace", "\(publisher)")
                    #expect(json["sessionId"].int == publisher && json["entries"].list.count >= messages.count)
                    let shown = table + Self.text(json) + Self.text(pushed) + server.lines.all.joined()
                    let secret = signed.split(separator: "=")[1].prefix { $0 != "&" }
                    #expect(secret.count == 32 && !shown.contains(secret), "the credential is shown")
                    push.send(SIGKILL)
                    // Killed without a word: an abnormal end, whose trace stays.
                    let words = "closed connection_lost"
                    #expect(await server.lines.comes("Trace of a closed session", "conn=\(publisher) ", "publish #", "messages:", words))
                    let ended = try await server.api("sessions/\(publisher)/trace")
                    #expect(ended["reason"].string == "connection_lost" && ended["endedAt"].string != nil)
                    #expect(Self.names(ended, "here").last == "closed")
                    #expect(Self.ordered(["connect", "createStream", "publish"], in: Self.names(ended, "received")))
                    #expect(!Self.text(ended).contains(secret) && !server.lines.all.joined().contains(secret))
                }
            }
        }
    }

    /// Garbage after a proper beginning, secrets in every command before it.
    @Test func garbageLeavesATrace() async throws {
        try await TestServer.run { server in
            let secret = "S3cr3tS3cr3t"
            let client = try await RawClient.shaken(server.addresses.rtmp.port)
            try await client.connect(
                app: "live?token=\(secret)",
                extra: [
                    AMF0Property(name: "password", value: .string(secret)),
                    AMF0Property(name: "pageUrl", value: .string("http://u:\(secret)@h/?x=\(secret)")),
                ])
            client.send(Command("login", transaction: 7, arguments: [.string(secret)]))
            client.send(Command(secret, transaction: 8, arguments: [.string(secret)]))
            _ = try await client.createStream()
            client.send(Command("FCPublish", transaction: 9, arguments: [.string("cam?key=\(secret)")]))
            try await eventually("the answer") { client.results[9] != nil }
            let id = try await Self.session(server) { $0["address"].string == client.address }
            let running = try await server.api("sessions/\(id)/trace")
            #expect(Self.ordered(["connect", "login", "unknown(12)", "createStream", "FCPublish"], in: Self.names(running, "received")))
            await client.send(bytes: [0xFF, 0xFF, 0xFF, 0xFF])
            try await server.expectClosed(client, .protocolError)
            #expect(await server.lines.comes("Trace of a closed session", "conn=\(id) ", "createStream #", "closed protocol_error"))
            let line = try server.lines.all.first { $0.contains("Trace of a closed session") }.orThrow()
            #expect(line.utf8.count < CompactTrace.longest + 500)
            let ended = try await server.api("sessions/\(id)/trace")
            #expect(ended["reason"].string == "protocol_error")
            #expect(!(Self.text(running) + Self.text(ended) + server.lines.all.joined()).contains(secret))

            // A clean end leaves nothing.
            let clean = try await RawClient.connected(server.addresses.rtmp.port)
            let cleanID = try await Self.session(server) { $0["address"].string == clean.address }
            await clean.close()
            #expect(await server.lines.comes("Connection closed", "conn=\(cleanID) "))
            #expect(try await server.call("GET", "sessions/\(cleanID)/trace").status == 404)
            #expect(!server.lines.contains("Trace of a closed session", "conn=\(cleanID) "))
            try await eventually("the memory of the clean one") {
                server.server.parts.connections.traces.store.used < TraceStore.viewerBytes * 2
            }
        }
    }

    /// Something else than RTMP from the first byte.
    @Test func otherProtocolsLeaveATrace() async throws {
        try await TestServer.run { server in
            let client = try await RawClient.open(server.addresses.rtmp.port)
            await client.send(bytes: Array("GET /?token=S3cr3t HTTP/1.1\r\nAuthorization: Bearer S3cr3t\r\n\r\n".utf8))
            try await server.expectClosed(client, .notRTMP)
            let words = "closed not_rtmp: the first bytes are an HTTP request"
            #expect(await server.lines.comes("Trace of a closed session", "opened ", words))
            #expect(!server.lines.contains("S3cr3t"))
        }
    }

    /// Viewers over HTTP, WebSocket and HLS.
    @Test func playersOverHTTP() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 4)
        try await TestServer.run { server in
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                let url = "\(server.http)/live/cam1.flv?sign=S3cr3t"
                try await ClientProcess.during(["curl", "-s", "-o", "/dev/null", url]) { _ in
                    let id = try await Self.session(server) { $0["transport"].string == "http-flv" }
                    let trace = try await server.api("sessions/\(id)/trace")
                    #expect(trace["entries"][0]["kind"].string == "request")
                    #expect(trace["entries"][0]["text"].string == "/live/cam1.flv?sign=***, 200")
                    #expect(Self.names(trace, "here").contains("admitted"))
                }
                let socket = try await WebSocketClient.open(server.addresses.http.port, "/live/cam1.flv")
                try await socket.send(9, "x".utf8)
                let id = try await Self.session(server) { $0["transport"].string == "ws-flv" }
                try await server.wait("sessions/\(id)/trace") { Self.names($0, "received") == ["GET", "ping"] }

                let play = ["ffmpeg", "-v", "error", "-i", "\(server.http)/live/cam1.m3u8", "-c", "copy", "-f", "null", "-"]
                try await ClientProcess.during(play) { _ in
                    let id = try await Self.session(server) { $0["transport"].string == "hls" }
                    try await server.wait("sessions/\(id)/trace") { $0["entries"].list.count >= 3 }
                    let trace = try await server.api("sessions/\(id)/trace")
                    #expect(trace["entries"][0]["text"].string?.hasPrefix("/live/cam1.m3u8, 200") == true, "\(Self.text(trace))")
                    #expect(trace["entries"][1]["text"].string?.contains("media.m3u8?s=***, 200") == true, "\(Self.text(trace))")
                }
            }
        }
    }

    /// A publisher that says nothing wrong but sends no media, and a viewer that does not read.
    @Test func skipsAndSilence() async throws {
        try await TestServer.run({
            $0.limits.firstMediaMs = 5_000
            $0.relay.maxBehindMs = 8_000
            $0.relay.skipBehindMs = 500
        }) { server in
            let silent = try await RawClient.publishing(server.addresses.rtmp.port, "silent")
            try await server.expectClosed(silent, .firstMediaTimeout)
            #expect(await server.lines.comes("Trace of a closed session", "stream=silent ", "publish #", "closed first_media_timeout"))
            let publisher = try await RawClient.publishing(server.addresses.rtmp.port, "cam")
            Hostile.SlowViewers.publish(publisher)
            var options = RawClient.Options()
            options.receiveBuffer = 16 << 10
            let deaf = try await server.player(of: "cam", options)
            try await deaf.stopReading()
            #expect(await server.lines.comes("Trace of a closed session", "role=play ", ". behind ", "closed too_slow"))
            // Reads 60 KB/s of 310.
            options.readBytes = 1_200
            let slow = try await server.player(of: "cam", options)
            try await slow.readSlowly(every: .milliseconds(20))
            let id = try await Self.session(server) { $0["address"].string == slow.address }
            try await server.wait("sessions/\(id)/trace") { Self.names($0, "here").contains("skipped") }
            for client in [deaf, slow, publisher] { await client.close() }
        }
    }

    /// An idle connection has no trace before its first command, and an idle viewer none after a while.
    @Test func idleOnesCostNothing() async throws {
        try await TestServer.run({ $0.limits.connectMs = 600_000 }) { server in
            let store = server.server.parts.connections.traces.store
            var waiting: [RawClient] = []
            for _ in 0..<50 { waiting.append(try await RawClient.shaken(server.addresses.rtmp.port)) }
            try await server.wait("sessions") { $0["total"].int == 50 }
            #expect(store.used == 0)
            var viewers: [RawClient] = []
            for _ in 0..<50 { viewers.append(try await RawClient.playing(server.addresses.rtmp.port, "cam")) }
            #expect(store.used > 0 && store.used <= 50 * TraceStore.viewerBytes)
            // Half a minute of quiet, judged by the server's own clock.
            try await eventually("the traces' end", within: 120) { store.used == 0 }
            #expect(try await server.api("sessions")["total"].int == 100)
            for client in waiting + viewers { await client.close() }
        }
    }
}
