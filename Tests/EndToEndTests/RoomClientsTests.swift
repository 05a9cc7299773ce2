import Foundation
import RTMP
import Relay
import RoomStore
import Rooms
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ControlAPI
@testable import Delivery
@testable import EarshotServer
@testable import ServerConfiguration

/// Rooms under real pushes: ffmpeg is admitted, killed, back again, dropped, forbidden, and at its end.
@Suite struct RoomClientsTests {
    private static func source(seconds: Int = 20) async throws -> String {
        try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: seconds)
    }

    private static let ops = Actor("test")

    /// Live at the first media, interrupted by kill -9, live again in time: one room, two pushes, in this order.
    @Test func killedPublisherIsBackWithinGrace() async throws {
        let source = try await Self.source()
        try await TestServer.run { server in
            let url = "\(server.rtmp)/live/cam1"
            let killed = try ClientProcess(FFmpeg.push(source, to: url))
            try await server.waitFor("cam1", .live)
            killed.send(SIGKILL)
            let interrupted = try await server.waitFor("cam1", .interrupted)
            #expect(interrupted.reason == .publisherLost)
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: url)) { _ in
                _ = try await server.waitFor("cam1", .live)
            }
            let events = try await server.events("cam1")
            #expect(
                events.map(\.kind).prefix(7) == [
                    .roomCreated, .streamBegin, .roomLive, .streamEnd, .roomInterrupted, .streamBegin, .roomResumed,
                ])
            #expect(events.map(\.number) == Array(1...Int64(events.count)))
            let pushes = try await server.rooms.published(path: StreamPath("live/cam1"), fromMs: nil, toMs: nil, before: nil, limit: 10)
            #expect(pushes.count == 2 && pushes.allSatisfy { $0.mediaAt != nil })
            #expect(pushes.last?.end == .connectionLost)
            #expect(pushes.last?.width == 320 && pushes.last?.height == 240, "\(pushes)")
        }
    }

    /// After the grace period the room expires, and its viewers' stream ends. The next push opens the room's next life.
    @Test func killedPublisherIsBackTooLate() async throws {
        let source = try await Self.source()
        try await TestServer.run({ $0.rooms.policy.graceMs = 400 }) { server in
            let url = "\(server.rtmp)/live/cam1"
            try await ClientProcess.during(Probe.packets(url)) { viewer in
                let killed = try ClientProcess(FFmpeg.push(source, to: url))
                try await server.waitFor("cam1", .live)
                killed.send(SIGKILL)
                let expired = try await server.waitFor("cam1", .expired)
                #expect(expired.reason == .graceOver && expired.instance == 1)
                _ = try await viewer.outcome()
            }
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: url)) { _ in
                let room = try await server.waitFor("cam1", .live)
                #expect(room.instance == 2)
            }
        }
    }

    /// A dropped publisher is disconnected with the reason, and may return; viewers stay.
    @Test func dropIsNotForbid() async throws {
        try await TestServer.run { server in
            let viewer = try await server.player(of: "cam1")
            let first = try await server.livePublisher("cam1")
            try await server.waitFor("cam1", .live)
            #expect(await server.server.parts.control.cut(StreamPath(app: "live", name: "cam1"), .dropped, endsViewers: false))
            try await server.expectClosed(first, .dropped)
            #expect(try await server.waitFor("cam1", .interrupted).reason == .dropped)
            let second = try await server.livePublisher("cam1")
            try await server.waitFor("cam1", .live)
            #expect(!viewer.isClosed)
            #expect(await server.server.parts.control.cut(StreamPath(app: "live", name: "nothing"), .dropped, endsViewers: false) == false)
            await second.close()
            await viewer.close()
        }
    }

    /// A ban cuts the publisher, ends the viewers' stream, and refuses pushes with the reason, until it is lifted.
    @Test func forbidAndResume() async throws {
        try await TestServer.run { server in
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
        try await TestServer.run { server in
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

    /// Silence on a live socket, an announced pause and a dead socket are distinct.
    @Test func silencePauseAndDeath() async throws {
        try await TestServer.run({ $0.rooms.policy.mediaIdleMs = 6_000 }) { server in
            let client = try await server.livePublisher("cam1")
            #expect(try await server.waitFor("cam1", .interrupted).reason == .mediaIdle)
            client.send(.audio, SyntheticTag.audio(2, bytes: 20), timestamp: 40)
            try await server.waitFor("cam1", .live)
            // The client announces its pause.
            try await client.perform { $0.pause(true, on: 1) }
            let paused = try await server.waitFor("cam1", .interrupted)
            #expect(paused.reason == .paused)
            let ends = try #require(paused.interruptionEnds)
            #expect(ends - (paused.interruptedAt ?? 0) >= 120_000, "a pause may be longer than a silence")
            try await client.reset()
            try await eventually("the dead socket to be noticed") { try await server.rooms.room("cam1").slots[0].sequence == nil }
            #expect(try await server.rooms.room("cam1").reason == .paused, "and keep its time, though the socket died")
            let back = try await server.livePublisher("cam1")
            try await server.waitFor("cam1", .live)
            #expect(try await server.events("cam1").filter { $0.kind == .roomResumed }.count == 2)
            try await back.reset()
            #expect(try await server.waitFor("cam1", .interrupted).reason == .publisherLost)
        }
    }

    /// Endless announced pauses cost the registry next to nothing.
    @Test func aFloodOfPauses() async throws {
        try await TestServer.run { server in
            let client = try await server.livePublisher("cam1")
            try await server.waitFor("cam1", .live)
            let before = server.rooms.counters.operations
            for _ in 0..<50 {
                try await client.perform { session in
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
        try await TestServer.run { server in
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
        try await TestServer.run({ $0.rooms.autoCreate = .never }) { server in
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

    @Test func neverStartedRoomExpires() async throws {
        try await TestServer.run { server in
            var policy = RoomPolicy()
            policy.neverStartedMs = 5_000
            var new = NewRoom(policy: policy)
            new.id = try RoomID(checking: "idle")
            _ = try await server.rooms.create(new, by: Self.ops)
            // Connected, admitted, and silent: that is no start.
            let silent = try await RawClient.publishing(server.port, "idle")
            #expect(try await server.waitFor("idle", .expired).reason == .neverStarted)
            try await silent.waitUntilClosed()
        }
    }

    @Test func sessionsAreEndedById() async throws {
        try await TestServer.run { server in
            let viewer = try await server.player(of: "cam1")
            let id = try #require(try await server.server.parts.streams.collect { $0.sessionSnapshots() }.first?.id)
            #expect(await server.server.parts.control.endSession(id, by: Actor("token:ops")))
            try await server.expectClosed(viewer, .kicked)
            #expect(await server.server.parts.control.endSession(id, by: Actor("token:ops")) == false)
        }
    }

    /// Viewers stay while the room waits, even beyond a broken connection's grace period.
    @Test func viewersStayThroughAnInterruption() async throws {
        try await TestServer.run({ $0.rooms.policy.graceMs = 300 }) { server in
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

    /// A changed policy applies to the running push.
    @Test func aPolicyCanChangeDuringAPush() async throws {
        try await TestServer.run { server in
            let client = try await server.livePublisher("cam1")
            try await server.waitFor("cam1", .live)
            var patch = RoomPatch()
            patch.policy = ["mediaIdle": 1_000]
            _ = try await server.rooms.update("cam1", patch, by: Self.ops)
            #expect(try await server.waitFor("cam1", .interrupted).reason == .mediaIdle)
            await client.close()
        }
    }

    /// The push ends with the silence that ended the room: for its client, the log and the list of pushes.
    @Test func silenceThatEndsTheRoom() async throws {
        try await TestServer.run({
            $0.rooms.policy.mediaIdleMs = 1_000; $0.rooms.policy.idleGraceMs = 1_000
        }) { server in
            let client = try await server.livePublisher("cam1")
            try await server.expectClosed(client, .mediaIdle)
            try await server.waitFor("cam1", .expired)
            let pushes = try await server.rooms.published(path: StreamPath("live/cam1"), fromMs: nil, toMs: nil, before: nil, limit: 10)
            #expect(pushes.map(\.end) == [.mediaIdle])
        }
    }

    /// A kick also ends the user's own push.
    @Test func kickedPublisherIsCut() async throws {
        try await TestServer.run { server in
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
        try await TestServer.run { server in
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

    /// A kicked user stays out of room, streams and talk, over RTMP and HTTP, even after a restart.
    @Test func kickedStaysOut() async throws {
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            let isOut: @Sendable (TestServer) async throws -> Void = { server in
                for (app, name, isPush) in [
                    ("live", "cam1?user=mallory", false), ("live", "cam1?user=mallory", true), ("talk", "cam1/mix?user=mallory", false),
                ] {
                    let client = try await RawClient.connected(server.port, app: app)
                    _ = try await client.createStream()
                    if isPush { try? await client.publish(name) } else { try? await client.play(name) }
                    try await server.expectClosed(client, .kicked)
                    let told = client.statuses.last?.description ?? ""
                    #expect(told.contains("[kicked]") && told.contains("may come back in"), "\(app) \(isPush): \(told)")
                }
                for format in ["flv", "m3u8"] {
                    let answer = try await HTTPAnswer.get("\(server.http)/live/cam1.\(format)?user=mallory")
                    #expect(answer.status == 403 && answer.text.contains("\"kicked\""), "\(answer.text)")
                }
                let join = try await server.call("POST", "rooms/cam1/join", #"{"userId":"mallory"}"#)
                #expect(join.status == 409 && join.text.contains("may come back"), "\(join.text)")
                #expect(join.headers["retry-after"].flatMap(Int.init) ?? 0 > 500)
            }
            try await TestServer.run(data: data) { server in
                let publisher = try await server.livePublisher("cam1")
                _ = try await server.rooms.join("cam1", user: "mallory", nick: "M")
                #expect(try await server.call("POST", "rooms/cam1/members/mallory/kick", #"{"seconds":600}"#).status == 200)
                try await isOut(server)
                // Other users are not affected.
                let alice = try await server.player(of: "cam1?user=alice")
                for client in [alice, publisher] { await client.close() }
            }
            try await TestServer.run(data: data) { server in
                let publisher = try await server.livePublisher("cam1")
                try await isOut(server)
                await publisher.close()
            }
        }
    }

    /// A kick lasts ten seconds by default; with `seconds` 0 it keeps nobody out.
    @Test func kicksHaveADefault() async throws {
        try await TestServer.run { server in
            let publisher = try await server.livePublisher("cam1")
            for (body, isOut) in [(#"{"seconds":0}"#, false), ("{}", true)] {
                #expect(try await server.call("POST", "rooms/cam1/join", #"{"userId":"mallory"}"#).status == 200)
                #expect(try await server.call("POST", "rooms/cam1/members/mallory/kick", body).status == 200)
                let until = server.rooms.keptOut("mallory", of: "live/cam1")
                #expect((until != nil) == isOut)
                if let until { #expect((1...10_000).contains(until - server.rooms.now)) }
            }
            let document = try await HTTPAnswer.get("\(server.http)/api/v1/openapi.json").json()
            for path in ["/rooms/{roomId}/members/{userId}/kick", "/rooms/{roomId}/talk/members/{userId}/kick"] {
                let text = "\(document["paths"][path]["post"].value ?? "")"
                #expect(text.contains("seconds") && text.contains("10 if omitted"), "\(path): \(text)")
            }
            await publisher.close()
        }
    }
}

extension TestServer {
    var rooms: RoomRegistry { self.server.parts.rooms }

    /// Waits until a stream without a publisher waits at least that many milliseconds for one.
    func waitForGrace(_ name: String, ofAtLeast ms: Int64) async throws {
        try await eventually("a grace of \(ms) ms") {
            let path = StreamPath(app: "live", name: name)
            guard case .grace(let deadlineMs)? = await self.server.parts.api.streamAnswer(path)?.snapshot.phase else { return false }
            return deadlineMs - LoopSweeper.nowMs >= ms
        }
    }

    func events(_ id: String) async throws -> [RoomEvent] { try await self.rooms.events(after: 0, room: id, limit: 1_000) }

    /// A publisher that has sent its first audio.
    func livePublisher(_ name: String) async throws -> RawClient {
        let client = try await RawClient.publishing(self.port, name)
        client.send(.audio, SyntheticTag.audio(1, bytes: 20))
        return client
    }
}
