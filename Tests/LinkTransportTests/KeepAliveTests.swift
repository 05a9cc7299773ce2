import Foundation
import Media
import NIOCore
import TestSupport
import Testing

@testable import LinkTransport

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

    /// The header and an empty frame, at the newest time, after each interval without a frame.
    @Test func pictures() throws {
        for (header, empty) in [
            ([0x17, 0, 0, 0, 0, 1], [0x27, 1, 0, 0, 0]), ([0x90] + Array("hvc1".utf8) + [1], [0xA3] + Array("hvc1".utf8)),
        ] as [([UInt8], [UInt8])] {
            var keepAlive = KeepAlive(intervalMs: 1_000, nowMs: 0)
            keepAlive.sent(try Self.frame(.video, 0, header), at: 0, nowMs: 0)
            keepAlive.sent(try Self.sound(720), at: 720, nowMs: 40)
            keepAlive.sent(try Self.picture(700), at: 700, nowMs: 50)
            let early = keepAlive.due(nowMs: 1_049)
            #expect(early.isEmpty && keepAlive.dueMs == 1_050)
            for nowMs in [Int64(1_050), 2_050] {
                let messages = keepAlive.due(nowMs: nowMs)
                #expect(messages.map(Self.bytes) == [header, empty] && messages.allSatisfy { $0.kind == .video })
                #expect(keepAlive.lastMs == 720 && keepAlive.dueMs == nowMs + 1_000)
            }
            // The empty frame is no picture for this server either.
            #expect(try Self.frame(.video, 0, empty).tag.flags.isDisjoint(with: [.coded, .keyframe, .sequenceHeader]))
        }
    }

    /// Of sound alone an empty message; nothing is made of nothing.
    @Test func soundAndNothing() throws {
        var sound = KeepAlive(intervalMs: 1_000, nowMs: 0)
        sound.sent(try Self.aacHeader(), at: 0, nowMs: 0)
        let messages = sound.due(nowMs: 1_000)
        #expect(messages == [KeepAlive.Message(kind: .audio, payload: ByteBuffer())])
        var idle = KeepAlive(intervalMs: 1_000, nowMs: 0)
        let nothing = idle.due(nowMs: 1_000)
        #expect(nothing.isEmpty && idle.dueMs == 2_000)
        var off = KeepAlive(intervalMs: nil, nowMs: 0)
        off.sent(try Self.sound(0), at: 0, nowMs: 0)
        let never = off.due(nowMs: .max)
        #expect(never.isEmpty && off.dueMs == .max)
    }

    /// nginx drops a publisher after three idle seconds. A push whose stream is silent for longer is still there when the stream goes on.
    @Test(arguments: [true, false]) func nginxDoesNotDropIt(hasVideo: Bool) async throws {
        let video = hasVideo ? Fixture.baseline : nil
        let tags = try FLVFile.read(try await Fixture.flv(video: video, audio: Fixture.aac, seconds: 2))
        try await Nginx.run { nginx in
            let url = "\(nginx.url)/idle/cam1"
            var options = LinkOptions.forTests
            options.keepAliveMs = 1_000
            try await pushing(url, options) { task, _ in
                try await eventually("consent") { task.state == .running }
                try await pulling(url) { pull, pulled in
                    try await offer(tags, to: task)
                    try await eventually("the pushed frames") { pulled.frames.contains { $0.tag.flags.contains(.coded) } }
                    // The other server's idle time is what is tried.
                    try await Task.sleep(for: .seconds(7))
                    #expect(task.state == .running && task.status.connections == 1, "\(task.status)")
                    let before = pulled.frames.count { $0.tag.flags.contains(.coded) }
                    let later = tags.filter { !$0.isSequenceHeader && $0.kind != .data }.map { tag -> FLVTag in
                        var tag = tag
                        tag.timestamp += 9_500
                        return tag
                    }
                    try await offer(later, to: task)
                    try await eventually("frames again") { pulled.frames.count { $0.tag.flags.contains(.coded) } > before }
                    #expect(task.status.connections == 1 && pull.status.connections == 1)
                    for kind in [Frame.Kind.video, .audio] {
                        let times = pulled.frames.filter { $0.kind == kind && $0.tag.flags.contains(.coded) }.map(\.timestamp)
                        #expect(zip(times, times.dropFirst()).allSatisfy { $0 <= $1 }, "\(kind) \(times)")
                    }
                }
            }
        }
    }
}
