import EarshotServer
import Foundation
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import ServerConfiguration

/// Clients that are not ffmpeg: rtmpdump (librtmp) and gstreamer.
@Suite struct ForeignClientsTests {
    /// Both write the stream to a file, and exit when it ends.
    @Test func rtmpdumpAndGStreamerPlay() async throws {
        let source = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 3)
        let expected = try await PacketList.of(file: source)
        try await Fixture.withDirectory { directory in
            let files = ["rtmpdump", "rtmp2src"].map { directory.appendingPathComponent("\($0).flv").path }
            try await TestServer.run({ $0.rooms.policy.cleanStopMs = 500 }) { server in
                let url = "\(server.rtmp)/live/cam1"
                let players = [
                    try ClientProcess(["rtmpdump", "-q", "-r", url, "-v", "--live", "-o", files[0]]),
                    try ClientProcess(["gst-launch-1.0", "-q", "rtmp2src", "location=\(url)", "!", "filesink", "location=\(files[1])"]),
                ]
                defer { for player in players { player.send(SIGKILL) } }
                try await server.wait("streams") { $0["list"][0]["viewers"].int == 2 }
                let pushed = try await ClientProcess.run(FFmpeg.push(source, to: url))
                #expect(pushed.status == 0, "\(pushed.errors)")
                for (player, file) in zip(players, files) {
                    let ended = try await player.outcome()
                    #expect(ended.status == 0, "\(file): \(ended.errors)")
                    let played = try await PacketList.of(file: file)
                    #expect(played.difference(from: expected) == nil, "\(file)")
                }
            }
        }
    }

    /// Both join a running stream, and get it from a keyframe on without a gap.
    @Test func rtmpdumpAndGStreamerJoinLate() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 10)
        let expected = try await PacketList.of(file: source)
        try await Fixture.withDirectory { directory in
            let files = ["rtmpdump", "rtmp2src"].map { directory.appendingPathComponent("\($0).flv").path }
            try await TestServer.run({ $0.rooms.policy.cleanStopMs = 500 }) { server in
                let url = "\(server.rtmp)/live/cam1"
                try await ClientProcess.during(FFmpeg.push(source, to: url)) { push in
                    try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                    let players = [
                        try ClientProcess(["rtmpdump", "-q", "-r", url, "-v", "--live", "-o", files[0]]),
                        try ClientProcess(["gst-launch-1.0", "-q", "rtmp2src", "location=\(url)", "!", "filesink", "location=\(files[1])"]),
                    ]
                    defer { for player in players { player.send(SIGKILL) } }
                    try await push.halted { try await server.wait("streams") { $0["list"][0]["viewers"].int == 2 } }
                    _ = try await push.outcome()
                    for (player, file) in zip(players, files) {
                        let ended = try await player.outcome()
                        #expect(ended.status == 0, "\(file): \(ended.errors)")
                        let played = try await PacketList.of(file: file)
                        #expect(played.tailDifference(of: expected) == nil, "\(file)")
                        #expect(played.only("video").packets.first?.isKeyframe == true, "\(file)")
                    }
                }
            }
        }
    }

    @Test(arguments: ["rtmp2sink", "rtmpsink"]) func gstreamerPublishes(_ sink: String) async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 3)
        let expected = try await PacketList.of(file: source)
        try await TestServer.run({ $0.rooms.policy.cleanStopMs = 500 }) { server in
            let url = "\(server.rtmp)/live/cam1"
            try await ClientProcess.during(Probe.packets(url)) { player in
                try await server.wait("streams") { $0["list"][0]["viewers"].int == 1 }
                let location = sink == "rtmpsink" ? "location=\(url) live=1" : "location=\(url)"
                let pipeline =
                    "filesrc location=\(source) ! flvdemux name=d  flvmux name=m streamable=true ! identity sync=true ! \(sink)".words
                    + [location] + "d.video ! queue ! h264parse ! m.video  d.audio ! queue ! aacparse ! m.audio".words
                let pushed = try await ClientProcess.run(["gst-launch-1.0", "-q"] + pipeline)
                #expect(pushed.status == 0, "\(pushed.errors)")
                // Some versions' sinks break the connection without notice; the player is released all the same.
                let played = PacketList(csv: try await player.outcome().text)
                #expect(played.only("video").difference(from: expected.only("video")) == nil)
                #expect(played.only("audio").difference(from: expected.only("audio")) == nil)
            }
        }
    }
}

extension String {
    fileprivate var words: [String] { self.split(separator: " ").map(String.init) }
}
