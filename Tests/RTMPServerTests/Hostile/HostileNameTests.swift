import APITestSupport
import EarshotServer
import RTMP
import RTMPTestSupport
import ServerTestSupport
import Testing

@testable import Support

extension Hostile {
    /// Bad names, and media without a publish.
    @Suite struct Names {
        private static let bad = [
            "", "..", "../cam", "a/../b", "a/..", ".", "./a", "a\u{0}b", "a\nb", "a\u{7F}", "/", "//", "?key=1",
            String(repeating: "x", count: 10_240), "cam?" + String(repeating: "k", count: 10_240),
        ]

        @Test func publishNames() async throws {
            try await UnboundServer.withCanary { server in
                for name in Self.bad {
                    let client = try await RawClient.connected(server.port)
                    try await client.run { $0.createStream() }
                    try await client.run { $0.publish(name, on: 1) }
                    try await server.expectClosed(client, .badName)
                    #expect(client.statusCodes.contains(StatusCode.publishBadName), "told for \(name.prefix(20))")
                }
                #expect(server.hits(.streamName) == 1)
                #expect(try await server.api("streams")["total"].int == 1)
            }
        }

        @Test func playNames() async throws {
            try await UnboundServer.withCanary { server in
                for name in Self.bad {
                    let client = try await RawClient.connected(server.port)
                    try await client.run { $0.createStream() }
                    try await client.run { $0.play(name, on: 1) }
                    try await server.expectClosed(client, .badName)
                    #expect(client.statusCodes.contains(StatusCode.playStreamNotFound), "told for \(name.prefix(20))")
                }
                #expect(try await server.api("streams")["total"].int == 1)
            }
        }

        @Test func appNames() async throws {
            try await UnboundServer.withCanary { server in
                let unnamed = try await RawClient.shaken(server.port)
                try await unnamed.run { $0.connect(app: "", tcUrl: "rtmp://127.0.0.1/") }
                try await server.expectClosed(unnamed, .badName)
                #expect(unnamed.statusCodes.contains(StatusCode.connectInvalidApp))
                // An app that cannot be part of any stream's name is refused at once.
                let long = try await RawClient.shaken(server.port)
                try await long.run { $0.connect(app: String(repeating: "x", count: 10_240), tcUrl: "rtmp://127.0.0.1/") }
                try await server.expectClosed(long, .badName)
                #expect(long.statusCodes.contains(StatusCode.connectInvalidApp))
                for app in ["..", "live/..", "a\u{0}", String(repeating: "x", count: 1_024), "///"] {
                    let client = try await RawClient.connected(server.port, app: app)
                    try await client.run { $0.publish("cam", on: 1) }
                    try await server.expectClosed(client, .badName)
                }
            }
        }

        @Test func namesThatAreNoStrings() async throws {
            try await UnboundServer.withCanary { server in
                for value: AMF0Value in [.null, .number(7), .boolean(true), .object([])] {
                    let client = try await RawClient.connected(server.port)
                    client.send(Command("publish", transaction: 5, arguments: [value, .string("live")]), on: 1)
                    try await server.expectClosed(client, .badName)
                }
            }
        }

        @Test func mediaBeforePublish() async throws {
            try await UnboundServer.withCanary { server in
                for type in [MessageType.audio, .video, .dataAMF0] {
                    let early = try await RawClient.shaken(server.port)
                    early.send(type, SyntheticTag.audio(1, bytes: 20))
                    try await server.expectClosed(early, .protocolError)
                    let idle = try await RawClient.connected(server.port)
                    _ = try await idle.createStream()
                    idle.send(type, SyntheticTag.audio(1, bytes: 20))
                    try await server.expectClosed(idle, .protocolError)
                    // To the stream that it plays, and to one that was never opened.
                    for streamID: UInt32 in [1, 77] {
                        let player = try await server.player(of: Canary.name)
                        player.send(type, SyntheticTag.audio(1, bytes: 20), on: streamID)
                        try await server.expectClosed(player, .protocolError)
                    }
                }
            }
        }

        @Test func commandsBeforeConnect() async throws {
            try await UnboundServer.withCanary { server in
                for name in ["createStream", "publish", "play", "deleteStream", "x\u{0}\u{1B}[31m"] {
                    let client = try await RawClient.shaken(server.port)
                    client.send(Command(name, transaction: 1, arguments: [.string("cam")]))
                    try await server.expectClosed(client, .protocolError)
                }
                #expect(!server.lines.all.contains { $0.contains("\u{1B}") || $0.contains("\u{0}") })
            }
        }

        @Test func publishTwiceOnOneMessageStream() async throws {
            try await UnboundServer.withCanary { server in
                let client = try await RawClient.publishing(server.port, "one")
                client.send(Command("publish", transaction: 8, arguments: [.string("two"), .string("live")]), on: 1)
                client.send(Command("play", transaction: 9, arguments: [.string("one")]), on: 1)
                try await client.waitForStatus(StatusCode.publishBadName)
                try await client.waitForStatus(StatusCode.playFailed)
                // The first publish continues.
                client.send(.audio, SyntheticTag.audio(1, bytes: 20))
                try await server.wait("streams") { list in
                    list["list"].list.contains { $0["name"].string == "one" && $0["bytesIn"].int == 20 }
                }
                #expect(!client.isClosed)
                await client.close()
            }
        }

        @Test func publishTwiceOnTwoConnections() async throws {
            try await UnboundServer.withCanary { server in
                let first = try await RawClient.publishing(server.port, "one")
                // Another address is refused.
                let thief = try await RawClient.connected(server.port, .from("127.0.0.2"))
                try await thief.run { $0.publish("one", on: 1) }
                try await server.expectClosed(thief, .nameTaken)
                #expect(thief.statusCodes.contains(StatusCode.publishBadName))
                #expect(!first.isClosed)
                // The same address replaces its own ghost at once, three times; after that it is a conflict.
                var last = first
                for _ in 0..<3 {
                    let next = try await RawClient.publishing(server.port, "one")
                    try await server.expectClosed(last, .takenOver)
                    last = next
                }
                let fourth = try await RawClient.connected(server.port)
                try await fourth.run { $0.publish("one", on: 1) }
                try await server.expectClosed(fourth, .flapping)
                #expect(!last.isClosed)
                await last.close()
                try await server.expectConnections(2)
            }
        }
    }
}
