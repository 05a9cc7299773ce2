import EarshotServer
import Foundation
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import ServerConfiguration
@testable import Support

/// A publisher that leaves and returns: its viewers stay, and see one stream whose time never goes back.
@Suite struct ReturningClientsTests {
    /// The first is killed before its end, however late the test sees that it has begun.
    private static func sources() async throws -> (String, String) {
        (
            try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 30),
            try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 2, tone: 880)
        )
    }

    /// Killed in mid-stream, back within the grace period.
    @Test func viewerContinuesAfterAKilledPublisherReturns() async throws {
        let (first, second) = try await Self.sources()
        try await TestServer.run({ $0.rooms.policy.cleanStopMs = 500 }) { server in
            let url = "\(server.rtmp)/live/cam1"
            try await ClientProcess.during(Probe.packets(url)) { viewer in
                try await server.wait("streams") { $0["list"][0]["viewers"].int == 1 }
                let killed = try ClientProcess(FFmpeg.push(first, to: url))
                try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                killed.send(SIGKILL)
                try await server.wait("streams") { $0["list"][0]["state"].string == "interrupted" }
                let pushed = try await ClientProcess.run(FFmpeg.push(second, to: url))
                #expect(pushed.status == 0, "\(pushed.errors)")
                let played = PacketList(csv: try await viewer.outcome().text)
                let sources = (try await PacketList.of(file: first), try await PacketList.of(file: second))
                #expect(played.joinDifference(first: sources.0, second: sources.1) == nil)
            }
        }
    }

    /// Stopped with a command, back within the (shorter) grace period for that.
    @Test func viewerContinuesAfterACleanStop() async throws {
        let first = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 2)
        let second = try await Self.sources().1
        // The default three seconds are too few to start another ffmpeg on a busy machine.
        try await TestServer.run({ $0.rooms.policy.cleanStopMs = 12_000 }) { server in
            let url = "\(server.rtmp)/live/cam1"
            try await ClientProcess.during(Probe.packets(url)) { viewer in
                try await server.wait("streams") { $0["list"][0]["viewers"].int == 1 }
                for source in [first, second] {
                    let pushed = try await ClientProcess.run(FFmpeg.push(source, to: url))
                    #expect(pushed.status == 0, "\(pushed.errors)")
                }
                let played = PacketList(csv: try await viewer.outcome().text)
                let sources = (try await PacketList.of(file: first), try await PacketList.of(file: second))
                #expect(played.joinDifference(first: sources.0, second: sources.1, firstIsWhole: true) == nil)
            }
        }
    }

    @Test func viewerEndsWhenAKilledPublisherStaysAway() async throws {
        let source = try await Self.sources().0
        try await TestServer.run({ $0.rooms.policy.graceMs = 500 }) { server in
            let url = "\(server.rtmp)/live/cam1"
            try await ClientProcess.during(Probe.packets(url)) { viewer in
                try await server.wait("streams") { $0["list"][0]["viewers"].int == 1 }
                let killed = try ClientProcess(FFmpeg.push(source, to: url))
                try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                killed.send(SIGKILL)
                let ended = try await viewer.outcome()
                #expect(ended.status == 0, "\(ended.errors)")
                let expected = try await PacketList.of(file: source)
                let played = PacketList(csv: ended.text)
                #expect(played.difference(from: PacketList(Array(expected.packets.prefix(played.count)))) == nil)
                try await server.wait("streams") { $0.count == 0 && $0["total"].int == 0 }
            }
        }
    }

    /// VLC reads FLV in blocks of 32 KiB: a block of filler follows the last picture, so that no reader holds it back until the return.
    @Test func readersOfBlocksHaveAllOfIt() async throws {
        let source = try await Self.sources().0
        try await TestServer.run { server in
            let killed = try ClientProcess(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1"))
            defer { killed.send(SIGKILL) }
            try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
            let player = try await SocketClient.open(server.addresses.http.port)
            try await player.send("GET /live/cam1.flv HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            try await eventually("pictures") { player.received.count > 4_000 }
            killed.send(SIGKILL)
            // The tag's data, then its size and the chunk's end.
            let block = 32 << 10
            try await eventually("a block of filler") {
                let end = player.received.suffix(block + 6)
                return end.count == block + 6 && end.prefix(5) == [0x57, 2, 0, 0, 0]
                    && end.dropFirst(5).prefix(block - 5).allSatisfy { $0 == 0 }
            }
            await player.close()
        }
    }
}
