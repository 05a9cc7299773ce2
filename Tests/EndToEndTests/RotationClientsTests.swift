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

/// Headers and metadata that change while a stream runs.
@Suite struct RotationClientsTests {
    /// A turned device continues on the same connection with another picture size.
    @Test func newSequenceHeadersArriveInOrder() async throws {
        let landscape = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 6, size: "320x240")
        let portrait = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 8, size: "240x320")
        try await Fixture.withDirectory { directory in
            let joined = directory.appendingPathComponent("joined.flv").path
            let expected = directory.appendingPathComponent("expected.flv").path
            let turned = try Self.join(FLVFile.read(landscape), FLVFile.read(portrait))
            try FLVFile.write(turned, to: joined)
            try FLVFile.write(try Self.withParameterSets(turned), to: expected)
            try await TestServer.run({ $0.rooms.policy.cleanStopMs = 500 }) { server in
                let url = "\(server.rtmp)/live/cam1"
                let tags = try await TagClient.play(from: server, "live/cam1")
                try await ClientProcess.during(Probe.packets(url)) { player in
                    try await server.wait("streams") { $0["list"][0]["viewers"].int == 2 }
                    let push = try ClientProcess(FFmpeg.push(joined, to: url))
                    defer { push.send(SIGKILL) }
                    try await server.wait("streams") { Self.size($0) == [240, 320] }
                    let late = try await push.halted { try await TagClient.play(from: server, "live/cam1") }
                    let pushed = try await push.outcome()
                    #expect(pushed.status == 0, "\(pushed.errors)")
                    let played = PacketList(csv: try await player.outcome().text)
                    #expect(played.difference(from: try await PacketList.of(file: expected)) == nil)
                    try await eventually("the end") { tags.current.sawEOF && late.current.sawEOF }
                    try Self.checkHeaders(tags.tags, source: FLVFile.read(expected))
                    // A viewer that joins after the turn gets the new header only.
                    let newest = try FLVFile.read(portrait).first { $0.kind == .video && $0.isSequenceHeader }?.payload
                    let given = late.tags.filter { $0.kind == .video && $0.isSequenceHeader }.map(\.payload)
                    #expect(try given == [newest.orThrow()])
                }
                await tags.close()
            }
        }
    }

    /// Adds its parameter sets to the first keyframe after the second header.
    private static func withParameterSets(_ tags: [FLVTag]) throws -> [FLVTag] {
        var tags = tags
        let headers = tags.indices.filter { tags[$0].kind == .video && tags[$0].isSequenceHeader }
        let turn = try headers.dropFirst().first.orThrow()
        let record = ByteBuffer(bytes: tags[turn].payload.dropFirst(5))
        let sets = try ParameterSets.units(in: record, of: .avc).orThrow()
        let keyframe = try tags.indices.dropFirst(turn).first {
            tags[$0].kind == .video && tags[$0].payload.starts(with: [0x17, 1])
        }.orThrow()
        tags[keyframe].payload.insert(contentsOf: sets.readableBytesView, at: 5)
        return tags
    }

    /// Each header arrived, before the first picture that needs it.
    private static func checkHeaders(_ played: [FLVTag], source: [FLVTag]) throws {
        let wanted = source.filter { $0.kind == .video && $0.payload.first.map { $0 & 0x0F == 7 } == true && $0.payload[1] < 2 }
        let got = played.filter { $0.kind == .video && $0.payload.count > 1 && $0.payload[1] < 2 }
        #expect(got.count == wanted.count)
        for (index, pair) in zip(got, wanted).enumerated() where pair.0.payload != pair.1.payload {
            Issue.record("video tag \(index): got \(pair.0), expected \(pair.1)")
            return
        }
        #expect(wanted.count { $0.isSequenceHeader } == 2)
    }

    private static func size(_ streams: JSON) -> [Int?] {
        let video = streams["list"][0]["video"]
        return [video["width"].int, video["height"].int]
    }

    /// The second file's tags after the first's, without its script data.
    static func join(_ first: [FLVTag], _ second: [FLVTag]) -> [FLVTag] {
        let isEnd: (FLVTag) -> Bool = { $0.kind == .video && $0.payload.count > 1 && $0.payload[0] & 0x0F == 7 && $0.payload[1] == 2 }
        let start = (first.map(\.timestamp).max() ?? 0) + 40
        return first.filter { !isEnd($0) }
            + second.filter { $0.kind != .data }.map { tag in
                var moved = tag
                moved.timestamp += start
                return moved
            }
    }

    // MARK: Metadata

    private static let metadata = AMF0Value.ecmaArray([
        AMF0Property(name: "width", value: .number(320)), AMF0Property(name: "height", value: .number(240)),
        AMF0Property(name: "encoder", value: .string("earphone 1.0")), AMF0Property(name: "vendor.battery", value: .number(87)),
        AMF0Property(name: "nested", value: .object([AMF0Property(name: "list", value: .strictArray([.boolean(true), .null]))])),
    ])

    @Test func metadataIsWholeAndUpdatedForLateJoiners() async throws {
        let file = try FLVFile.read(try await Fixture.flv(video: Fixture.baseline, audio: nil, seconds: 1))
        // Without the end of sequence, which the server holds until the publisher is finally gone.
        let video = file.filter { $0.kind == .video && $0.payload[1] < 2 }
        try await TestServer.run { server in
            let early = try await TagClient.play(from: server, "live/cam1")
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            try await publisher.setMetadata(Self.metadata)
            try await publisher.send(video)
            try await early.waitForTags(1 + video.count)
            let first = try await TagClient.play(from: server, "live/cam1")
            try await eventually("metadata") { !first.tags.isEmpty }
            #expect(try Self.dataValues(first.tags[0]) == [.string("onMetaData"), Self.metadata])
            #expect(first.tags[0].payload == early.tags[0].payload)

            let update = AMF0Value.ecmaArray([AMF0Property(name: "vendor.battery", value: .number(12))])
            try await publisher.setMetadata(update, timestamp: 2_000)
            try await early.waitForTags(2 + video.count)
            #expect(try Self.dataValues(try early.tags.last.orThrow()) == [.string("onMetaData"), update])
            #expect(early.tags.last?.timestamp == 0, "metadata has no time")
            try await publisher.send(video.map { FLVTag(kind: .video, timestamp: $0.timestamp + 3_000, payload: $0.payload) })
            try await early.waitForTags(2 + 2 * video.count)
            let second = try await TagClient.play(from: server, "live/cam1")
            try await eventually("metadata") { !second.tags.isEmpty }
            #expect(try Self.dataValues(second.tags[0]) == [.string("onMetaData"), update])
            for client in [early, first, second, publisher] { await client.close() }
        }
    }

    /// ffmpeg's metadata reaches ffprobe, early and late.
    @Test func foreignMetadataReachesForeignPlayers() async throws {
        let source = try await Fixture.flv(
            video: Fixture.baseline + ["-metadata", "title=over the shoulder", "-metadata", "comment=ear"], audio: nil, seconds: 4)
        try await TestServer.run({ $0.rooms.policy.cleanStopMs = 300 }) { server in
            let url = "\(server.rtmp)/live/cam1"
            let probe = ["ffprobe", "-v", "error", "-show_entries", "format_tags:stream=codec_name,width,height", "-of", "flat", url]
            let early = try ClientProcess(probe)
            defer { early.send(SIGKILL) }
            try await server.wait("streams") { $0["list"][0]["viewers"].int == 1 }
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: url)) { push in
                try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                let late = try await ClientProcess.run(probe)
                for outcome in [late, try await early.outcome()] {
                    #expect(outcome.text.contains("title=\"over the shoulder\""), "\(outcome.text) \(outcome.errors)")
                    #expect(outcome.text.contains("comment=\"ear\""))
                    #expect(outcome.text.contains("width=320"))
                }
                push.send(SIGKILL)
            }
        }
    }

    private static func dataValues(_ tag: FLVTag) throws -> [AMF0Value] {
        #expect(tag.kind == .data)
        var decoder = AMF0Decoder(.init(bytes: tag.payload))
        return try decoder.all()
    }
}
