import Delivery
import Media
import RTMP
import Relay
import Testing

@testable import EarshotServer
@testable import ServerConfiguration

/// A stopped server leaves nothing in a process that continues.
@Suite struct ServerEndTests {
    // `@unchecked Sendable`: written while the server runs, read only after its run has been awaited.
    private final class Held: @unchecked Sendable {
        weak var core: ServerCore?
        weak var stream: Relay.Stream?
    }

    @Test func nothingIsLeft() async throws {
        let held = Held()
        try await TestServer.run({ config in
            config.webhooks.urls = ["http://127.0.0.1:9/"]
        }) { server in
            held.core = server.server.core
            let created = try await server.call("POST", "rooms", #"{"roomId": "cam1"}"#)
            #expect(created.status == 201, "\(created)")
            // Still published and watched when the server ends.
            let camera = try await RawClient.connected(server.port)
            try await camera.publish("cam1")
            for number in 0..<50 {
                camera.send(.video, SyntheticTag.video(number, isKeyframe: number == 0, bytes: 500), timestamp: UInt32(number * 40))
            }
            let viewer = try await RawClient.connected(server.port)
            try await viewer.play("cam1")
            try await eventually("a picture") { !viewer.media().isEmpty }
            held.stream = server.server.core.registry.find("live/cam1")
            #expect(held.core != nil && held.stream != nil)
        }
        // Connections and timers of the event loops release it one after the other.
        try await eventually("the server's memory to be given back") { held.core == nil && held.stream == nil }
    }
}
