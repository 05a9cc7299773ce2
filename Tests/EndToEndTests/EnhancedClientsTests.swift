import EarshotServer
import Foundation
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import ServerConfiguration

/// Enhanced RTMP with a real client. A new ffmpeg pushes and plays HEVC, AV1, Opus and FLAC.
@Suite struct EnhancedClientsTests {
    struct Recording: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let video: [String]
        let audio: [String]
        let sampleRate: Int
    }

    static let recordings = [
        Recording(
            testDescription: "HEVC, Opus", video: ["-c:v", "libx265", "-x265-params", "log-level=error:keyint=25"],
            audio: ["-c:a", "libopus", "-ac", "2"], sampleRate: 48_000),
        Recording(
            testDescription: "AV1, FLAC", video: ["-c:v", "libaom-av1", "-cpu-used", "8", "-usage", "realtime", "-g", "25"],
            audio: ["-c:a", "flac", "-ar", "44100"], sampleRate: 44_100),
    ]

    @Test(arguments: recordings) func newCodecsAreRelayed(_ recording: Recording) async throws {
        let ffmpeg = try await NewFFmpeg.path()
        let source = try await Fixture.flv(video: recording.video, audio: recording.audio, seconds: 8, ffmpeg: ffmpeg)
        let size = try FileManager.default.attributesOfItem(atPath: source)[.size] as? Int ?? 0
        let expected = Self.packets(try await ClientProcess.run(NewFFmpeg.packets(source)).text)
        #expect(expected.count > 100)
        try await TestServer.run({ $0.rooms.policy.cleanStopMs = 500 }) { server in
            let url = "\(server.rtmp)/live/cam1"
            try await ClientProcess.during(NewFFmpeg.packets(url)) { early in
                try await server.wait("streams") { $0["list"][0]["viewers"].int == 1 }
                let push = try ClientProcess(FFmpeg.push(source, to: url, ffmpeg: ffmpeg))
                defer { push.send(SIGKILL) }
                try await server.wait("streams") { ($0["list"][0]["bytesIn"].int ?? 0) > size / 4 }
                let stream = try await server.api("streams")["list"][0]
                #expect(stream["video"]["width"].int == 320)
                #expect(stream["audio"]["sampleRate"].int == recording.sampleRate)
                let late = try ClientProcess(try await NewFFmpeg.packets(url))
                defer { late.send(SIGKILL) }
                try await push.halted { try await server.wait("streams") { $0["list"][0]["viewers"].int == 2 } }
                let pushed = try await push.outcome()
                #expect(pushed.status == 0, "\(pushed.errors)")
                let played = try await early.outcome()
                #expect(Self.packets(played.text) == expected, "\(played.errors)")
                let tail = Self.packets(try await late.outcome().text)
                #expect(tail.count > 20 && tail.count < expected.count)
                #expect(tail == Array(expected.suffix(tail.count)))
            }
        }
    }

    /// Lines of framehash without its header; the muxer sorts both sides the same way. Skips empty packets:
    /// ffmpeg's copying pusher adds and drops them around FLAC headers.
    private static func packets(_ text: String) -> [String] {
        text.split(separator: "\n").filter { !$0.hasPrefix("#") && !$0.hasSuffix(Self.hashOfNothing) }.map(String.init)
    }

    private static let hashOfNothing = "d41d8cd98f00b204e9800998ecf8427e"
}
