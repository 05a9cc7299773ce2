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
    }

    private static func made(_ frames: [Frame]) -> [Made] {
        frames.compactMap { frame in
            frame.payload.withUnsafeReadableBytes { bytes in
                PacketBundle(bytes).map { bundle in
                    var size = 0
                    bundle.forEach { payload, _ in size += payload.count }
                    return Made(kind: bundle.kind, time: bundle.time, isKeyframe: bundle.isKeyframe, bytes: size)
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
