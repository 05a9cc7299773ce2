import APITestSupport
import EarshotServer
import Media
import RTMP
import RTMPTestSupport
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import ServerConfiguration

/// Enhanced RTMP tag by tag between our own clients. Nothing changes, and late joiners get every track's headers.
@Suite struct EnhancedTagTests {
    /// A composition time of 0, which CodedFrames of these codecs carry.
    private static let now: [UInt8] = [0, 0, 0]

    /// One stream with everything: headers first, then two groups of pictures.
    struct Script: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let headers: [FLVTag]
        /// The tags after the headers; `tail` starts at the last keyframe.
        let first: [FLVTag]
        let tail: [FLVTag]
    }

    private static func script(_ codec: String) -> Script {
        let coded = codec == "av01" || codec == "vp09" || codec == "vp08" ? [] : Self.now
        func picture(_ frame: EnhancedTag.Frame, _ seed: Int) -> [UInt8] {
            EnhancedTag.video(codec, EnhancedTag.codedFrames, frame, coded + EnhancedTag.body(seed))
        }
        return Script(
            testDescription: codec,
            headers: [.video(0, EnhancedTag.video(codec, EnhancedTag.sequenceStart, .key, EnhancedTag.body(1, 40)))],
            first: [.video(0, picture(.key, 2)), .video(40, picture(.inter, 3))],
            tail: [
                .video(80, picture(.key, 4)), .video(120, EnhancedTag.video(codec, EnhancedTag.codedFramesX, .inter, EnhancedTag.body(5))),
                .video(160, EnhancedTag.nanoseconds(123_456, before: picture(.inter, 6))), .video(200, picture(.inter, 7)),
            ])
    }

    /// Every audio codec by FourCC, over a picture that joiners can start at.
    private static func audioScript(_ codec: String) -> Script {
        let video = Self.script("hvc1")
        let header: [FLVTag] =
            codec == "ac-3" || codec == "ec-3" || codec == ".mp3"
            ? [] : [.audio(0, EnhancedTag.audio(codec, EnhancedTag.sequenceStart, EnhancedTag.body(20, 19)))]
        let layout = FLVTag.audio(0, EnhancedTag.audio(codec, EnhancedTag.multichannelConfig, [1, 2, 0, 0, 0, 3]))
        func sound(_ timestamp: UInt32, _ seed: Int) -> FLVTag {
            .audio(timestamp, EnhancedTag.audio(codec, EnhancedTag.codedFrames, EnhancedTag.body(seed, 90)))
        }
        let precise = FLVTag.audio(190, EnhancedTag.nanoseconds(999_999, before: sound(190, 24).payload))
        return Script(
            testDescription: codec, headers: video.headers + header + [layout], first: [sound(0, 21)] + video.first + [sound(50, 22)],
            tail: video.tail + [sound(130, 23), precise, sound(210, 25)])
    }

    private static func multitrackScript() -> Script {
        let colour = EnhancedTag.video("hvc1", EnhancedTag.metadata, .key, [2, 0, 9] + Array("colorInfo".utf8) + [3, 0, 0, 9])
        let headers: [FLVTag] = [
            .video(0, EnhancedTag.video("hvc1", EnhancedTag.sequenceStart, .key, EnhancedTag.body(1, 40))),
            .video(0, colour),
            .video(0, EnhancedTag.oneTrack(1, video: "av01", EnhancedTag.sequenceStart, .key, EnhancedTag.body(2, 16))),
            .video(
                0,
                EnhancedTag.manyTracks(
                    video: "vp09", EnhancedTag.sequenceStart, .key, [(2, EnhancedTag.body(3, 12)), (3, EnhancedTag.body(4, 14))])
            ),
            .audio(0, EnhancedTag.audio("Opus", EnhancedTag.sequenceStart, EnhancedTag.body(5, 19))),
            .audio(
                0,
                EnhancedTag.manyCodecs(
                    audio: EnhancedTag.sequenceStart, [("fLaC", 1, EnhancedTag.body(6, 42)), ("mp4a", 2, [0x12, 0x10])])),
        ]
        func pictures(_ at: UInt32, _ frame: EnhancedTag.Frame, _ seed: Int) -> [FLVTag] {
            [
                .video(at, EnhancedTag.video("hvc1", EnhancedTag.codedFrames, frame, Self.now + EnhancedTag.body(seed))),
                .video(at, EnhancedTag.oneTrack(1, video: "av01", EnhancedTag.codedFrames, .inter, EnhancedTag.body(seed + 1))),
                .video(
                    at,
                    EnhancedTag.manyTracks(
                        video: "vp09", EnhancedTag.codedFrames, .inter, [(2, EnhancedTag.body(seed + 2)), (3, EnhancedTag.body(seed + 3))])),
                .audio(
                    at,
                    EnhancedTag.manyCodecs(
                        audio: EnhancedTag.codedFrames, [("fLaC", 1, EnhancedTag.body(seed + 4)), ("mp4a", 2, EnhancedTag.body(seed + 5))])),
            ]
        }
        return Script(
            testDescription: "multitrack", headers: headers, first: pictures(0, .key, 10) + pictures(40, .inter, 20),
            tail: pictures(80, .key, 30) + pictures(120, .inter, 40))
    }

    static let scripts =
        ["hvc1", "av01", "vp08", "vp09", "vvc1", "avc1"].map(Self.script)
        + ["Opus", "fLaC", "ac-3", "ec-3", ".mp3", "mp4a"].map(Self.audioScript) + [Self.multitrackScript()]

    @Test(arguments: scripts) func tagsAreTheSameEarlyAndLate(_ script: Script) async throws {
        try await UnboundServer.run({ $0.rooms.policy.cleanStopMs = 300 }) { server in
            // A player that knows Multitrack.
            let extra = [AMF0Property(name: "capsEx", value: .number(2))]
            let early = try await TagClient.play(from: server, "live/cam1", extra: extra)
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            let sent = script.headers + script.first + script.tail
            try await publisher.send(sent)
            try await early.waitForTags(sent.count)
            Self.expectEqual(early.tags, sent)

            let late = try await TagClient.play(from: server, "live/cam1", extra: extra)
            try await late.waitForTags(script.headers.count + script.tail.count)
            let more = script.tail.map { FLVTag(kind: $0.kind, timestamp: $0.timestamp + 200, payload: $0.payload) }
            try await publisher.send(more)
            try await late.waitForTags(script.headers.count + script.tail.count + more.count)
            let headers = late.tags.prefix(script.headers.count)
            #expect(Set(headers.map(\.payload)) == Set(script.headers.map(\.payload)))
            #expect(headers.allSatisfy { $0.timestamp == script.tail[0].timestamp })
            Self.expectEqual(Array(late.tags.dropFirst(script.headers.count)), script.tail + more)
            try await early.waitForTags(sent.count + more.count)
            Self.expectEqual(early.tags, sent + more)
            for client in [publisher, early, late] { await client.close() }
        }
    }

    /// A player that does not announce Multitrack gets the default tracks alone: plain messages, or their form without Multitrack.
    @Test func playersWithoutMultitrackGetTheDefaultTracks() async throws {
        try await UnboundServer.run { server in
            let players = [
                try await TagClient.play(from: server, "live/cam1"),
                try await TagClient.play(from: server, "live/cam1", extra: [AMF0Property(name: "capsEx", value: .number(13))]),
            ]
            let all = try await TagClient.play(from: server, "live/cam1?track=all")
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            let script = Self.multitrackScript()
            let sent = script.headers + script.first + script.tail
            try await publisher.send(sent)
            // Track 0 of both kinds is plain here: what is Multitrack is not for these players.
            let expected = sent.filter { $0.payload[0] & 0x0F != ($0.kind == .video ? 6 : 5) }
            for player in players {
                try await player.waitForTags(expected.count)
                Self.expectEqual(player.tags, expected)
            }
            try await all.waitForTags(sent.count)
            Self.expectEqual(all.tags, sent)
            for client in players + [all, publisher] { await client.close() }
        }
    }

    /// `connect` is answered with capabilities in the client's terms (Enhanced RTMP v2, "Enhancing NetConnection connect Command").
    @Test func connectAnswersCapabilities() async throws {
        try await UnboundServer.run { server in
            let client = try await TagClient.publish(
                to: server, "live/cam1",
                extra: [
                    AMF0Property(name: "capsEx", value: .number(15)),
                    AMF0Property(name: "fourCcList", value: .strictArray([.string("hvc1"), .string("av01")])),
                    AMF0Property(name: "videoFourCcInfoMap", value: .object([AMF0Property(name: "*", value: .number(4))])),
                ])
            let answer = try client.current.connected.orThrow()
            let text = "\(answer)"
            #expect(text.contains("fourCcList") || text.contains("videoFourCcInfoMap"), "\(text)")
            #expect(text.contains("capsEx"), "\(text)")
            await client.close()
        }
    }

    private static func expectEqual(_ got: [FLVTag], _ expected: [FLVTag]) {
        for (index, pair) in zip(got, expected).enumerated() where pair.0 != pair.1 {
            Issue.record("tag \(index): got \(pair.0), expected \(pair.1)")
            return
        }
        #expect(got.count == expected.count)
    }
}
