import APITestSupport
import EarshotServer
import RTMP
import RTMPTestSupport
import ServerTestSupport
import Streaming
import TestSupport
import Testing

extension Hostile {
    /// Several publishes and plays on one connection, and players that pause and switch.
    @Suite struct OneConnection {
        @Test func twoPlaysAndAPublish() async throws {
            try await UnboundServer.withCanary { server in
                let north = try await RawClient.publishing(server.port, "north")
                let south = try await RawClient.publishing(server.port, "south")
                let busy = try await RawClient.connected(server.port)
                let ids = [try await busy.createStream(), try await busy.createStream(), try await busy.createStream()]
                #expect(Set(ids).count == 3)
                try await busy.publish("east", on: ids[0])
                try await busy.play("north", on: ids[1])
                try await busy.play("south", on: ids[2])
                let watcher = try await server.player(of: "east")
                for number in 0..<200 {
                    // One chunk, and several (of 60,000 bytes), whose later headers carry no message stream id.
                    let size = number % 20 == 0 ? 130_000 : 700
                    north.send(.video, SyntheticTag.video(3 * number, isKeyframe: number % 50 == 0, bytes: size), timestamp: UInt32(number))
                    south.send(
                        .video, SyntheticTag.video(3 * number + 1, isKeyframe: number % 50 == 0, bytes: size), timestamp: UInt32(number))
                    busy.send(.audio, SyntheticTag.audio(3 * number + 2, bytes: 90), timestamp: UInt32(number), on: ids[0])
                    if number % 20 == 0 { try await server.pass(watcher) }
                }
                for (client, id, offset) in [(busy, ids[1], 0), (busy, ids[2], 1), (watcher, 1, 2)] {
                    try await eventually("all of \(offset)") { client.media(on: id).count >= 200 }
                    #expect(client.media(on: id).map { SyntheticTag.number($0.message) } == (0..<200).map { 3 * $0 + offset })
                }
                #expect(busy.media(on: ids[0]).isEmpty && busy.decodingError == nil)
                // Ending one play leaves the others.
                try await busy.run { $0.deleteStream(ids[1]) }
                try await server.wait("streams") { list in
                    list["list"].list.contains { $0["name"].string == "north" && $0["viewers"].int == 0 }
                }
                south.send(.video, SyntheticTag.video(1_000, isKeyframe: true, bytes: 50), timestamp: 300)
                busy.send(.audio, SyntheticTag.audio(1_001, bytes: 50), timestamp: 300, on: ids[0])
                try await eventually("the rest") { busy.media(on: ids[2]).count == 201 && watcher.media().count == 201 }
                for client in [north, south, busy, watcher] { await client.close() }
                try await server.expectConnections(2)
            }
        }

        @Test func pauseAndTracks() async throws {
            try await UnboundServer.withCanary { server in
                let publisher = try await RawClient.publishing(server.port, "cam")
                let viewer = try await server.player(of: "cam")
                let stage = Stage(server, publisher: publisher, viewer: viewer)
                try await stage.expect(2, ["video", "audio", "video", "audio"])
                try await viewer.run { $0.pause(true, on: 1) }
                try await viewer.waitForStatus(StatusCode.pauseNotify)
                try await stage.expect(3, [])
                try await viewer.run { $0.pause(false, on: 1) }
                try await viewer.waitForStatus(StatusCode.unpauseNotify)
                // Resumes at the newest keyframe, sent during the pause.
                try await eventually("the cached pictures") {
                    viewer.media().last.map { $0.message.type == .audio } == true && stage.news().count >= 2
                }
                stage.forget()
                try await stage.expect(1, ["video", "audio"])
                try await viewer.run { $0.receiveAudio(false, on: 1) }
                try await server.pass(viewer)
                try await stage.expect(2, ["video", "video"])
                try await viewer.run { $0.receiveVideo(false, on: 1) }
                try await server.pass(viewer)
                try await stage.expect(2, [])
                try await viewer.run { $0.receiveAudio(true, on: 1) }
                try await server.pass(viewer)
                try await stage.expect(2, ["audio", "audio"])
                try await viewer.run { $0.receiveVideo(true, on: 1) }
                try await server.pass(viewer)
                try await stage.expect(2, ["video", "audio", "video", "audio"])
                // Pause, pause, unpause, unpause: nothing arrives twice.
                for paused in [true, true, false, false, true, false] { try await viewer.run { $0.pause(paused, on: 1) } }
                try await server.pass(viewer)
                stage.forget()
                try await stage.expect(1, ["video", "audio"])
                let stamps = viewer.media().map(\.message.timestamp)
                #expect(stamps == stamps.sorted())
                for client in [publisher, viewer] { await client.close() }
            }
        }

        @Test func closeStreamAndPlayAgain() async throws {
            try await UnboundServer.withCanary { server in
                let publisher = try await RawClient.publishing(server.port, "cam")
                let viewer = try await server.player(of: "cam")
                let stage = Stage(server, publisher: publisher, viewer: viewer)
                for round in 0..<3 {
                    try await stage.expect(1, ["video", "audio"])
                    viewer.send(Command("closeStream"), on: 1)
                    try await eventually("the stop") { viewer.statusCodes.count { $0 == StatusCode.playStop } == round + 1 }
                    try await stage.expect(1, [])
                    try await viewer.play("cam", on: 1)
                    try await eventually("the cached pictures") { stage.news().count >= 2 }
                    stage.forget()
                }
                // Play over play: the old one ends, the new one begins, and nothing arrives twice.
                let other = try await RawClient.publishing(server.port, "other")
                try await viewer.play("other", on: 1)
                stage.forget()
                try await stage.expect(1, [])
                other.send(.audio, SyntheticTag.audio(9_999, bytes: 30))
                try await eventually("the other stream") { stage.news().count == 1 }
                try await viewer.run { $0.deleteStream(1) }
                try await server.wait("streams") { list in
                    list["list"].list.allSatisfy { $0["name"].string == Canary.name || $0["viewers"].int == 0 }
                }
                for client in [publisher, viewer, other] { await client.close() }
                try await server.expectConnections(2)
            }
        }
    }
}

/// A publisher and its viewer: shows which messages arrive.
private final class Stage: Sendable {
    private let server: UnboundServer
    private let publisher: RawClient
    private let viewer: RawClient
    private let witness = Witness()

    /// Used by the test's own task only.
    private final class Witness: @unchecked Sendable {
        var number = 0
        var seen = 0
    }

    init(_ server: UnboundServer, publisher: RawClient, viewer: RawClient) {
        self.server = server
        self.publisher = publisher
        self.viewer = viewer
    }

    func news() -> [RawClient.Received] { Array(self.viewer.media().dropFirst(self.witness.seen)) }

    func forget() { self.witness.seen = self.viewer.media().count }

    /// Sends pairs of a keyframe and an audio message, and expects these kinds to arrive.
    func expect(_ pairs: Int, _ kinds: [String], sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let arrived = try await self.play(pairs)
        #expect(arrived == kinds, sourceLocation: sourceLocation)
    }

    /// Sends pairs of a keyframe and an audio message, then returns the kinds that arrived.
    private func play(_ pairs: Int) async throws -> [String] {
        for _ in 0..<pairs {
            let number = self.witness.number
            self.witness.number += 1
            self.publisher.send(.video, SyntheticTag.video(number, isKeyframe: true, bytes: 100), timestamp: UInt32(number * 40))
            self.publisher.send(.audio, SyntheticTag.audio(number, bytes: 50), timestamp: UInt32(number * 40))
        }
        // The publisher's pong: its loop has sent the messages on, to the stream's home and from there to every loop. What runs on these loops
        // now comes after them. The viewer's pong: its share of them has been written.
        try await self.server.pass(self.publisher)
        let streams = self.server.parts.streams
        _ = await streams.onHome(of: "live/cam") { _, _ in true }
        _ = try await streams.collect { _ in [true] }
        try await self.server.pass(self.viewer)
        let kinds = self.news().map { $0.message.type == .video ? "video" : "audio" }
        self.forget()
        return kinds
    }
}
