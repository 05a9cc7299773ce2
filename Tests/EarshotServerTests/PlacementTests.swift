import EarshotServer
import Foundation
import NIOCore
import NIOPosix
import RTMP
import Relay
import Testing

/// Viewers of one stream are spread over the event loops, and each gets the whole stream wherever it is.
@Suite struct PlacementTests {
    @Test func viewersAreSpreadEvenly() async throws {
        try await TestServer.run { server in
            let port = server.addresses.rtmp.port
            let publisher = try await RawClient.publishing(port, "spread")
            publisher.send(.video, SyntheticTag.videoHeader)
            publisher.send(.video, SyntheticTag.video(1, isKeyframe: true, bytes: 4_000))
            var viewers: [RawClient] = []
            for _ in 0..<80 { viewers.append(try await RawClient.playing(port, "spread")) }
            try await eventually("80 viewers") { try await server.api("sessions")["total"].int == 81 }
            let perLoop = try await server.server.core.collect { loop in
                [loop.sessionSnapshots().count { $0.viewers.contains { $0.path == "live/spread" } }]
            }
            #expect(perLoop.count == MultiThreadedEventLoopGroup.singleton.makeIterator().reduce(0) { count, _ in count + 1 })
            #expect(perLoop.reduce(0, +) == 80)
            // Connections are dealt out in turn; those of other tests, which share the loops, come in between.
            let fair = 80 / perLoop.count
            #expect(perLoop.allSatisfy { $0 > fair / 2 && $0 < fair * 2 }, "\(perLoop)")
            publisher.send(.video, SyntheticTag.video(2, isKeyframe: false, bytes: 900))
            for viewer in viewers {
                try await eventually("both pictures") { viewer.media().compactMap { SyntheticTag.number($0.message) } == [1, 2] }
            }
            for viewer in viewers { await viewer.close() }
            await publisher.close()
        }
    }
}
