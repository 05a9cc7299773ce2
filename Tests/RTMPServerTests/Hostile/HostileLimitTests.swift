import Access
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
                let idle = [try await RawClient.shaken(server.port), try await RawClient.shaken(server.port)]
                // One that does nothing makes room, of the same address.
                let elsewhere = try await RawClient.shaken(server.port, .from("127.0.0.2"))
                let second = try await server.player(of: "canary")
                try await server.expectClosed(idle[0], .tooManyFromAddress)
                let third = try await server.player(of: "canary")
                try await server.expectClosed(idle[1], .tooManyFromAddress)
                // All of them push or play.
                let refused = try await RawClient.open(server.port)
                try await server.expectClosed(refused, .tooManyFromAddress)
                await second.close()
                try await server.expectConnections(4)
                let next = try await RawClient.shaken(server.port)
                for client in [third, elsewhere, next] { await client.close() }
                try await server.expectConnections(2)
                try await eventually("the counter") { server.closed(.tooManyFromAddress) == 3 }
            }
        }

        /// A /64 of IPv6 is one host, which has that many addresses.
        @Test func anIPv6HostIsItsNetwork() async throws {
            try await UnboundServer.run({ $0.limits.connectionsPerAddress = 3 }) { server in
                var clients: [RawClient] = []
                for index in 1...8 { clients.append(try await RawClient.shaken(server.port, .from("2001:db8::\(index)"))) }
                try await eventually("all but three to be closed") { server.closed(.tooManyFromAddress) == 5 }
                let another = try await RawClient.shaken(server.port, .from("2001:db8:0:1::1"))
                try await server.expectConnections(4)
                for client in clients + [another] { await client.close() }
            }
        }

        @Test func connectionsInTotal() async throws {
            try await UnboundServer.withCanary({ $0.limits.connections = 4 }) { server in
                let idle = try await RawClient.shaken(server.port, .from("192.0.2.2"))
                let second = try await RawClient.publishing(server.port, "second")
                let third = try await RawClient.publishing(server.port, "third")
                try await server.expectClosed(idle, .tooManyConnections)
                for address in ["192.0.2.2", "192.0.2.4", "127.0.0.5"] {
                    let refused = try await RawClient.open(server.port, .from(address))
                    try await server.expectClosed(refused, .tooManyConnections)
                }
                for client in [second, third] { await client.close() }
                try await server.expectConnections(2)
            }
        }

        /// Strangers who send nothing, or greet and no more, from many addresses: whoever comes to push gets in.
        @Test(arguments: ["127.0.0.1", "198.51.100.1"]) func aPublisherAmongStrangers(_ address: String) async throws {
            try await UnboundServer.withCanary({
                $0.limits.connections = 20
                $0.access.playFrom = CIDR.any
                $0.credentials.key = TestCredential.keys.key
                $0.rooms.autoCreate = .always
            }) { server in
                var strangers: [RawClient] = []
                for index in 0..<60 {
                    let from = RawClient.Options.from(index % 2 == 0 ? "192.0.2.\(index % 14)" : "2001:db8:0:\(index % 14)::\(index)")
                    strangers.append(try await index % 3 == 0 ? RawClient.shaken(server.port, from) : RawClient.open(server.port, from))
                }
                func publish(_ name: String) async throws -> RawClient {
                    try await RawClient.publishing(server.port, "\(name)?\(TestCredential.signed(name))", .from(address))
                }
                let camera = try await publish("camera")
                for index in 0..<60 { strangers.append(try await RawClient.open(server.port, .from("192.0.2.\(index % 14)"))) }
                #expect(!camera.isClosed)
                // Plays do not take the last places.
                var players: [RawClient] = []
                for index in 0..<16 {
                    let player = try await RawClient.connected(server.port, .from("203.0.113.\(index)"))
                    try await player.createStreamAndTryToPlay("canary")
                    players.append(player)
                }
                try await eventually("a refused play") { players.contains { $0.statusCodes.contains(StatusCode.playFailed) } }
                #expect(server.closed(.tooManyConnections) > 0)
                let late = try await publish("late")
                #expect(!late.isClosed && !camera.isClosed)
                for client in strangers + players + [camera, late] { await client.close() }
                try await server.expectConnections(2)
            }
        }

        @Test func publishers() async throws {
            try await UnboundServer.withCanary({ $0.limits.publishersTotal = 2 }) { server in
                let second = try await RawClient.publishing(server.port, "second")
                let third = try await RawClient.connected(server.port)
                try await third.run { $0.publish("third", on: 1) }
                try await server.expectClosed(third, .tooManyPublishers)
                #expect(third.statusCodes.contains(StatusCode.publishBadName))
                #expect(server.hits(.publishersTotal) == 1)
                // A refusal uses no place, and a released place is free again.
                for _ in 0..<3 {
                    try await second.run { $0.unpublish("second", on: 1) }
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
                try await third.run { $0.play("cam", on: 1) }
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
                for id in UInt32(1)...65 { try await player.run { $0.play("cam\(id)", on: id) } }
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
