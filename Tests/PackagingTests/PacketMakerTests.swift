import FFmpeg
import Foundation
import Media
import NIOCore
import Relay
import ServerConfiguration
import TestSupport
import Testing
import WebRTC

@testable import Packaging

/// A stream's frames as RTP bundles.
@Suite struct PacketMakerTests {
    private struct Made: Equatable {
        let kind: PacketBundle.Kind
        let time: Int64
        let isKeyframe: Bool
        let bytes: Int
        let codec: VideoProfile.Codec
    }

    private static func made(_ frames: [Frame]) -> [Made] {
        frames.compactMap { frame in
            frame.payload.withUnsafeReadableBytes { bytes in
                PacketBundle(bytes).map { bundle in
                    var size = 0
                    bundle.forEach { payload, _ in size += payload.count }
                    return Made(
                        kind: bundle.kind, time: bundle.time, isKeyframe: bundle.isKeyframe, bytes: size, codec: bundle.profile.codec)
                }
            }
        }
    }

    private static func make(_ tags: [FLVTag], _ maker: PacketMaker = PacketMaker()) throws -> [Made] {
        Self.made(maker.receive(try PieceList.frames(tags)))
    }

    /// AAC becomes Opus in runs of 20 ms without a hole, however the device rounds its times; pictures have theirs.
    @Test func picturesAndSound() async throws {
        let tags = try await FLVTag.media(of: Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 4))
        let maker = PacketMaker()
        let made = try Self.make(tags, maker)
        #expect(maker.problem == nil && maker.soundProblem == nil)
        let video = made.filter { $0.kind == .video }
        let coded = tags.filter { $0.kind == .video && !$0.isSequenceHeader }
        #expect(video.count >= coded.count - 1 && video.first?.isKeyframe == true && video.filter(\.isKeyframe).count == 4)
        #expect(zip(video.dropFirst(), video).allSatisfy { $0.time - $1.time == 3_600 }, "25 a second")
        let sound = made.filter { $0.kind == .opus }
        #expect(sound.count > 190 && zip(sound.dropFirst(), sound).allSatisfy { $0.time - $1.time == 960 })
        // In step: both begin within 100 ms of each other.
        let (first, heard) = (try #require(video.first?.time) / 90, try #require(sound.first?.time) / 48)
        #expect(abs(first - heard) < 100, "\(first) and \(heard) ms")
    }

    struct Coding: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let arguments: [String]
        let profile: VideoProfile
    }

    private static let codings = [
        Coding(testDescription: "HEVC", arguments: hevc("bframes=0"), profile: .h265(1)),
        Coding(
            testDescription: "HEVC of 10 bits", arguments: hevc("bframes=0") + ["-pix_fmt", "yuv420p10le"], profile: .h265(2)),
        Coding(
            testDescription: "VP9", arguments: ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-g", "25"],
            profile: .vp9(0)),
        Coding(testDescription: "AV1", arguments: ["-c:v", "libsvtav1", "-preset", "12", "-g", "25"], profile: .av1(0)),
    ]

    private static func hevc(_ parameters: String) -> [String] {
        [
            "-c:v", "libx265", "-preset", "ultrafast", "-x265-params",
            "log-level=none:pools=1:keyint=25:min-keyint=25:scenecut=0:\(parameters)",
        ]
    }

    /// Each picture of the newer codecs goes out, whole, at its time.
    @Test(arguments: codings) func otherCodecs(_ coding: Coding) async throws {
        let ffmpeg = try await NewFFmpeg.path()
        let tags = try await FLVTag.media(of: Fixture.flv(video: coding.arguments, audio: nil, seconds: 3, ffmpeg: ffmpeg))
        let maker = PacketMaker()
        let made = try tags.flatMap { try Self.make([$0], maker) }
        #expect(maker.problem == nil && maker.treatment == .passed && maker.video == coding.profile)
        let frames = try PieceList.frames(tags).compactMap { item -> Frame? in
            guard case .frame(let frame) = item, frame.tag.flags.contains(.coded) else { return nil }
            return frame
        }
        #expect(made.map(\.time) == frames.map { 90 * $0.presentationTimestamp } && made.count == 75)
        #expect(made.map(\.isKeyframe) == frames.map(\.isKeyframe) && made.filter(\.isKeyframe).count >= 3)
        #expect(made.allSatisfy { $0.codec == coding.profile.codec })
        // But for lengths, delimiters, sizes.
        let sent = made.map(\.bytes).reduce(0, +)
        let stored = frames.map(\.body.readableBytes).reduce(0, +)
        #expect((stored * 9 / 10...stored * 12 / 10 + 2_000).contains(sent), "\(sent) of \(stored) bytes")
    }

    /// HEVC's B-frames are known by their times, and what others are made from by their types.
    @Test func bFramesOfHEVC() async throws {
        let ffmpeg = try await NewFFmpeg.path()
        func tags(_ parameters: String) async throws -> [FLVTag] {
            try await FLVTag.media(of: Fixture.flv(video: Self.hevc(parameters), audio: nil, seconds: 3, ffmpeg: ffmpeg))
        }
        let flat = try await tags("bframes=2:b-adapt=0:b-pyramid=0:open-gop=0")
        let dropping = PacketMaker(.drop, EncoderPlaces(0))
        let left = try flat.flatMap { try Self.make([$0], dropping) }
        #expect(dropping.treatment == .dropped && dropping.problem == nil && dropping.video == .h265(1))
        #expect((20...40).contains(left.count) && zip(left.dropFirst(), left).allSatisfy { $0.time > $1.time }, "\(left.count)")
        let pyramid = try await tags("bframes=3:b-adapt=0:b-pyramid=1")
        let refusing = PacketMaker(.drop, EncoderPlaces(0))
        _ = try pyramid.flatMap { try Self.make([$0], refusing) }
        #expect(refusing.treatment == .refused && refusing.problem == .reordered)
        // Encoded anew they are H.264.
        let encoding = PacketMaker(.auto, EncoderPlaces(1))
        let encoded = try pyramid.flatMap { try Self.make([$0], encoding) }
        #expect(encoding.treatment == .encoded && encoding.video?.codec == .h264 && encoded.allSatisfy { $0.codec == .h264 })
        #expect(encoded.count >= 70 && zip(encoded.dropFirst(), encoded).allSatisfy { $0.time - $1.time == 3_600 }, "\(encoded.count)")
    }

    /// B-frames from which no picture is made, and a pyramid of them.
    private static let flat = ["-c:v", "libx264", "-profile:v", "main", "-bf", "2", "-g", "25", "-x264-params", "b-pyramid=none"]
    private static let pyramid = [
        "-c:v", "libx264", "-preset", "medium", "-bf", "3", "-g", "25", "-x264-params", "b-pyramid=normal:b-adapt=0",
    ]

    private static func bFrames(
        _ video: [String], _ policy: ServerConfig.WebRTC.BFrames, encoders: Int = 1
    ) async throws -> (maker: PacketMaker, made: [Made], tags: [FLVTag]) {
        let maker = PacketMaker(policy, EncoderPlaces(encoders))
        let tags = try await FLVTag.media(of: Fixture.flv(video: video, audio: Fixture.aac, seconds: 3))
        // One by one, as they come from a device.
        return (maker, try tags.flatMap { try Self.make([$0], maker) }, tags)
    }

    @Test(arguments: [ServerConfig.WebRTC.BFrames.refuse, .drop, .encode, .auto]) func bFramesThatMayNotBeChanged(
        _ policy: ServerConfig.WebRTC.BFrames
    ) async throws {
        let (maker, made, _) = try await Self.bFrames(Self.pyramid, policy, encoders: 0)
        #expect(maker.treatment == .refused && made.filter { $0.kind == .video }.isEmpty)
        #expect(maker.problem == (policy == .refuse || policy == .drop ? .reordered : .noEncoder))
        #expect(maker.problem?.description.contains("-bf 0") == true && maker.receive([]).isEmpty)
    }

    /// Those that no other is made from may be left out; what stays is in order.
    @Test(arguments: [ServerConfig.WebRTC.BFrames.drop, .auto]) func bFramesAreLeftOut(_ policy: ServerConfig.WebRTC.BFrames) async throws {
        let (maker, made, tags) = try await Self.bFrames(Self.flat, policy, encoders: 0)
        #expect(maker.treatment == .dropped && maker.problem == nil)
        let video = made.filter { $0.kind == .video }
        let coded = tags.filter { $0.kind == .video && !$0.isSequenceHeader }.count
        #expect(video.first?.isKeyframe == true && video.filter(\.isKeyframe).count == 3)
        #expect((coded / 4..<coded * 3 / 4).contains(video.count), "\(video.count) of \(coded)")
        #expect(zip(video.dropFirst(), video).allSatisfy { $0.time > $1.time })
    }

    @Test(arguments: [ServerConfig.WebRTC.BFrames.encode, .auto]) func bFramesAreEncodedAnew(_ policy: ServerConfig.WebRTC.BFrames)
        async throws
    {
        for video in [Self.flat, Self.pyramid] {
            let (maker, made, tags) = try await Self.bFrames(video, policy)
            #expect(maker.treatment == .encoded && maker.problem == nil)
            let pictures = made.filter { $0.kind == .video }
            let coded = tags.filter { $0.kind == .video && !$0.isSequenceHeader }.count
            #expect(pictures.first?.isKeyframe == true && pictures.filter(\.isKeyframe).count == 3 && pictures.count >= coded - 4)
            #expect(zip(pictures.dropFirst(), pictures).allSatisfy { $0.time - $1.time == 3_600 }, "25 a second, from the first")
        }
    }

    /// Of cached pictures, which come at once, the newest are encoded, beginning with a keyframe; what follows goes on from there.
    @Test func oldPicturesAreNotEncoded() async throws {
        let maker = PacketMaker(.encode, EncoderPlaces(1))
        let tags = try await FLVTag.media(of: Fixture.flv(video: Self.pyramid, audio: nil, seconds: 3))
        let cached = tags.filter { $0.timestamp < 2_500 }
        let first = try Self.make(cached, maker)
        #expect((1...8).contains(first.count) && first.first?.isKeyframe == true, "\(first.count)")
        let later = try tags.filter { $0.timestamp >= 2_500 }.flatMap { try Self.make([$0], maker) }
        #expect(later.count >= 8 && later.allSatisfy { !$0.isKeyframe })
        #expect(zip((first + later).dropFirst(), first + later).allSatisfy { $0.time - $1.time == 3_600 })
    }

    /// A place among the encoders is free again once its stream is no longer there.
    @Test func encodersAreCounted() async throws {
        let places = EncoderPlaces(1)
        let tags = try await FLVTag.media(of: Fixture.flv(video: Self.pyramid, audio: nil, seconds: 1))
        var first: PacketMaker? = PacketMaker(.auto, places)
        let second = PacketMaker(.auto, places)
        _ = try Self.make(tags, try #require(first))
        _ = try Self.make(tags, second)
        #expect(first?.treatment == .encoded && second.problem == .noEncoder && places.count == 1)
        first = nil
        #expect(places.count == 0)
        let third = PacketMaker(.auto, places)
        _ = try Self.make(tags, third)
        #expect(third.treatment == .encoded)
    }

    /// Pictures begin with a keyframe, again after a publisher's return; the sets are those in force.
    @Test func aReturnBeginsWithAKeyframe() async throws {
        let tags = try await FLVTag.media(of: Fixture.flv(video: Fixture.baseline, audio: nil, seconds: 2))
        let maker = PacketMaker()
        _ = try Self.make(tags, maker)
        _ = maker.receive([.restarted])
        let middle = tags.filter { !$0.isSequenceHeader && $0.timestamp > 400 && $0.timestamp < 1_500 }
        let back = try Self.make(middle, maker)
        #expect(back.first?.isKeyframe == true && back.count < middle.count)
    }
}
