import EarshotServer
import Foundation
import HLSCheck
import Media
import MediaClips
import Rooms
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ServerConfiguration

/// Hostile publishers and players beside others that play over HTTP.
@Suite struct HostileOutputTests {
    private static func moved(_ tags: [FLVTag], by ms: Int64) -> [FLVTag] {
        tags.map { tag in
            var tag = tag
            tag.timestamp = UInt32(truncatingIfNeeded: Int64(tag.timestamp) + ms)
            return tag
        }
    }

    /// A picture of 8 MiB: its large extra slice is one that no decoder needs.
    private static func huge(_ tag: FLVTag) -> FLVTag {
        var tag = tag
        let count = (8 << 20) - tag.payload.count - 4
        tag.payload += [UInt8(count >> 24), UInt8(count >> 16 & 255), UInt8(count >> 8 & 255), UInt8(count & 255)]
        tag.payload += [0x0C] + [UInt8](repeating: 0xFF, count: count - 1)
        return tag
    }

    /// Each hostile input arrives in a stream played as HLS, FLV and MP4. Playback goes on, and shows the next pictures.
    @Test func nothingStops() async throws {
        let all = try await HLSLatencyTests.media(4)
        let coded = all.filter { !$0.isSequenceHeader }
        let keyframe = try coded.first { $0.kind == .video }.orThrow()
        let endOfSequence = FLVTag.video(0, [0x17, 2, 0, 0, 0])
        try await TestServer.run({
            $0.hls.segmentMs = 1_000
            $0.hls.windowMs = 60_000
            $0.relay.maxBehindMs = 20_000
        }) { server in
            try await Fixture.withDirectory { directory in
                let client = try await TagClient.publish(to: server, "live/cam1")
                let publisher = PacedPublisher(client)
                try await publisher.send(all)
                let files = ["flv", "mp4"].map { directory.appendingPathComponent("played.\($0)").path }
                let players = try zip(["flv", "mp4"], files).map { format, file in
                    try ClientProcess(["curl", "-sS", "-N", "-o", file, "\(server.http)/live/cam1.\(format)"])
                }
                defer { for player in players { player.send(SIGKILL) } }
                try await publisher.send(Self.moved(coded, by: 4_000))
                let live = try await LiveHLS(server, "cam1")
                try await server.wait("sessions?role=player") { $0["total"].int == 3 }
                var atMs: Int64 = 8_000
                let cases: [(String, [FLVTag], Int64)] = [
                    ("a picture of 8 MiB", Self.moved([Self.huge(keyframe)], by: 8_000), 8_040),
                    ("an end of sequence", Self.moved([endOfSequence], by: 12_100), 12_200),
                    ("hours ahead", [], 7_216_000), ("hours back", [], 20_000), ("an empty tag", [.video(24_000, [])], 24_040),
                    ("a broken header", [.video(28_000, [0x17, 0, 0, 0, 0, 1, 0x42])] + all.filter(\.isSequenceHeader), 28_080),
                ]
                for (name, before, startMs) in cases {
                    atMs = startMs
                    let listedMs = try await Self.listedMs(live)
                    let sizes = try files.map { try Self.size($0) }
                    try await client.send(before)
                    try await publisher.send(Self.moved(coded, by: atMs))
                    try await eventually("parts after \(name)") { try await Self.listedMs(live) >= listedMs + 2_000 }
                    try await eventually("FLV and MP4 after \(name)") {
                        try zip(files, sizes).allSatisfy { try Self.size($0) > $1 + 100_000 }
                    }
                }
                #expect(try await server.api("sessions?role=player")["total"].int == 3, "\(server.lines.all)")
                let playlist = try await live.playlist().text
                // The publisher's clock jumps, the stream's does not; and after the unreadable header comes the one from before.
                #expect(!playlist.contains("#EXT-X-DISCONTINUITY\n"), "\(playlist)")
                await client.close()
            }
        }
    }

    /// Nothing leaves the window during the test.
    private static func listedMs(_ live: LiveHLS) async throws -> Int64 { ListedParts.listedMs(try await live.playlist().text) }

    private static func size(_ file: String) throws -> Int {
        try FileManager.default.attributesOfItem(atPath: file)[.size] as? Int ?? 0
    }

    /// A player that stops reading MP4 is dropped; one that does not read a requested segment delays nobody.
    @Test func playersThatStopReading() async throws {
        let source = try await Fixture.flv(
            video: Fixture.baseline + ["-b:v", "4M", "-minrate", "4M"], audio: nil, seconds: 12, size: "1280x720")
        try await TestServer.run({
            // A busy machine may keep the player from reading for a while before it is stopped.
            $0.relay.maxBehindMs = 4_000
            $0.hls.segmentMs = 1_000
        }) { server in
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                let stalled = try ClientProcess(["curl", "-sS", "-N", "-o", "/dev/null", "\(server.http)/live/cam1.mp4"])
                defer { stalled.send(SIGKILL) }
                let live = try await LiveHLS(server, "cam1")
                let segment = try (try await live.playlist()).text.split(separator: "\n").first { !$0.hasPrefix("#") }.orThrow()
                let lazy = try await SocketClient.open(server.addresses.http.port, receiveBuffer: 4_096)
                try await lazy.reads(false)
                try await lazy.send("GET /live/cam1.hls/\(segment) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                try await server.wait("sessions?role=player") { $0["total"].int == 2 }
                stalled.send(SIGSTOP)
                try await eventually("the stalled one is let go") { server.lines.contains("too_slow") }
                let text = try await live.playlist().text
                let later = try await live.playlist(ListedParts.next(after: text))
                #expect(later.status == 200 && later.text != text)
                await lazy.close()
            }
        }
    }

    /// HEAD of a playlist plays nothing. A viewer refused after a hook's grant is reported to the hook as gone.
    @Test func hooksHearOfEveryEnd() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 12)
        try await ScriptedServer.run { _ in
            .status(200, "0")
        } _: { hooks in
            try await TestServer.run({
                $0.limits.viewersPerStream = 1
                $0.outbound.allowPrivate = CIDR.loopback
                $0.hooks.onPlay = "http://127.0.0.1:\(hooks.port)/play"
                $0.hooks.onStop = "http://127.0.0.1:\(hooks.port)/stop"
            }) { server in
                try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                    try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                    func told(_ action: String) -> Int { hooks.requests.count { $0.json["action"].string == action } }
                    let head = try await HTTPAnswer.call("HEAD", "\(server.http)/live/cam1.m3u8")
                    #expect(head.status == 200 && head.contentType == "application/vnd.apple.mpegurl")
                    #expect(try await server.api("sessions?role=player")["total"].int == 0)
                    try await eventually("the end of what did not begin") { told("on_play") == 1 && told("on_stop") == 1 }
                    _ = try await LiveHLS(server, "cam1")
                    #expect(try await HTTPAnswer.get("\(server.http)/live/cam1.m3u8").status == 503)
                    let late = try await ClientProcess.run(["curl", "-sS", "-m", "60", "-o", "/dev/null", "\(server.http)/live/cam1.flv"])
                    #expect(late.status != 28, "the connection is closed")
                    try await eventually("the end of the two that were refused") { told("on_play") == 4 && told("on_stop") == 3 }
                }
            }
        }
    }
}
