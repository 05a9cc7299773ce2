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

@testable import ControlAPI
@testable import EarshotServer
@testable import ServerConfiguration
@testable import Streaming

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
            #expect(pushes.last?.media.width == 320 && pushes.last?.media.height == 240, "\(pushes)")
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

    /// Silence on a live socket, an announced pause and a dead socket are distinct.
    @Test func silencePauseAndDeath() async throws {
        try await TestServer.run({ $0.rooms.policy.mediaIdleMs = 6_000 }) { server in
            let client = try await server.livePublisher("cam1")
            #expect(try await server.waitFor("cam1", .interrupted).reason == .mediaIdle)
            client.send(.audio, SyntheticTag.audio(2, bytes: 20), timestamp: 40)
            try await server.waitFor("cam1", .live)
            // The client announces its pause.
            try await client.run { $0.pause(true, on: 1) }
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
