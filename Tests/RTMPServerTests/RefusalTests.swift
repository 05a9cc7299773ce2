import APITestSupport
import Foundation
import RTMP
import RTMPTestSupport
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import Access
@testable import EarshotServer
@testable import RoomRegistry
@testable import Streaming

/// A refused client gets the specific reason, as do the log and the counter.
@Suite struct RefusalTests {
    private static let key = "e12c46f2612d5106e2034781ab261ca3"

    /// A stream key as devices have it: name and credential.
    private static func signed(_ name: String, for seconds: Int64, key: String = key, hash: TxSecret.Hash = .md5) -> String {
        let txTime = TxSecret.text(ofSeconds: WallClock.seconds + seconds)
        return "\(name)?txSecret=\(TxSecret.signature(key: key, streamName: name, txTime: txTime, hash: hash))&txTime=\(txTime)"
    }

    private static func run(
        _ configure: @escaping @Sendable (inout ServerConfig) -> Void = { _ in }, _ body: @Sendable (UnboundServer) async throws -> Void
    ) async throws {
        try await UnboundServer.run(
            { config in
                config.access.publishFrom = []
                config.access.playFrom = []
                config.credentials.key = Self.key
                config.credentials.backupKey = "the-key-before-this-one"
                configure(&config)
            }, body)
    }

    private static func lowered(_ key: String) -> String {
        let parts = key.components(separatedBy: "txTime=")
        return parts[0] + "txTime=" + parts[1].lowercased()
    }

    @Test func credentials() async throws {
        try await Self.run { server in
            let good = Self.signed("cam1", for: 3_600)
            let cases: [(String, CloseReason, String)] = [
                ("cam1", .credentialMissing, "credential"),
                (String(good.prefix { $0 != "&" }), .credentialNoTime, "without txtime"),
                (Self.signed("cam1", for: -1), .credentialExpired, "expired"),
                (Self.signed("cam2", for: 3_600).replacingOccurrences(of: "cam2", with: "cam1"), .credentialWrong, "does not match"),
                (Self.signed("cam1", for: 3_600, key: "another-key-altogether"), .credentialWrong, "does not match"),
                ("cam1?token=abc", .credentialWrong, "token"),
            ]
            for (name, reason, word) in cases {
                for isPublish in [true, false] {
                    let before = server.closed(reason)
                    let client = try await RawClient.connected(server.port)
                    _ = try await client.createStream()
                    if isPublish { try? await client.publish(name) } else { try? await client.play(name) }
                    try await server.expectClosed(client, reason)
                    try await eventually("the counter") { server.closed(reason) == before + 1 }
                    let status = try #require(client.statuses.last)
                    #expect(status.level == .error && status.code == (isPublish ? "NetStream.Publish.Denied" : StatusCode.playFailed))
                    #expect(status.description.lowercased().contains(word), "\(name): \(status.description)")
                }
            }
            // Hexadecimal digits in the other case are other text, and so need another signature.
            if good != Self.lowered(good) {
                let client = try await RawClient.connected(server.port)
                _ = try await client.createStream()
                try? await client.publish(Self.lowered(good))
                try await server.expectClosed(client, .credentialWrong)
            }
            let signature = good.split(separator: "=")[1].prefix(32)
            #expect(!server.lines.all.contains { $0.contains(signature) || $0.contains("token=abc") }, "no credential in the log")
        }
    }

    @Test func goodCredentialsOfEveryKind() async throws {
        try await Self.run { server in
            let names = [
                Self.signed("cam1", for: 60), Self.signed("cam2", for: 60, hash: .sha256),
                Self.signed("cam3", for: 60, key: "the-key-before-this-one"),
            ]
            for name in names {
                let publisher = try await server.livePublisher(name)
                let viewer = try await server.player(of: name)
                publisher.send(.audio, SyntheticTag.audio(2, bytes: 20), timestamp: 20)
                try await eventually("media of \(name)") { !viewer.media().isEmpty }
                await viewer.close()
                await publisher.close()
            }
            // HaishinKit leaves the URL's query in the app.
            let key = Self.signed("cam4", for: 60)
            let client = try await RawClient.connected(server.port, app: "live?" + key.dropFirst("cam4?".count))
            try await client.publish("cam4", on: client.createStream())
            await client.close()
        }
    }

    /// Refusals for other reasons than credentials: the name, the room, the number of publishers.
    @Test func otherReasons() async throws {
        try await Self.run({
            $0.limits.publishersTotal = 1; $0.rooms.autoCreate = .never
        }) { server in
            let homeless = try await RawClient.connected(server.port)
            _ = try await homeless.createStream()
            try? await homeless.publish(Self.signed("cam1", for: 60))
            try await server.expectClosed(homeless, .noRoom)

            var new = NewRoom(policy: RoomPolicy())
            new.id = try RoomID(checking: "cam1")
            _ = try await server.rooms.create(new, by: Actor("test"))
            let first = try await server.livePublisher(Self.signed("cam1", for: 60))
            let second = try await RawClient.connected(server.port)
            _ = try await second.createStream()
            try? await second.publish(Self.signed("cam1", for: 60))
            try await server.expectClosed(second, .tooManyPublishers)
            #expect(second.statuses.last?.description.contains("limits.publishersTotal") == true)
            await first.close()
        }
    }

    /// The newer of two signed URLs for a name wins. The older one and another kind of credential are refused.
    @Test func theNewerURLTakesOver() async throws {
        try await Self.run { server in
            let old = try await server.livePublisher(Self.signed("cam1", for: 1_000))
            let new = try await server.livePublisher(Self.signed("cam1", for: 2_000))
            try await server.expectClosed(old, .takenOver)
            let late = try await RawClient.connected(server.port)
            _ = try await late.createStream()
            try? await late.publish(Self.signed("cam1", for: 1_500))
            try await server.expectClosed(late, .nameTaken)
            #expect(!new.isClosed)
            try await eventually("the events") {
                try await server.events("cam1").filter { $0.kind == .streamEnd }.count == 1
            }
            #expect(try await server.rooms.room("cam1").state == .live, "a takeover does not interrupt")
            await new.close()
        }
    }

    /// A room's token opens that room's streams, not a room whose name looks like one.
    @Test func aRoomsTokenOpensThatRoomOnly() async throws {
        try await Self.run { server in
            for (id, slots) in [("cam", 1), ("cam-2", 1), ("duo", 2)] {
                var new = NewRoom(policy: RoomPolicy())
                new.id = try RoomID(checking: id)
                new.slots = slots
                _ = try await server.rooms.create(new, by: Actor("test"))
            }
            func key(_ stream: String, room: String) throws -> String {
                let token = AccessToken(expires: WallClock.seconds + 60, room: room, act: ["play", "publish"])
                return "\(stream)?token=\(try token.signed(with: server.parts.keys))"
            }
            for isPublish in [true, false] {
                let client = try await RawClient.connected(server.port)
                _ = try await client.createStream()
                let name = try key("cam-2", room: "cam")
                if isPublish { try? await client.publish(name) } else { try? await client.play(name) }
                try await server.expectClosed(client, .credentialWrong)
                #expect(client.statuses.last?.description.contains("belongs to another room") == true)
            }
            for (name, room) in [("cam", "cam"), ("cam-2", "cam-2"), ("duo", "duo"), ("duo-2", "duo")] {
                let viewer = try await server.player(of: try key(name, room: room))
                let publisher = try await server.livePublisher(try key(name, room: room))
                publisher.send(.audio, SyntheticTag.audio(2, bytes: 20), timestamp: 20)
                try await eventually("media of \(name)") { !viewer.media().isEmpty }
                await viewer.close()
                await publisher.close()
            }
        }
    }

    static let policies: [(ServerConfig.Rooms.DuplicatePublish, isSame: Bool, takesOver: Bool)] = [
        (.identity, true, true), (.identity, false, false), (.reject, true, false), (.reject, false, false), (.takeover, true, true),
        (.takeover, false, true),
    ]

    /// A second push to a name, from the same user or another.
    @Test(arguments: policies) func duplicatePublish(
        _ row: (policy: ServerConfig.Rooms.DuplicatePublish, isSame: Bool, takesOver: Bool)
    ) async throws {
        try await Self.run({ $0.rooms.duplicatePublishByApp = ["live": row.policy] }) { server in
            func key(_ user: String) throws -> String {
                let address = PublicAddress(config: server.parts.config, addresses: UnboundServer.addresses, requestHost: nil)
                let urls = StreamURLs(address: address, keys: server.parts.keys, credentials: ServerConfig().credentials)
                return try urls.push(
                    StreamPath(app: "live", name: "cam1"), .init(scheme: .jwt, lifetimeSeconds: 60, user: user), nowMs: WallClock.ms
                ).streamKey
            }
            let viewer = try await server.player(of: Self.signed("cam1", for: 60))
            let first = try await server.livePublisher(try key("ada"))
            let second = try await RawClient.connected(server.port)
            _ = try await second.createStream()
            try? await second.publish(try key(row.isSame ? "ada" : "eve"))
            if row.takesOver {
                try await server.expectClosed(first, .takenOver)
                #expect(!second.isClosed)
                await second.close()
            } else {
                try await server.expectClosed(second, .nameTaken)
                #expect(second.statuses.last?.code == StatusCode.publishBadName)
                #expect(!first.isClosed)
                await first.close()
            }
            #expect(!viewer.isClosed, "viewers stay")
            await viewer.close()
        }
    }
}
