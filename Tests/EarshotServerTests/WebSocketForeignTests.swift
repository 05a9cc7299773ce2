import EarshotServer
import Foundation
import Testing

/// The event feed as another implementation of WebSockets reads it: PyPI's `websockets`.
@Suite struct WebSocketForeignTests {
    private static let script = """
        import json, sys
        from websockets.sync.client import connect
        url, count = sys.argv[1], int(sys.argv[2])
        with connect(url) as feed:
            hello = json.loads(feed.recv(timeout=20))
            print("hello", hello["type"], len(hello["rooms"]), flush=True)
            feed.send('{"type":"ping"}')
            feed.ping().wait(10)
            print("ponged", flush=True)
            seen = 0
            while seen < count:
                message = json.loads(feed.recv(timeout=20))
                if message["type"] == "event":
                    seen += 1
                    print("event", message["id"], message["kind"], flush=True)
                else:
                    print(message["type"], flush=True)
        print("closed", feed.protocol.close_code, flush=True)
        """

    @Test func aPythonClientFollows() async throws {
        let packages = try await PythonPackage(requirement: "websockets==15.0.1").folder()
        try await TestServer.run { server in
            _ = try await server.call("POST", "rooms", #"{"roomId":"cam1"}"#)
            let ticket = try await server.call("POST", "events/ticket", "{}").json()["data"]["ticket"].string.orThrow()
            let url = "ws://127.0.0.1:\(server.addresses.http.port)/events?ticket=\(ticket)&after=0"
            async let ran = ClientProcess.run(["PYTHONPATH=\(packages)", "python3", "-c", Self.script, url, "3"], within: 40)
            try await eventually("it to be there") { server.server.core.events.subscribers == 1 }
            _ = try await server.call("POST", "rooms", #"{"roomId":"cam2"}"#)
            _ = try await server.call("POST", "rooms/cam1/close")
            let outcome = try await ran
            #expect(outcome.status == 0, "\(outcome.errors)")
            let lines = outcome.text.split(separator: "\n").map(String.init)
            #expect(lines.contains("hello hello 1"), "\(lines)")
            #expect(lines.contains("ponged"))
            #expect(lines.filter { $0.hasPrefix("event") } == ["event 1 room.created", "event 2 room.created", "event 3 room.closed"])
            #expect(lines.last == "closed 1000")
            try await eventually("its place to be free") { server.server.core.events.subscribers == 0 }
        }
    }
}
