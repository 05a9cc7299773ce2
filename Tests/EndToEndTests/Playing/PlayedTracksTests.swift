import EarshotServer
import Foundation
import Media
import NIOCore
import RTMP
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import ServerConfiguration

/// The tracks that FFmpeg's FLV reader, and so most players, finds: sound, pictures, and timed data only if the device means it.
@Suite struct PlayedTracksTests {
    /// Debian's ffmpeg, and a current one.
    enum Player: CaseIterable, Sendable {
        case old, new

        func path() async throws -> String { self == .old ? "ffmpeg" : try await NewFFmpeg.path() }

    }

    /// Media of this length as a device sends it: metadata changes in the middle, sometimes at time 0, between messages that encoders and
    /// other servers add for servers.
    private static func media(_ seconds: Int, timedData: Bool = false) async throws -> [FLVTag] {
        var tags = try FLVTag.media(of: try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: seconds))
        func insert(_ values: AMF0Value..., behind ms: UInt32, at timestamp: UInt32) {
            let index = tags.firstIndex { $0.timestamp >= ms } ?? tags.endIndex
            tags.insert(FLVTag(kind: .data, timestamp: timestamp, payload: Self.script(values)), at: index)
        }
        insert("@setDataFrame", "onMetaData", Self.metadata(title: "one"), behind: 0, at: 0)
        for second in 1..<UInt32(seconds) {
            let ms = second * 1_000
            insert("@setDataFrame", "onMetaData", Self.metadata(title: "\(second)"), behind: ms, at: second % 2 == 0 ? ms : 0)
            insert("|RtmpSampleAccess", .boolean(true), .boolean(true), behind: ms + 100, at: ms + 100)
            insert("onFI", .object([AMF0Property(name: "st", value: .string("12:00:00.0"))]), behind: ms + 200, at: ms + 200)
            insert("@setDataFrame", "onMetaData", .object([]), behind: ms + 300, at: ms + 300)
            if timedData {
                insert("onTextData", .object([AMF0Property(name: "text", value: .string("hello"))]), behind: ms + 400, at: ms + 400)
            }
        }
        return tags
    }

    private static func metadata(title: String) -> AMF0Value {
        .ecmaArray([AMF0Property(name: "title", value: .string(title)), AMF0Property(name: "width", value: .number(320))])
    }

    private static func script(_ values: [AMF0Value]) -> [UInt8] {
        var payload = ByteBuffer()
        for value in values { payload.writeAMF0(value) }
        return Array(payload.readableBytesView)
    }

    /// The kinds ("video", "audio") of all packets that ffprobe lists.
    private static func kinds(_ outcome: ClientProcess.Outcome) -> Set<String> {
        Set(outcome.text.split(separator: "\n").compactMap { $0.hasPrefix("packet,") ? String($0.split(separator: ",")[1]) : nil })
    }

    /// Early and late players, over RTMP and HTTP-FLV, get packets of two kinds to the end.
    @Test func twoTracksToTheEnd() async throws {
        let tags = try await Self.media(6)
        try await TestServer.run({ $0.rooms.policy.cleanStopMs = 300 }) { server in
            let urls = ["\(server.rtmp)/live/cam1", "\(server.http)/live/cam1.flv"]
            func probe(_ url: String) throws -> ClientProcess {
                try ClientProcess(["ffprobe", "-v", "error", "-show_entries", "packet=codec_type", "-of", "csv", url])
            }
            // Over HTTP a player does not wait for a missing stream.
            let first = try probe(urls[0])
            defer { first.send(SIGKILL) }
            try await server.wait("streams") { $0["list"][0]["viewers"].int == 1 }
            let client = try await TagClient.publish(to: server, "live/cam1")
            async let publishing = PacedPublisher(client).send(tags)
            try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
            let late = try urls.map { try probe($0) }
            defer { for player in late { player.send(SIGKILL) } }
            _ = try await publishing
            try await client.session { $0.unpublish("cam1", on: $1) }
            for player in [first] + late {
                let outcome = try await player.outcome()
                #expect(Self.kinds(outcome) == ["video", "audio"], "\(outcome.errors)")
            }
            await client.close()
        }
    }

    /// Timed data that a device sends on purpose is relayed.
    @Test func timedDataIsATrack() async throws {
        let tags = try await Self.media(4, timedData: true)
        try await TestServer.run({ $0.rooms.policy.cleanStopMs = 300 }) { server in
            let player = try await TagClient.play(from: server, "live/cam1")
            let client = try await TagClient.publish(to: server, "live/cam1")
            try await PacedPublisher(client).send(tags)
            let sent = tags.filter { Self.name($0) == "onTextData" }
            try await eventually("the data") { player.tags.count { Self.name($0) == "onTextData" } == sent.count }
            #expect(player.tags.filter { Self.name($0) == "onTextData" } == sent && sent.count == 3)
            let others = player.tags.filter { $0.kind == .data && Self.name($0) != "onTextData" }
            #expect(others.count == 4 && others.allSatisfy { Self.name($0) == "onMetaData" && $0.timestamp == 0 }, "\(others)")
            await client.close()
            await player.close()
        }
    }

    private static func name(_ tag: FLVTag) -> String? {
        guard tag.kind == .data else { return nil }
        var decoder = AMF0Decoder(ByteBuffer(bytes: tag.payload))
        return (try? decoder.next())?.string
    }

    /// Joining a running stream: ffmpeg finds two tracks, and a copy of two seconds ends by itself, also to HLS.
    @Test(arguments: Player.allCases) func copiesEnd(_ player: Player) async throws {
        let ffmpeg = try await player.path()
        let tags = try await Self.media(20)
        try await Fixture.withDirectory { directory in
            try await TestServer.run { server in
                let client = try await TagClient.publish(to: server, "live/cam1")
                let pushing = Task { try await PacedPublisher(client).send(tags) }
                defer { pushing.cancel() }
                try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                try await withThrowingTaskGroup(of: Void.self) { copies in
                    for (index, url) in ["\(server.rtmp)/live/cam1", "\(server.http)/live/cam1.flv"].enumerated() {
                        for name in ["copy\(index).mkv", "copy\(index).m3u8"] {
                            copies.addTask {
                                let file = directory.appendingPathComponent(name).path
                                let copied = try await ClientProcess.run(
                                    [ffmpeg, "-hide_banner", "-i", url, "-c", "copy", "-t", "2", file])
                                #expect(copied.status == 0, "\(copied.errors)")
                                let heading = copied.errors.components(separatedBy: "Output #0")[0]
                                let input = heading.components(separatedBy: "Stream mapping")[0]
                                let tracks = input.components(separatedBy: "Stream #0:").dropFirst()
                                #expect(tracks.count == 2 && !input.contains("Subtitle:") && !input.contains("Data:"), "\(input)")
                                let probe = ["ffprobe", "-v", "error", "-show_entries", "packet=codec_type", "-of", "csv", file]
                                #expect(Self.kinds(try await ClientProcess.run(probe)) == ["video", "audio"])
                            }
                        }
                    }
                    try await copies.waitForAll()
                }
                await client.close()
            }
        }
    }
}
