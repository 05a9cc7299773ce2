import Foundation
import Media
import NIOCore
import TestSupport
import Testing

@testable import Upstream

/// What a push sends while its stream is silent.
@Suite struct KeepAliveTests {
    private static func frame(_ kind: Frame.Kind, _ ms: Int64, _ bytes: [UInt8]) throws -> Frame {
        try Frame(kind: kind, timestamp: ms, payload: ByteBuffer(bytes: bytes))
    }
    /// AAC-LC, 48 kHz, mono.
    private static func aacHeader() throws -> Frame { try self.frame(.audio, 0, [0xAF, 0, 0x11, 0x88]) }
    private static func sound(_ ms: Int64) throws -> Frame { try self.frame(.audio, ms, [0xAF, 1, 1, 2]) }
    private static func picture(_ ms: Int64) throws -> Frame { try self.frame(.video, ms, [0x17, 1, 0, 0, 0, 9]) }

    private static func bytes(_ message: KeepAlive.Message) -> [UInt8] { Array(message.payload.readableBytesView) }

    /// Sound goes on in silence, frame after frame, up to the present.
    @Test func silenceOfTheTimeThatHasPassed() throws {
        var keepAlive = KeepAlive(intervalMs: 2_000, nowMs: 100)
        keepAlive.sent(try Self.aacHeader(), at: 0, nowMs: 100)
        keepAlive.sent(try Self.picture(480), at: 480, nowMs: 500)
        keepAlive.sent(try Self.sound(490), at: 490, nowMs: 510)
        let early = keepAlive.due(nowMs: 2_509)
        #expect(early.isEmpty && keepAlive.dueMs == 2_510)
        var messages = keepAlive.due(nowMs: 2_510)
        messages += keepAlive.due(nowMs: 4_600)
        #expect(messages.allSatisfy { $0.kind == .audio && Self.bytes($0) == [0xAF, 1, 1, 0x18, 0x20, 7] })
        let times: [Int64] = (1...191).map { 490 + $0 * 1_024_000 / 48_000 }
        #expect(messages.map(\.ms) == times)
        #expect(messages.last.map { (4_550...4_580).contains($0.ms) } ?? false)
        // The stream goes on, and is silent again.
        keepAlive.sent(try Self.sound(5_000), at: 5_000, nowMs: 5_020)
        let (before, after) = (keepAlive.due(nowMs: 7_000), keepAlive.due(nowMs: 7_020))
        #expect(before.isEmpty && after.first?.ms == 5_021)
    }

    @Test func stereoAndEnhancedHeaders() throws {
        for (header, silence) in [
            ([0xAF, 0, 0x12, 0x10], [0xAF, 1, 0x21, 0x10, 4, 0x60, 0x8C, 0x1C]),
            ([0x90] + Array("mp4a".utf8) + [0x12, 0x10], [0x91] + Array("mp4a".utf8) + [0x21, 0x10, 4, 0x60, 0x8C, 0x1C]),
        ] as [([UInt8], [UInt8])] {
            var keepAlive = KeepAlive(intervalMs: 1_000, nowMs: 0)
            keepAlive.sent(try Self.frame(.audio, 0, header), at: 0, nowMs: 0)
            let messages = keepAlive.due(nowMs: 1_000)
            #expect(messages.first.map(Self.bytes) == silence)
        }
    }

    /// Without sound that can be replaced by silence: the header and an empty frame; of sound alone, an empty message.
    @Test func picturesAndOtherSound() throws {
        for (header, empty) in [
            ([0x17, 0, 0, 0, 0, 1], [0x27, 1, 0, 0, 0]), ([0x90] + Array("hvc1".utf8) + [1], [0xA3] + Array("hvc1".utf8)),
        ] as [([UInt8], [UInt8])] {
            var keepAlive = KeepAlive(intervalMs: 1_000, nowMs: 0)
            keepAlive.sent(try Self.frame(.video, 0, header), at: 0, nowMs: 0)
            keepAlive.sent(try Self.picture(700), at: 700, nowMs: 50)
            let messages = keepAlive.due(nowMs: 1_050)
            #expect(messages.map(\.ms) == [1_700, 1_700] && messages.map(Self.bytes) == [header, empty])
            // The empty frame is no picture for this server either.
            #expect(try Self.frame(.video, 0, empty).tag.flags.isDisjoint(with: [.coded, .keyframe, .sequenceHeader]))
        }
        var speech = KeepAlive(intervalMs: 1_000, nowMs: 0)
        speech.sent(try Self.frame(.audio, 0, [0xB2, 1, 2]), at: 0, nowMs: 0)
        let messages = speech.due(nowMs: 1_000)
        #expect(messages == [KeepAlive.Message(kind: .audio, ms: 1_000, payload: ByteBuffer())])
    }

    /// A microphone that is off is not turned on; a link that slept does not catch up; nothing is made of nothing.
    @Test func bounds() throws {
        var camera = KeepAlive(intervalMs: 1_000, nowMs: 0)
        camera.sent(try Self.aacHeader(), at: 0, nowMs: 0)
        camera.sent(try Self.frame(.video, 0, [0x17, 0, 0, 0, 0, 1]), at: 0, nowMs: 0)
        camera.sent(try Self.sound(0), at: 0, nowMs: 0)
        camera.sent(try Self.picture(11_000), at: 11_000, nowMs: 0)
        let shown = camera.due(nowMs: 1_000)
        #expect(shown.map(\.kind) == [.video, .video])
        var sleeper = KeepAlive(intervalMs: 1_000, nowMs: 0)
        sleeper.sent(try Self.aacHeader(), at: 0, nowMs: 0)
        sleeper.sent(try Self.sound(0), at: 0, nowMs: 0)
        let late = sleeper.due(nowMs: 3_600_000)
        #expect(late.count < 300 && late.first?.ms == 3_595_000)
        var idle = KeepAlive(intervalMs: 1_000, nowMs: 0)
        let nothing = idle.due(nowMs: 1_000)
        #expect(nothing.isEmpty && idle.dueMs == 2_000)
        var off = KeepAlive(intervalMs: nil, nowMs: 0)
        off.sent(try Self.sound(0), at: 0, nowMs: 0)
        let never = off.due(nowMs: .max)
        #expect(never.isEmpty && off.dueMs == .max)
    }

    /// Frames whose clock stood still go on behind the keep-alive, both kinds by the same difference.
    @Test func timesGoOnBehindIt() throws {
        var clock = PushClock(fromZero: true)
        #expect(clock.time(of: try Self.picture(50_000)) == 0)
        clock.keptAlive(to: 4_000)
        #expect(clock.time(of: try Self.aacHeader()) == 4_000)
        #expect(clock.time(of: try Self.picture(50_040)) == 4_000)
        #expect(clock.time(of: try Self.sound(50_030)) == 3_990)
        #expect(clock.time(of: try Self.picture(50_080)) == 4_040)
        clock.keptAlive(to: 6_000)
        #expect(clock.time(of: try Self.picture(52_100)) == 6_060, "further on than the keep-alive")
        var young = PushClock(fromZero: true)
        young.keptAlive(to: 2_000)
        #expect(young.time(of: try Self.picture(50_000)) == 2_000)
        #expect(young.time(of: try Self.sound(50_010)) == 2_010)
    }

    /// nginx drops a publisher after three idle seconds. A push whose stream is silent for longer is still there when the stream goes on.
    @Test(arguments: [Fixture.aac, nil]) func nginxDoesNotDropIt(audio: [String]?) async throws {
        let tags = try FLVFile.read(try await Fixture.flv(video: Fixture.baseline, audio: audio, seconds: 2))
        try await Nginx.run { nginx in
            let url = "\(nginx.url)/idle/cam1"
            var options = UpstreamOptions.forTests
            options.keepAliveMs = 1_000
            try await pushing(url, options) { task, _ in
                try await eventually("consent") { task.state == .running }
                try await pulling(url) { pull, pulled in
                    try await offer(tags, to: task)
                    try await eventually("the pushed pictures") { pulled.frames.contains { $0.isKeyframe } }
                    // The other server's idle time is what is tried.
                    try await Task.sleep(for: .seconds(7))
                    #expect(task.state == .running && task.status.connections == 1, "\(task.status)")
                    let before = pulled.frames.count { $0.isKeyframe }
                    let later = tags.filter { !$0.isSequenceHeader && $0.kind != .data }.map { tag -> FLVTag in
                        var tag = tag
                        tag.timestamp += 9_500
                        return tag
                    }
                    try await offer(later, to: task)
                    try await eventually("pictures again") { pulled.frames.count { $0.isKeyframe } > before }
                    #expect(task.status.connections == 1 && pull.status.connections == 1)
                    for kind in [Frame.Kind.video, .audio] {
                        let times = pulled.frames.filter { $0.kind == kind && $0.tag.flags.contains(.coded) }.map(\.timestamp)
                        #expect(zip(times, times.dropFirst()).allSatisfy { $0 <= $1 }, "\(kind) \(times)")
                    }
                    guard audio != nil else { return }
                    // The silence is sound for players, without a hole.
                    let sounds = pulled.frames.filter { $0.kind == .audio && $0.tag.flags.contains(.coded) }.map(\.timestamp)
                    let longest = zip(sounds, sounds.dropFirst()).map { $1 - $0 }.max() ?? 0
                    // The device's timestamps go on a little further than the time that has passed.
                    #expect(longest < 2_500 && sounds.count > 250, "\(longest) of \(sounds.count)")
                }
            }
        }
    }
}
