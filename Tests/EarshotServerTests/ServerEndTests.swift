import Delivery
import Testing

@testable import EarshotServer
@testable import ServerConfiguration

/// A stopped server leaves nothing in a process that continues.
@Suite struct ServerEndTests {
    // `@unchecked Sendable`: written while the server runs, read only after its run has been awaited.
    private final class Held: @unchecked Sendable {
        weak var core: ServerCore?
    }

    @Test func nothingIsLeft() async throws {
        let held = Held()
        try await TestServer.run({ config in
            config.webhooks.urls = ["http://127.0.0.1:9/"]
        }) { server in
            held.core = server.server.core
            let created = try await server.call("POST", "rooms", #"{"roomId": "cam1"}"#)
            #expect(created.status == 201, "\(created)")
            #expect(held.core != nil)
        }
        // Connections and timers of the event loops release it one after the other.
        try await eventually("the server's memory to be given back") { held.core == nil }
    }
}
