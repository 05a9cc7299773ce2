import Media
import RTMP
import Relay
import Rooms
import ServerTestSupport
import Streaming
import Support
import TestSupport
import Testing

@testable import EarshotServer
@testable import Links
@testable import Packaging
@testable import ServerConfiguration

/// A stopped server leaves nothing in a process that continues.
@Suite struct ServerEndTests {
    // `@unchecked Sendable`: written while the server runs, read only after its run has been awaited.
    private final class Held: @unchecked Sendable {
        struct Part {
            let name: String
            weak var object: AnyObject?
        }

        var parts: [Part] = []

        func hold(_ objects: [(String, AnyObject)]) {
            self.parts += objects.map { Part(name: $0.0, object: $0.1) }
        }

        var left: [String] { self.parts.filter { $0.object != nil }.map(\.name) }
    }

    @Test func nothingIsLeft() async throws {
        let held = Held()
        try await TestServer.run({ config in
            config.webhooks.urls = ["http://127.0.0.1:9/"]
            config.outbound.allowPrivate = CIDR.loopback
        }) { server in
            let parts = server.server.parts
            held.hold([
                ("parts", parts), ("rooms", parts.rooms), ("memory", parts.memory), ("streams", parts.streams),
                ("connections", parts.connections), ("admission", parts.admission), ("control", parts.control),
                ("events", parts.events), ("talk", parts.talk), ("recordings", parts.recordings), ("remuxers", parts.remuxers),
                ("links", parts.links), ("api", parts.api), ("rtmp", parts.rtmp),
            ])
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
            // A remuxer, and a link to a server that is not there.
            _ = try await parts.remuxers.use("live/cam1").orThrow()
            _ = try await parts.links.create(
                .push, .init(app: "live", name: "cam1"), url: "rtmp://127.0.0.1:9/live/cam1", onDemand: false)
            held.hold([("the stream", try parts.streams.registry.find("live/cam1").orThrow())])
            #expect(held.left.count == 15)
        }
        // Connections, threads and timers of the event loops release them one after the other.
        do {
            try await eventually("the server's memory to be given back") { held.left.isEmpty }
        } catch {
            Issue.record("still there: \(held.left)")
        }
    }
}
