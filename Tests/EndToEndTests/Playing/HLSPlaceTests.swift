import EarshotServer
import Listening
import RTMP
import ServerTestSupport
import Streaming
import TestSupport
import Testing

@testable import ServerConfiguration

/// Players over HLS have places of their own: they take none of the connections'.
@Suite struct HLSPlaceTests {
    @Test func playlistsKeepNoPushOut() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 12)
        try await TestServer.run({
            $0.hls.always = true
            $0.hls.segmentMs = 1_000
            $0.limits.connections = 4
            $0.limits.hlsPlayers = 40
        }) { server in
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                let player = try await LiveHLS(server, "cam1")
                let connections = server.server.parts.connections
                var refused = ""
                // The player goes on to ask meanwhile.
                for round in 0..<60 {
                    let answer = try await HTTPAnswer.get("\(server.http)/live/cam1.m3u8")
                    if answer.status != 200 { refused = answer.text }
                    if round % 10 == 0 { #expect(try await player.playlist().status == 200) }
                }
                #expect(refused.contains("limits.hlsPlayers"), "\(refused)")
                #expect(connections.hls.count == 40 && connections.admission.current.connections == 1)
                #expect(try await server.api("selfcheck")["ok"].bool == true)
                let push = try await RawClient.publishing(server.port, "cam2")
                // Silence makes room: the player's, who goes on, is not the one.
                try await eventually("another player") {
                    #expect(try await player.playlist().status == 200)
                    return try await HTTPAnswer.get("\(server.http)/live/cam1.m3u8").status == 200
                }
                #expect(try await player.playlist().status == 200 && !push.isClosed)
                await push.close()
            }
        }
    }
}
