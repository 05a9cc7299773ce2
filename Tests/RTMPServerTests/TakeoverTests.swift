import APITestSupport
import EarshotServer
import RTMP
import RTMPTestSupport
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import ServerConfiguration

/// Two publishers on one name: the same credential replaces its ghost, another one is refused.
@Suite struct TakeoverTests {
    @Test func aFightOverANameIsRefusedAfterThreeTakeovers() async throws {
        try await UnboundServer.run { server in
            var holder = try await TagClient.publish(to: server, "live/cam1?key=a")
            for _ in 1...3 {
                let next = try await TagClient.publish(to: server, "live/cam1?key=a")
                let before = holder
                try await eventually("the ghost to be let go") { before.current.isClosed }
                holder = next
            }
            let fourth = try await TagClient.connect(to: server, .publish, "live/cam1?key=a")
            try await eventually("the refusal") { fourth.current.isClosed }
            #expect(fourth.current.refusal?.code == "NetStream.Publish.BadName")
            #expect(!holder.current.isClosed)
            #expect(await server.lines.comes("reason=flapping"))
            await holder.close()
        }
    }
}
