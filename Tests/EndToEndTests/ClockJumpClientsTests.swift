import EarshotServer
import Foundation
import RTMP
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import ServerConfiguration

/// A device whose clock jumps while it publishes, as seen by ffmpeg over RTMP and HTTP-FLV.
@Suite struct ClockJumpClientsTests {
    /// Ten seconds back and an hour ahead, in the middle of pictures and sound: every packet arrives, times stay even, and a copy into a
    /// file keeps them.
    @Test func everyPacketAtEvenTimes() async throws {
        let file = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 9)
        let tags = try FLVTag.media(of: file)
        // The jumps are inside groups of pictures.
        let parts: [(from: UInt32, by: UInt32)] = [(0, 20_000), (3_310, 10_000), (6_170, 3_600_000)]
        try await Fixture.withDirectory { directory in
            try await TestServer.run({ $0.rooms.policy.cleanStopMs = 300 }) { server in
                let urls = ["\(server.rtmp)/live/cam1", "\(server.http)/live/cam1.flv"]
                let copies = ["rtmp.mkv", "flv.mkv"].map { directory.appendingPathComponent($0).path }
                let client = try await TagClient.publish(to: server, "live/cam1")
                let firstMs: UInt32 = 400
                try await client.send(tags.filter { $0.timestamp < firstMs }.map { $0.later(by: parts[0].by) })
                try await server.wait("streams") { $0["list"][0]["video"]["width"].int != nil }
                let players = try urls.map { try ClientProcess(Probe.packets($0)) }
                let copiers = try zip(urls, copies).map {
                    try ClientProcess(["ffmpeg", "-v", "warning", "-y", "-i", $0, "-c", "copy", $1])
                }
                defer { for process in players + copiers { process.send(SIGKILL) } }
                // All players have joined before it continues.
                try await server.wait("streams") { $0["list"][0]["viewers"].int == 4 }
                var sent: [FLVTag] = []
                var times: [UInt32] = []
                for (index, part) in parts.enumerated() {
                    let end = index + 1 < parts.count ? parts[index + 1].from : .max
                    let own = tags.filter {
                        (max(part.from, firstMs)..<end).contains($0.timestamp) && (index == 0 || !$0.isSequenceHeader)
                    }
                    sent += own.map { $0.later(by: part.by) }
                    times += own.map(\.timestamp)
                }
                // One sender for all: at a jump, a pause of the publisher is part of the stream's time.
                let lateness = try await PacedPublisher(client).send(sent, at: times)
                let longestMs = 1_000 + Int64(lateness.postponed / .milliseconds(1))
                try await client.session { $0.unpublish("cam1", on: $1) }
                let pushed = try await PacketList.of(file: file)
                for player in players {
                    let played = PacketList(csv: try await player.outcome().text)
                    for kind in ["video", "audio"] {
                        let got = played.only(kind)
                        #expect(got.orderProblem == nil, "\(kind)")
                        #expect(got.hashes == pushed.only(kind).hashes.suffix(got.count), "\(kind)")
                        #expect(got.count > pushed.only(kind).count * 3 / 4, "\(kind): \(got.count)")
                        let steps = zip(got.packets, got.packets.dropFirst()).map { ($1.dts ?? 0) - ($0.dts ?? 0) }
                        let odd = steps.filter { $0 <= 0 || $0 >= longestMs }
                        #expect(odd.isEmpty, "\(kind): \(odd); \(lateness)")
                    }
                }
                for (copier, copy) in zip(copiers, copies) {
                    let copied = try await copier.outcome()
                    #expect(copied.status == 0 && !copied.errors.lowercased().contains("monoton"), "\(copied.errors)")
                    // Matroska keeps no decode times.
                    let times = try await PacketList.of(file: copy).only("video").packets.compactMap(\.pts).sorted()
                    let odd = zip(times, times.dropFirst()).filter { $0 >= $1 || $1 - $0 >= longestMs }
                    #expect(times.count > 150 && odd.isEmpty, "\(copy): \(odd); \(lateness)")
                }
                await client.close()
            }
        }
    }
}
