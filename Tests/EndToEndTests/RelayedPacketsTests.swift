import EarshotServer
import Foundation
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import ServerConfiguration

/// Players get what ffmpeg pushed: the hash and the times of every packet.
@Suite struct RelayedPacketsTests {
    struct Recording: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let video: [String]?
        let audio: [String]?

        init(_ name: String, video: [String]? = nil, audio: [String]? = nil) {
            self.testDescription = name
            self.video = video
            self.audio = audio
        }
    }

    static let media = [
        Recording("H.264 baseline, AAC", video: Fixture.baseline, audio: Fixture.aac),
        Recording("H.264 with B-frames, AAC", video: Fixture.withBFrames, audio: Fixture.aac),
        Recording("AAC only", audio: Fixture.aac),
        Recording("video only", video: Fixture.baseline),
        Recording("MP3", audio: ["-c:a", "libmp3lame", "-ar", "44100"]),
        Recording("Speex", audio: ["-c:a", "libspeex", "-ar", "16000", "-ac", "1"]),
        Recording("G.711 A-law", audio: ["-c:a", "pcm_alaw", "-ar", "8000", "-ac", "1"]),
        Recording("G.711 mu-law", audio: ["-c:a", "pcm_mulaw", "-ar", "8000", "-ac", "1"]),
        Recording("H.264, MP3", video: Fixture.baseline, audio: ["-c:a", "libmp3lame", "-ar", "44100"]),
    ]

    @Test(arguments: media) func earlyAndLateViewersGetEveryPacket(_ media: Recording) async throws {
        let source = try await Fixture.flv(video: media.video, audio: media.audio, seconds: 8)
        let expected = try await PacketList.of(file: source)
        let size = try FileManager.default.attributesOfItem(atPath: source)[.size] as? Int ?? 0
        try await TestServer.run({ $0.rooms.policy.cleanStopMs = 500 }) { server in
            let url = "\(server.rtmp)/live/cam1"
            try await ClientProcess.during(Probe.packets(url)) { early in
                try await server.wait("streams") { $0["list"][0]["viewers"].int == 1 }
                try await ClientProcess.during(FFmpeg.push(source, to: url)) { push in
                    try await server.wait("streams") { ($0["list"][0]["bytesIn"].int ?? 0) > size / 3 }
                    let late = try ClientProcess(Probe.packets(url))
                    defer { late.send(SIGKILL) }
                    try await push.halted { try await server.wait("streams") { $0["list"][0]["viewers"].int == 2 } }
                    let pushed = try await push.outcome()
                    #expect(pushed.status == 0, "\(pushed.errors)")
                    let everything = PacketList(csv: try await early.outcome().text)
                    #expect(everything.difference(from: expected) == nil)
                    let tail = PacketList(csv: try await late.outcome().text)
                    #expect(tail.tailDifference(of: expected) == nil)
                    if media.video != nil {
                        #expect(tail.packets.first.map { $0.kind == "video" && $0.isKeyframe } == true)
                    }
                }
            }
        }
    }

    /// With the default settings.
    @Test func playerEndsByItselfAfterTheDefaultGrace() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 1)
        try await TestServer.run { server in
            let url = "\(server.rtmp)/live/cam1"
            try await ClientProcess.during(Probe.packets(url)) { player in
                try await server.wait("streams") { $0["list"][0]["viewers"].int == 1 }
                let pushed = try await ClientProcess.run(FFmpeg.push(source, to: url))
                #expect(pushed.status == 0, "\(pushed.errors)")
                let played = try await player.outcome()
                #expect(played.status == 0, "\(played.errors)")
                #expect(PacketList(csv: played.text).difference(from: try await PacketList.of(file: source)) == nil)
            }
        }
    }
}
