import FFmpeg
import Foundation
import Media
import NIOCore
import Relay
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

    @Test func bFramesAreAProblem() async throws {
        let maker = PacketMaker()
        let tags = try await FLVTag.media(of: Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 2))
        _ = try Self.make(tags, maker)
        #expect(maker.problem == .reordered && maker.problem?.description.contains("-bf 0") == true)
        #expect(maker.receive([]).isEmpty)
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
