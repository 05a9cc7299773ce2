import APITestSupport
import Foundation
import RTMP
import RTMPTestSupport
import Relay
import RoomRegistry
import Rooms
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer
@testable import ServerConfiguration
@testable import Streaming

/// Rooms under pushes: admitted, dropped, forbidden, kicked, and at their end.
@Suite struct RoomTests {
    private static let ops = Actor("test")

    /// A dropped publisher is disconnected with the reason, and may return; viewers stay.
    @Test func dropIsNotForbid() async throws {
        try await UnboundServer.run { server in
            let viewer = try await server.player(of: "cam1")
            let first = try await server.livePublisher("cam1")
            try await server.waitFor("cam1", .live)
            #expect(await server.parts.control.cut(StreamPath(app: "live", name: "cam1"), .dropped, endsViewers: false))
            try await server.expectClosed(first, .dropped)
            #expect(try await server.waitFor("cam1", .interrupted).reason == .dropped)
            let second = try await server.livePublisher("cam1")
            try await server.waitFor("cam1", .live)
            #expect(!viewer.isClosed)
            #expect(await server.parts.control.cut(StreamPath(app: "live", name: "nothing"), .dropped, endsViewers: false) == false)
            await second.close()
            await viewer.close()
        }
    }

    /// A ban cuts the publisher, ends the viewers' stream, and refuses pushes with the reason, until it is lifted.
    @Test func forbidAndResume() async throws {
        try await UnboundServer.run { server in
            let path = StreamPath(app: "live", name: "cam1")
            let viewer = try await server.player(of: "cam1")
            let client = try await server.livePublisher("cam1")
            let until = Int64(Date().timeIntervalSince1970 * 1_000) + 60_000
            _ = try await server.rooms.forbid(path, untilMs: until, reason: "dirty lens", by: Self.ops)
            try await server.expectClosed(client, .forbidden)
            try await viewer.waitForStatus(StatusCode.playUnpublishNotify)
            try await server.waitFor("cam1", .forbidden)
            let refused = try await RawClient.connected(server.port)
            _ = try await refused.createStream()
            try? await refused.publish("cam1")
            try await server.expectClosed(refused, .forbidden)
            #expect(refused.statuses.contains { $0.code == StatusCode.publishBadName && $0.description.contains("dirty lens") })
            let late = try await RawClient.connected(server.port)
            _ = try await late.createStream()
            try? await late.play("cam1")
            try await server.expectClosed(late, .forbidden)
            try await server.rooms.resume(path, by: Self.ops)
            let back = try await server.livePublisher("cam1")
            try await server.waitFor("cam1", .live)
            await back.close()
            await viewer.close()
        }
    }

    /// A closed room ends publisher and viewers, and its name accepts no further push.
    @Test func closedRoom() async throws {
        try await UnboundServer.run { server in
            let viewer = try await server.player(of: "cam1")
            let client = try await server.livePublisher("cam1")
            _ = try await server.rooms.apply(.close, to: "cam1", action: "close", by: Self.ops)
            try await server.expectClosed(client, .roomEnded)
            try await viewer.waitForStatus(StatusCode.playUnpublishNotify)
            let refused = try await RawClient.connected(server.port)
            _ = try await refused.createStream()
            try? await refused.publish("cam1")
            try await server.expectClosed(refused, .roomClosed)
            await viewer.close()
        }
    }

    /// Endless announced pauses cost the registry next to nothing.
    @Test func aFloodOfPauses() async throws {
        try await UnboundServer.run { server in
            let client = try await server.livePublisher("cam1")
            try await server.waitFor("cam1", .live)
            let before = server.rooms.counters.operations
            for _ in 0..<50 {
                try await client.run { session in
                    for _ in 0..<40 { session.pause(true, on: 1) }
                }
            }
            #expect(try await server.waitFor("cam1", .interrupted).reason == .paused)
            client.send(Command("getStreamLength", transaction: 58))
            try await eventually("all of them to be read") { client.results[58] == .number(0) }
            #expect(server.rooms.counters.operations - before < 100)
            await client.close()
        }
    }

    /// A room with two cameras is live while one of them is.
    @Test func twoSlots() async throws {
        try await UnboundServer.run { server in
            var new = NewRoom(policy: RoomPolicy())
            new.id = try RoomID(checking: "duo")
            new.slots = 2
            _ = try await server.rooms.create(new, by: Self.ops)
            let one = try await server.livePublisher("duo")
            let two = try await server.livePublisher("duo-2")
            try await eventually("both") { try await server.rooms.room("duo").slots.allSatisfy(\.isActive) }
            try await one.reset()
            try await eventually("one") { try await server.rooms.room("duo").slots.map(\.isActive) == [false, true] }
            #expect(try await server.rooms.room("duo").state == .live)
            try await two.reset()
            try await server.waitFor("duo", .interrupted)
            #expect(try await server.events("duo").filter(\.kind.isTransition).map(\.kind) == [.roomCreated, .roomLive, .roomInterrupted])
        }
    }

    /// A device that knows only its own UID pushes into its room; the same credential takes over its ghost.
    @Test func pushByDevice() async throws {
        try await UnboundServer.run({ $0.rooms.autoCreate = .never }) { server in
            var new = NewRoom(policy: RoomPolicy())
            new.id = try RoomID(checking: "walk")
            new.deviceUid = "EAR-0042"
            _ = try await server.rooms.create(new, by: Self.ops)
            let viewer = try await server.player(of: "walk")
            let ghost = try await server.livePublisher("EAR-0042")
            try await server.waitFor("walk", .live)
            let back = try await server.livePublisher("EAR-0042")
            try await server.expectClosed(ghost, .takenOver)
            try await eventually("the viewer to get media") { !viewer.media().isEmpty }
            let stranger = try await RawClient.connected(server.port)
            _ = try await stranger.createStream()
            try? await stranger.publish("no-such-room")
            try await server.expectClosed(stranger, .noRoom)
            await back.close()
            await viewer.close()
        }
    }

    /// Players and calls by the device's name reach its room's stream.
    @Test func playByDevice() async throws {
        try await UnboundServer.run { server in
            var new = NewRoom(policy: RoomPolicy())
            new.id = try RoomID(checking: "walk")
            new.deviceUid = "EAR-0042"
            _ = try await server.rooms.create(new, by: Self.ops)
            let early = try await server.player(of: "EAR-0042")
            let publisher = try await server.livePublisher("EAR-0042")
            try await server.waitFor("walk", .live)
            let late = try await server.player(of: "EAR-0042")
            #expect(server.parts.streams.registry.find("live/walk")?.viewerCount == 2)
            #expect(server.parts.streams.registry.find("live/EAR-0042") == nil)
            publisher.send(.audio, SyntheticTag.audio(2, bytes: 20))
            try await eventually("both to get media") { !early.media().isEmpty && !late.media().isEmpty }
            let until = Int64(Date().timeIntervalSince1970 * 1_000) + 60_000
            _ = try await server.rooms.forbid(StreamPath(app: "live", name: "EAR-0042"), untilMs: until, reason: "", by: Self.ops)
            try await server.expectClosed(publisher, .forbidden)
            try await late.waitForStatus(StatusCode.playUnpublishNotify)
            await early.close()
            await late.close()
        }
    }

    @Test func sessionsAreEndedById() async throws {
        try await UnboundServer.run { server in
            let viewer = try await server.player(of: "cam1")
            let id = try #require(try await server.parts.streams.collect { $0.sessionSnapshots() }.first?.id)
            #expect(await server.parts.control.endSession(id, by: Actor("token:ops")))
            try await server.expectClosed(viewer, .kicked)
            #expect(await server.parts.control.endSession(id, by: Actor("token:ops")) == false)
        }
    }

    /// Viewers stay while the room waits, even beyond a broken connection's grace period.
    @Test func viewersStayThroughAnInterruption() async throws {
        try await UnboundServer.run({ $0.rooms.policy.graceMs = 300 }) { server in
            let viewer = try await server.player(of: "cam1")
            let client = try await server.livePublisher("cam1")
            try await server.waitFor("cam1", .live)
            _ = try await server.rooms.apply(.pauseAnnounced(slot: nil), to: "cam1", action: "pause", by: Self.ops)
            try await client.reset()
            try await server.waitForGrace("cam1", ofAtLeast: 100_000)
            _ = try await server.rooms.apply(.renew(byMs: 600_000), to: "cam1", action: "renew", by: Self.ops)
            try await server.waitForGrace("cam1", ofAtLeast: 600_000)
            let back = try await server.livePublisher("cam1")
            try await server.waitFor("cam1", .live)
            try await eventually("media of the second push") { viewer.media().count >= 2 }
            #expect(!viewer.isClosed && !viewer.statuses.contains { $0.code == StatusCode.playUnpublishNotify })
            // A broken connection has its usual grace period again, and then the room is over.
            try await back.reset()
            #expect(try await server.waitFor("cam1", .expired).reason == .graceOver)
            try await viewer.waitForStatus(StatusCode.playUnpublishNotify)
            await viewer.close()
        }
    }

    /// A kick also ends the user's own push.
    @Test func kickedPublisherIsCut() async throws {
        try await UnboundServer.run { server in
            let mallory = try await server.livePublisher("cam1?user=mallory")
            try await server.waitFor("cam1", .live)
            _ = try await server.rooms.join("cam1", user: "mallory", nick: "M")
            let viewer = try await server.player(of: "cam1")
            try await server.rooms.kick("cam1", user: "mallory", by: Self.ops)
            try await server.expectClosed(mallory, .kicked)
            #expect(try await server.waitFor("cam1", .interrupted).reason == .dropped)
            #expect(!viewer.isClosed)
            await viewer.close()
        }
    }

    @Test func kickedMemberIsCut() async throws {
        try await UnboundServer.run { server in
            let publisher = try await server.livePublisher("cam1")
            _ = try await server.rooms.join("cam1", user: "mallory", nick: "M")
            let mallory = try await server.player(of: "cam1?user=mallory")
            let alice = try await server.player(of: "cam1?user=alice")
            try await server.rooms.kick("cam1", user: "mallory", by: Self.ops)
            try await server.expectClosed(mallory, .kicked)
            #expect(!alice.isClosed)
            await alice.close()
            await publisher.close()
        }
    }
}
