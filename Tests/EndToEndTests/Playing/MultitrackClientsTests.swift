import EarshotServer
import Foundation
import Media
import RTMP
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import ServerConfiguration

/// A stream with two video tracks, as OBS and FFmpeg send them, for players that know no Multitrack: they show the first, or the one that they ask for.
@Suite struct MultitrackClientsTests {
    /// Whether the first track is plain, or Multitrack like the second.
    @Test(arguments: [true, false]) func oldPlayersShowTheFirstTrack(_ isPlain: Bool) async throws {
        let tags = try await Self.twoTracks(firstIsPlain: isPlain)
        try await TestServer.run { server in
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            try await publisher.send(tags)
            try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int == 1_000 }
            let video = try await server.api("streams")["list"][0]["video"]
            #expect(video["width"].int == 320 && video["height"].int == 240)
            #expect(try await server.call("GET", "rooms/cam1/snapshot.jpg").status == 200)
            let urls = [
                ("\(server.rtmp)/live/cam1", 115_200), ("\(server.http)/live/cam1.flv", 115_200),
                ("\(server.rtmp)/live/cam1?track=1", 28_800), ("\(server.http)/live/cam1.flv?track=1", 28_800),
            ]
            for (round, (url, size)) in urls.enumerated() {
                let play = ["ffmpeg", "-v", "error", "-i", url, "-map", "0:v", "-frames:v", "20", "-f", "framehash", "-"]
                try await ClientProcess.during(play) { player in
                    try await server.wait("streams") { $0["list"][0]["viewers"].int == 1 }
                    // What its probing waits for.
                    for part in 1...3 { try await publisher.send(tags.map { $0.later(by: UInt32(3 * round + part) * 4_000) }) }
                    let played = try await player.outcome()
                    let frames = played.text.split(separator: "\n").filter { !$0.hasPrefix("#") }
                    #expect(played.status == 0 && played.errors.isEmpty, "\(url): \(played.errors)")
                    #expect(frames.count == 20 && frames.allSatisfy { $0.contains(" \(size),") }, "\(url): \(played.text)")
                }
                try await server.wait("streams") { $0["list"][0]["viewers"].int == 0 }
            }
            await publisher.close()
        }
    }

    private static func twoTracks(firstIsPlain: Bool) async throws -> [FLVTag] {
        var tags = try await FLVTag.media(of: Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 4))
        if !firstIsPlain { tags = tags.map { Self.track(0, $0) } }
        let second = try await FLVTag.media(of: Fixture.flv(video: Fixture.baseline, audio: nil, seconds: 4, size: "160x120"))
        for tag in second {
            let index = tags.firstIndex { $0.timestamp > tag.timestamp } ?? tags.endIndex
            tags.insert(Self.track(1, tag), at: index)
        }
        return tags
    }

    /// The tag as a track in a Multitrack message: OneTrack, avc1. Sound stays as it is.
    private static func track(_ id: UInt8, _ tag: FLVTag) -> FLVTag {
        guard tag.kind == .video else { return tag }
        let packet = tag.payload[1]
        // A header has no composition time; a picture has.
        let body = packet == 0 ? tag.payload.dropFirst(5) : tag.payload.dropFirst(2)
        let head: [UInt8] = [0x80 | tag.payload[0] & 0x70 | 6, packet]
        return .video(tag.timestamp, head + Array("avc1".utf8) + [id] + body)
    }

    /// A device that comes back with the same headers: FFmpeg's copy into Matroska has every picture, of before and after.
    @Test func aCopyIsNotDamagedByAReturn() async throws {
        let clip = try await FLVTag.media(of: Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 4))
        let pictures = clip.count { $0.kind == .video && !$0.isSequenceHeader }
        let bytes = clip.reduce(0) { $0 + $1.payload.count }
        try await Fixture.withDirectory { directory in
            let file = directory.appendingPathComponent("copy.mkv").path
            try await TestServer.run({ $0.rooms.policy.cleanStopMs = 500 }) { server in
                try await ClientProcess.during(["ffmpeg", "-v", "error", "-i", "\(server.rtmp)/live/cam1", "-c", "copy", file]) { copy in
                    try await server.wait("streams") { $0["list"][0]["viewers"].int == 1 }
                    let first = try await TagClient.publish(to: server, "live/cam1")
                    try await first.send(clip)
                    try await server.wait("streams") { $0["list"][0]["bytesIn"].int == bytes }
                    await first.close()
                    try await server.wait("streams") { $0["list"][0]["state"].string == "interrupted" }
                    let second = try await TagClient.publish(to: server, "live/cam1")
                    try await second.send(clip)
                    try await second.session { session, streamID in session.unpublish("cam1", on: streamID) }
                    let copied = try await copy.outcome()
                    #expect(copied.status == 0, "\(copied.errors)")
                    await second.close()
                }
            }
            let decoded = try await ClientProcess.run(["ffmpeg", "-v", "error", "-i", file, "-map", "0:v", "-f", "framehash", "-"])
            #expect(decoded.status == 0 && decoded.errors.isEmpty, "\(decoded.errors)")
            #expect(decoded.text.split(separator: "\n").count { !$0.hasPrefix("#") } == 2 * pictures)
        }
    }
}
