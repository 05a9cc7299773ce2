import APITestSupport
import EarshotServer
import RTMP
import RTMPTestSupport
import Relay
import Rooms
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import Listening
@testable import RoomRegistry
@testable import ServerConfiguration
@testable import Streaming

extension Hostile {
    /// Ends of connections: half-closed, reset, and by the hundred.
    @Suite struct Connections {
        /// A publisher that stops sends a command. A connection that only ends was lost: even a killed process's ends in an orderly way.
        @Test func endsWithAndWithoutWords() async throws {
            try await UnboundServer.withCanary { server in
                let ends: [(words: Command?, reason: CloseReason)] = [
                    (nil, .connectionLost), (Command("FCUnpublish", arguments: [.string("words1")]), .clientClosed),
                    (Command("deleteStream", arguments: [.number(1)]), .clientClosed),
                ]
                for (index, (words, reason)) in ends.enumerated() {
                    let name = "words\(index)"
                    let publisher = try await RawClient.publishing(server.port, name)
                    publisher.send(.audio, SyntheticTag.audio(1, bytes: 40))
                    try await server.wait("streams") { $0["list"].list.contains { $0["name"].string == name && $0["bytesIn"].int == 40 } }
                    if let words { publisher.send(words) }
                    try await publisher.closeOutput()
                    try await server.expectClosed(publisher, reason)
                    try await eventually("\(name) to end as it should") {
                        let pushes = try await server.parts.rooms.published(
                            path: StreamPath("live/\(name)"), fromMs: nil, toMs: nil, before: nil, limit: 1)
                        return pushes.first?.end == (words == nil ? .connectionLost : .clientStopped)
                    }
                }
            }
        }

        private static func openAndDrop(_ port: MemoryDoor, stage: Int, _ name: String) async throws {
            switch stage {
            case 0: await (try await RawClient.open(port)).close()
            case 1:
                let client = try await RawClient.open(port)
                await client.send(bytes: [3, 0, 0, 0])
                try await client.reset()
            case 2: await (try await RawClient.shaken(port)).close()
            case 3: try await (try await RawClient.connected(port)).reset()
            case 4: await (try await RawClient.playing(port, name)).close()
            case 5:
                // Gone before the server can decide.
                let client = try await RawClient.connected(port)
                try await client.run { $0.publish(name, on: 1) }
                try await client.reset()
            default:
                let client = try await RawClient.publishing(port, name)
                client.send(.audio, SyntheticTag.audio(1, bytes: 20))
                await client.close()
            }
        }
    }
}
