import APITestSupport
import EarshotServer
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
        @Test func connectionsPerAddress() async throws {
            // The canary has two connections.
            try await UnboundServer.withCanary({ $0.limits.connectionsPerAddress = 4 }) { server in
                let admitted = [try await RawClient.shaken(server.port), try await RawClient.shaken(server.port)]
                let refused = try await RawClient.open(server.port)
                try await server.expectClosed(refused, .tooManyFromAddress)
                let elsewhere = try await RawClient.shaken(server.port, .from("127.0.0.2"))
                await admitted[0].close()
                try await server.expectConnections(4)
                let next = try await RawClient.shaken(server.port)
                for client in [admitted[1], elsewhere, next] { await client.close() }
                try await server.expectConnections(2)
                try await eventually("the counter") { server.closed(.tooManyFromAddress) == 1 }
            }
        }

        @Test func connectionsInTotal() async throws {
            try await UnboundServer.withCanary({ $0.limits.connections = 4 }) { server in
                let admitted = [
                    try await RawClient.shaken(server.port, .from("127.0.0.2")),
                    try await RawClient.shaken(server.port, .from("127.0.0.3")),
                ]
                for address in ["127.0.0.2", "127.0.0.4", "127.0.0.5"] {
                    let refused = try await RawClient.open(server.port, .from(address))
                    try await server.expectClosed(refused, .tooManyConnections)
                }
                for client in admitted { await client.close() }
                try await server.expectConnections(2)
            }
        }

        @Test func publishers() async throws {
            try await UnboundServer.withCanary({ $0.limits.publishersTotal = 2 }) { server in
                let second = try await RawClient.publishing(server.port, "second")
                let third = try await RawClient.connected(server.port)
                try await third.perform { $0.publish("third", on: 1) }
                try await server.expectClosed(third, .tooManyPublishers)
                #expect(third.statusCodes.contains(StatusCode.publishBadName))
                #expect(server.hits(.publishersTotal) == 1)
                // A refusal uses no place, and a released place is free again.
                for _ in 0..<3 {
                    try await second.perform { $0.unpublish("second", on: 1) }
                    try await second.waitForStatus(StatusCode.unpublishSuccess)
                    try await second.publish("second", on: 1)
                }
                await second.close()
                try await server.expectConnections(2)
                let last = try await RawClient.publishing(server.port, "last")
                await last.close()
            }
        }

        @Test func viewersPerStream() async throws {
            try await UnboundServer.withCanary({ $0.limits.viewersPerStream = 2 }) { server in
                let viewers = [try await server.player(of: "cam"), try await server.player(of: "cam")]
                let third = try await RawClient.connected(server.port)
                try await third.perform { $0.play("cam", on: 1) }
                try await server.expectClosed(third, .tooManyViewers)
                #expect(third.statusCodes.contains(StatusCode.playFailed))
                #expect(server.hits(.viewersPerStream) == 1)
                await viewers[0].close()
                try await server.wait("streams") { list in
                    list["list"].list.contains { $0["name"].string == "cam" && $0["viewers"].int == 1 }
                }
                let fourth = try await server.player(of: "cam")
                await fourth.close()
                await viewers[1].close()
                // Nobody uses the name any more: the stream is removed.
                try await server.wait("streams") { $0["total"].int == 1 }
            }
        }

        @Test func streamsPerConnection() async throws {
            try await UnboundServer.withCanary { server in
                let client = try await RawClient.connected(server.port)
                for _ in 0..<64 { _ = try await client.createStream() }
                client.send(Command("createStream", transaction: 99))
                try await server.expectClosed(client, .protocolError)
                let player = try await RawClient.connected(server.port)
                for id in UInt32(1)...65 { try await player.perform { $0.play("cam\(id)", on: id) } }
                try await server.expectClosed(player, .protocolError)
                try await server.wait("streams") { $0["total"].int == 1 }
            }
        }

        @Test func unknownCommands() async throws {
            try await UnboundServer.withCanary { server in
                let client = try await RawClient.connected(server.port)
                client.send(Command("getStreamLength", transaction: 50, arguments: [.string("cam")]))
                client.send(Command("launchMissiles\u{0}\n", transaction: 51, arguments: [.object([])]))
                // Transaction 0 asks for no answer, and gets none.
                client.send(Command("launchMissiles", transaction: 0))
                client.send(Command("_checkbw", transaction: 52))
                client.send(Command("play2", transaction: 53, arguments: [.object([])]), on: 1)
                client.send(Command("seek", transaction: 54, arguments: [.number(.nan)]), on: 1)
                for command in ["pause", "receiveAudio", "receiveVideo", "closeStream"] { client.send(Command(command), on: 1) }
                for id in [-1, 4_294_967_296, Double.nan, .infinity, 77] {
                    client.send(Command("deleteStream", arguments: [.number(id)]))
                }
                client.send(Command("connect", transaction: 55, object: .object([])))
                client.send(Command("_error", transaction: 56))
                client.send(Command("", transaction: 57))
                client.send(Command("getStreamLength", transaction: 58))
                try await eventually("the last answer") { client.results[58] == .number(0) }
                let results = client.results
                #expect(results[50] == .number(0))
                #expect(results[51]?["code"] == .string(StatusCode.callFailed))
                #expect(results[52] == .undefined)
                #expect(results[55]?["code"] == .string(StatusCode.connectRejected))
                #expect(results[0] == nil && results[56] == nil && results[57] == nil)
                #expect(client.statusCodes.contains(StatusCode.playFailed) && client.statusCodes.contains(StatusCode.seekNotify))
                await client.close()
                try await server.expectClosed(client, .clientClosed)
            }
        }
    }
}
