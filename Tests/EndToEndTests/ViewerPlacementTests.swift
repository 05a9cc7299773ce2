import Foundation
import Listening
import NIOCore
import RTMP
import Relay
import ServerTestSupport
import Sockets
import Synchronization
import TestSupport
import Testing

@testable import EarshotServer
@testable import Streaming
@testable import Support

/// Viewers of one stream are spread over the event loops, and all get the whole stream.
@Suite struct ViewerPlacementTests {
    /// Every other connection is a viewer of the stream: dealt out in turn, all viewers would be on one of two loops.
    @Test func everyLoopHasViewers() async throws {
        try await TestServer.run { server in
            let port = server.addresses.rtmp.port
            let publisher = try await RawClient.publishing(port, "spread")
            publisher.send(.video, SyntheticTag.videoHeader)
            publisher.send(.video, SyntheticTag.video(1, isKeyframe: true, bytes: 4_000))
            var viewers: [RawClient] = []
            var others: [RawClient] = []
            for _ in 0..<80 {
                viewers.append(try await RawClient.playing(port, "spread"))
                others.append(try await RawClient.playing(port, "nobody"))
            }
            try await eventually("80 viewers and 80 more") { try await server.api("sessions")["total"].int == 161 }
            let perLoop = try await server.server.parts.streams.collect { loop in
                [loop.sessionSnapshots().count { $0.viewers.contains { $0.path == "live/spread" } }]
            }
            #expect(perLoop.count == SocketLoopGroup.singleton.makeIterator().reduce(0) { count, _ in count + 1 })
            #expect(perLoop.reduce(0, +) == 80)
            // How evenly, PlacementTests say: here other tests share the loops, and a late loop rightly gets fewer.
            #expect(perLoop.allSatisfy { $0 >= 80 / perLoop.count / 4 }, "\(perLoop)")
            publisher.send(.video, SyntheticTag.video(2, isKeyframe: false, bytes: 900))
            for viewer in viewers {
                try await eventually("both pictures") { viewer.media().compactMap { SyntheticTag.number($0.message) } == [1, 2] }
            }
            for client in viewers + others { await client.close() }
            await publisher.close()
        }
    }
}
