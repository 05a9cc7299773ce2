import EarshotServer
import Foundation
import NIOCore
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
        @Test func halfClosed() async throws {
            try await TestServer.withCanary { server in
                let fresh = try await RawClient.open(server.port)
                try await fresh.closeOutput()
                try await server.expectClosed(fresh, .clientClosed)
                let player = try await server.player(of: Canary.name)
                try await player.closeOutput()
                try await server.expectClosed(player, .clientClosed)
                let publisher = try await RawClient.publishing(server.port, "half")
                var cut = RawBytes()
                cut.header(chunkStream: 4, length: 4_000, type: .audio, streamID: 1)
                cut.bytes([0xAF, 1, 2, 3])
                await publisher.send(bytes: cut.buffer)
                try await publisher.closeOutput()
                // Half a message, and no command that ends the publish.
                try await server.expectClosed(publisher, .connectionLost)
            }
        }

        @Test func resetInTheMiddleOfAMessage() async throws {
            try await TestServer.withCanary({ $0.rooms.policy.graceMs = 300 }) { server in
                let viewer = try await server.player(of: "reset")
                let publisher = try await RawClient.publishing(server.port, "reset")
                publisher.send(.audio, SyntheticTag.audio(1, bytes: 40))
                try await eventually("the message") { viewer.media().count == 1 }
                var cut = RawBytes()
                cut.header(chunkStream: 6, length: 100_000, type: .video, streamID: 1)
                cut.bytes([0x27, 1, 0, 0, 0])
                await publisher.send(bytes: cut.buffer)
                try await publisher.reset()
                try await server.expectClosed(publisher, .connectionLost)
                // The half message is dropped; the viewer learns of the grace period's end.
                try await viewer.waitForStatus(StatusCode.playUnpublishNotify)
                #expect(viewer.media().count == 1)
                try await viewer.reset()
                try await server.expectClosed(viewer, .connectionLost)
                try await server.wait("streams") { $0["total"].int == 1 }
            }
        }

        @Test func fiveHundredDropped() async throws {
            try await TestServer.withCanary({
                $0.rooms.policy.graceMs = 200; $0.rooms.policy.cleanStopMs = 200
            }) { server in
                let counters = server.server.parts.connections.counters
                for batch in 0..<10 {
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for index in 0..<50 {
                            group.addTask { try await Self.openAndDrop(server.port, stage: index % 7, "cam\(batch)-\(index)") }
                        }
                        try await group.waitForAll()
                    }
                }
                try await eventually("all to be accepted") { counters.current.connectionsAccepted == 502 }
                try await server.expectConnections(2)
                try await server.wait("streams") { $0["total"].int == 1 }
                #expect(server.server.parts.streams.registry.count == 1)
            }
        }

        private static func openAndDrop(_ port: Int, stage: Int, _ name: String) async throws {
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

        @Test func shutdownTellsClients() async throws {
            let (publisher, player, idle) = try await TestServer.run { server in
                let player = try await server.player(of: "cam")
                let publisher = try await RawClient.publishing(server.port, "cam")
                publisher.send(.audio, SyntheticTag.audio(1, bytes: 20))
                try await eventually("the message") { !player.media().isEmpty }
                return (publisher, player, try await RawClient.connected(server.port))
            }
            for client in [publisher, player, idle] { try await client.waitUntilClosed() }
            #expect(publisher.statusCodes.contains(StatusCode.connectAppShutdown))
            #expect(player.statusCodes.contains(StatusCode.playUnpublishNotify))
            #expect(player.outputs.contains(.streamEOF(1)))
        }
    }
}
