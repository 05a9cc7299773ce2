import EarshotServer
import Foundation
import Rooms
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ServerConfiguration

/// HTTP-FLV and WebSocket-FLV with real players, which get what ffmpeg pushed.
@Suite struct FLVClientsTests {
    static let media = [
        RelayedPacketsTests.Recording("H.264 with B-frames, AAC", video: Fixture.withBFrames, audio: Fixture.aac),
        RelayedPacketsTests.Recording("AAC only", audio: Fixture.aac),
        RelayedPacketsTests.Recording("video only", video: Fixture.baseline),
    ]

    /// Players join a running stream at a keyframe, and get its rest and its end.
    @Test(arguments: media) func ffmpegAndGStreamerPlay(_ media: RelayedPacketsTests.Recording) async throws {
        let source = try await Fixture.flv(video: media.video, audio: media.audio, seconds: 8)
        let expected = try await PacketList.of(file: source)
        let size = try FileManager.default.attributesOfItem(atPath: source)[.size] as? Int ?? 0
        try await Fixture.withDirectory { directory in
            let file = directory.appendingPathComponent("gst.flv").path
            try await TestServer.run({ $0.rooms.policy.cleanStopMs = 500 }) { server in
                let url = "\(server.http)/live/cam1.flv"
                try await ClientProcess.during(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1")) { push in
                    try await server.wait("streams") { ($0["list"][0]["bytesIn"].int ?? 0) > size / 3 }
                    let ffmpeg = try ClientProcess(Probe.packets(url))
                    let gstreamer = try ClientProcess([
                        "gst-launch-1.0", "-q", "souphttpsrc", "location=\(url)", "!", "filesink", "location=\(file)",
                    ])
                    defer { for player in [ffmpeg, gstreamer] { player.send(SIGKILL) } }
                    try await push.halted {
                        try await server.wait("sessions") { list in
                            (0..<3).filter { list["list"][$0]["transport"].string == "http-flv" }.count == 2
                        }
                    }
                    #expect(try await server.api("streams")["list"][0]["viewers"].int == 2)
                    let pushed = try await push.outcome()
                    #expect(pushed.status == 0, "\(pushed.errors)")
                    let first = PacketList(csv: try await ffmpeg.outcome().text)
                    #expect(first.tailDifference(of: expected) == nil)
                    let second = try await gstreamer.outcome()
                    #expect(second.status == 0, "the body ended as it should: \(second.errors)")
                    let played = try await PacketList.of(file: file)
                    #expect(played.tailDifference(of: expected) == nil)
                    if media.video != nil { #expect(played.only("video").packets.first?.isKeyframe == true) }
                }
            }
        }
    }

    private static let webSocketScript = """
        import ssl, sys
        from websockets.sync.client import connect
        from websockets.exceptions import ConnectionClosed
        trust = ssl.create_default_context(cafile=sys.argv[3]) if len(sys.argv) > 3 else None
        with open(sys.argv[2], "wb") as file, connect(sys.argv[1], ssl=trust, max_size=None) as player:
            try:
                while True: file.write(player.recv(timeout=20))
            except ConnectionClosed as closed:
                print("closed", closed.rcvd.code if closed.rcvd else None)
        """

    /// Plain, and over TLS with the certificate checked. Each message is an FLV header or a tag; together they make a file.
    @Test(arguments: [false, true]) func webSocket(_ isSecure: Bool) async throws {
        let packages = try await PythonPackage(requirement: "websockets==15.0.1").folder()
        let source = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 10)
        let expected = try await PacketList.of(file: source)
        try await Fixture.withDirectory { directory in
            let files = try await Certificate.make("localhost", in: directory)
            let file = directory.appendingPathComponent("ws.flv").path
            try await TestServer.run({ config in
                config.rooms.policy.cleanStopMs = 500
                guard isSecure else { return }
                config.rtmps.listen = HostPort(host: "127.0.0.1", port: 0)
                (config.rtmps.certificate, config.rtmps.key) = (files.certificate, files.key)
            }) { server in
                let address =
                    isSecure
                    ? "wss://localhost:\(try server.addresses.https.orThrow().port)" : "ws://127.0.0.1:\(server.addresses.http.port)"
                try await ClientProcess.during(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1")) { push in
                    try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                    let player = try ClientProcess(
                        ["PYTHONPATH=\(packages)", "python3", "-c", Self.webSocketScript, "\(address)/live/cam1.flv", file]
                            + (isSecure ? [files.certificate] : []))
                    defer { player.send(SIGKILL) }
                    try await push.halted { try await server.wait("streams") { $0["list"][0]["viewers"].int == 1 } }
                    _ = try await push.outcome()
                    let ended = try await player.outcome()
                    #expect(ended.status == 0 && ended.text.contains("closed 1000"), "\(ended.text) \(ended.errors)")
                    let played = try await PacketList.of(file: file)
                    #expect(played.tailDifference(of: expected) == nil)
                }
            }
        }
    }

    /// A refused player gets the reason in the API's form. A page's script can read it if the request has a credential or a session.
    @Test func refusals() async throws {
        try await TestServer.run { server in
            for (path, status, words) in [
                ("live/none.flv", 404, "no live stream \\\"live/none\\\""), ("live/a%2Fb.flv", 400, "not a stream's address"),
                ("live/%2e%2e/b.flv", 400, "component"), ("live/a%00.flv", 400, "control character"),
                ("live/none.flv?txSecret=00&txTime=5C271099", 403, "expected 32"), ("live/none.mp4", 404, "no live stream"),
                ("live/none.m3u8", 404, "no live stream"), ("live/none.hls/media.m3u8?s=0", 403, "session is unknown"),
                ("live/\(String(repeating: "n", count: 300)).flv", 400, "limit is 256"),
            ] {
                let answer = try await HTTPAnswer.get("\(server.http)/\(path)")
                #expect(answer.status == status && answer.text.contains(words), "\(path): \(answer.status) \(answer.text)")
                #expect(answer.headers["access-control-allow-origin"] == (path.contains("=") ? "*" : nil), "\(path)")
            }
        }
    }

    /// A viewer over HTTP-FLV is like any other: listed, ended by number, removed with its room.
    @Test func endedByTheAPI() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 8)
        try await TestServer.run { server in
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                let players = try (0..<2).map { _ in
                    try ClientProcess(["curl", "-sS", "-o", "/dev/null", "\(server.http)/live/cam1.flv"])
                }
                defer { for player in players { player.send(SIGKILL) } }
                try await server.wait("sessions?role=player") { $0["total"].int == 2 }
                let first = try await server.api("sessions?role=player")["list"][0]["sessionId"].int.orThrow()
                #expect(try await server.call("DELETE", "sessions/\(first)").status == 200)
                try await server.wait("sessions?role=player") { $0["total"].int == 1 }
                #expect(try await server.call("POST", "streams/live/cam1/forbid", "{}").status == 200)
                for player in players { #expect(try await player.outcome().status == 0, "the body has an end") }
                #expect(try await HTTPAnswer.get("\(server.http)/live/cam1.flv").status == 403)
                #expect(try await server.api("streams/live/cam1")["stream"]["viewers"].int ?? 0 == 0)
            }
        }
    }

    /// For every protocol of the viewers, all counters match the facts, and a stream is listed once.
    @Test func everyKindIsCounted() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 12)
        try await TestServer.run { server in
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                let players = try ["flv", "mp4"].map {
                    try ClientProcess(["curl", "-sS", "-o", "/dev/null", "\(server.http)/live/cam1.\($0)"])
                }
                defer { for player in players { player.send(SIGKILL) } }
                #expect(try await HTTPAnswer.get("\(server.http)/live/cam1.m3u8").status == 200)
                #expect(try await HTTPAnswer.get("\(server.http)/live/cam1.flv?token=none").status == 403)
                try await server.wait("streams") { $0["total"].int == 1 && $0["list"][0]["viewers"].int == 3 }
                let check = try await server.api("selfcheck")
                #expect(check["ok"].bool == true, "\(check)")
            }
        }
    }

    /// A viewer that stops reading is dropped; the other one misses nothing.
    @Test func stalledViewerIsLetGo() async throws {
        let source = try await Fixture.flv(
            video: Fixture.baseline + ["-b:v", "4M", "-minrate", "4M"], audio: nil, seconds: 16, size: "1280x720")
        let expected = try await PacketList.of(file: source)
        try await TestServer.run({
            $0.relay.maxBehindMs = 4_000
            // The other one may be held up.
            $0.relay.skipBehindMs = 4_000
            $0.rooms.policy.cleanStopMs = 500
        }) { server in
            try await ClientProcess.during(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1")) { push in
                try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                let reader = try ClientProcess(Probe.packets("\(server.http)/live/cam1.flv"))
                let stalled = try ClientProcess(["curl", "-sS", "-N", "-o", "/dev/null", "\(server.http)/live/cam1.flv"])
                defer { for player in [reader, stalled] { player.send(SIGKILL) } }
                try await push.halted { try await server.wait("sessions?role=player") { $0["total"].int == 2 } }
                stalled.send(SIGSTOP)
                try await eventually("the stalled one is let go") { server.lines.contains("too_slow") }
                _ = try await push.outcome()
                let played = PacketList(csv: try await reader.outcome().text)
                #expect(played.tailDifference(of: expected) == nil)
            }
        }
    }
}
