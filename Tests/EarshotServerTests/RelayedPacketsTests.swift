import Foundation
import Testing

/// What ffmpeg pushed is what players get: the hash and the times of every packet.
@Suite struct RelayedPacketsTests {
    @Test func earlyViewerGetsEveryPacket() async throws {
        let source = try await Fixture.flv(video: ["-c:v", "libx264", "-profile:v", "baseline", "-g", "25"], audio: ["-c:a", "aac"], seconds: 3)
        try await TestServer.run { server in
            let url = "\(server.rtmp)/live/cam1"
            let player = try ClientProcess(Probe.packets(url))
            try await server.wait("streams") { $0["list"][0]["viewers"].int == 1 }
            let push = try await ClientProcess.run(["ffmpeg", "-v", "error", "-re", "-i", source, "-c", "copy", "-f", "flv", url])
            #expect(push.status == 0, "\(push.errors)")
            let played = try await player.outcome(within: 20)
            let expected = try await ClientProcess.run(Probe.packets(source))
            #expect(!expected.text.isEmpty)
            #expect(played.text == expected.text)
        }
    }
}
