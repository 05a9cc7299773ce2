import EarshotServer
import NIOCore
import RTMP
import RTMPTestSupport
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import ServerConfiguration
@testable import Support

extension Hostile {
    /// Limits of connections, publishers and viewers; publishers without media; unknown commands.
    @Suite struct LimitsAndCommands {
        @Test func firstMedia() async throws {
            try await TestServer.withCanary({ $0.limits.firstMediaMs = 2_000 }) { server in
                let mute = try await RawClient.publishing(server.port, "mute")
                try await mute.run { $0.setDataFrame(.object([]), on: 1) }
                // Players may wait without limit.
                let player = try await server.player(of: "nothing")
                try await server.expectClosed(mute, .firstMediaTimeout)
                #expect(!player.isClosed)
                await player.close()
            }
        }

        @Test func mediaIdle() async throws {
            try await TestServer.withCanary({
                $0.rooms.policy.mediaIdleMs = 2_000; $0.rooms.policy.idleGraceMs = 2_000
            }) { server in
                let viewer = try await server.player(of: "idle")
                let client = try await RawClient.publishing(server.port, "idle")
                client.send(.audio, SyntheticTag.audio(1, bytes: 20))
                try await server.expectClosed(client, .mediaIdle)
                try await viewer.waitForStatus(StatusCode.playUnpublishNotify)
                #expect(viewer.outputs.contains(.streamEOF(1)))
                await viewer.close()
            }
        }
    }
}
