import Foundation
import Media
import NIOCore
import RTMP
import TestSupport
import Testing

@testable import LinkTransport

/// Servers that send what librtmp could not survive. The link ends and names the fault, and the process goes on.
@Suite struct HostileServerTests {
    struct Attack: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Sent after the answer to `play`.
        let bytes: [UInt8]
        let words: String
    }

    /// A fmt 0 header of a message on message stream 1.
    private static func header(_ chunkStream: UInt8, type: UInt8, length: Int, timestamp: Int = 0) -> [UInt8] {
        func three(_ value: Int) -> [UInt8] { [UInt8(value >> 16 & 0xFF), UInt8(value >> 8 & 0xFF), UInt8(value & 0xFF)] }
        var bytes = [chunkStream]
        bytes += three(timestamp)
        bytes += three(length)
        return bytes + [type, 1, 0, 0, 0]
    }

    /// A message of 200 bytes whose second chunk is replaced by another header.
    private static func interrupted(by header: [UInt8]) -> [UInt8] {
        var bytes = Self.header(6, type: 9, length: 200)
        bytes += [UInt8](repeating: 0x17, count: 128)
        bytes += header
        return bytes + [UInt8](repeating: 0x41, count: 4_000)
    }

    private static func unfinished(_ chunkStreams: Range<UInt8>, length: Int) -> [UInt8] {
        chunkStreams.flatMap { Self.header($0, type: 9, length: length) + [UInt8](repeating: 0, count: 128) }
    }

    private static var deepCommand: [UInt8] {
        var body: [UInt8] = [2, 0, 8] + Array("onStatus".utf8)
        body += [0, 0, 0, 0, 0, 0, 0, 0, 0, 5]
        for _ in 0..<60 { body += [3, 0, 1, 0x61] }
        return Self.header(3, type: 20, length: body.count) + Self.chunked(body, 3)
    }

    static let attacks = [
        Attack(
            testDescription: "announces more in the middle of a message",
            bytes: Self.interrupted(by: Self.header(6, type: 9, length: 100_000)), words: "inside an unfinished one"),
        Attack(
            testDescription: "the same by a fmt 1 header",
            bytes: Self.interrupted(by: [0x46, 0, 0, 0, 1, 0, 0, 9]), words: "inside an unfinished one"),
        Attack(testDescription: "16 MiB of video", bytes: Self.header(6, type: 9, length: 0xFF_FFFF), words: "the limit is 15728704"),
        Attack(testDescription: "2 MiB of audio", bytes: Self.header(4, type: 8, length: 2 << 20), words: "the limit is 1048640"),
        Attack(testDescription: "1 MiB of data", bytes: Self.header(4, type: 18, length: 1 << 20), words: "the limit is 65536"),
        Attack(testDescription: "1 MiB of a command", bytes: Self.header(4, type: 20, length: 1 << 20), words: "the limit is 65536"),
        Attack(testDescription: "fmt 3 on a chunk stream without header", bytes: [0xC9, 1, 2, 3], words: "expected fmt 0"),
        Attack(testDescription: "chunk size 0", bytes: Self.header(2, type: 1, length: 4) + [0, 0, 0, 0], words: "set chunk size 0"),
        Attack(
            testDescription: "chunk size below zero", bytes: Self.header(2, type: 1, length: 4) + [0xFF, 0xFF, 0xFF, 0xFF],
            words: "set chunk size 4294967295"),
        Attack(testDescription: "empty window size", bytes: Self.header(2, type: 5, length: 0), words: "too few for its layout"),
        Attack(testDescription: "empty bandwidth", bytes: Self.header(2, type: 6, length: 1) + [0], words: "too few for its layout"),
        Attack(
            testDescription: "short user control", bytes: Self.header(2, type: 4, length: 3) + [0, 6, 0], words: "too few for its layout"),
        Attack(
            testDescription: "aggregate with lengths that lie",
            bytes: Self.header(6, type: 22, length: 11) + [9, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
            words: "aggregate"),
        Attack(
            testDescription: "unfinished messages on many chunk streams",
            bytes: Self.unfinished(3..<40, length: 200),
            words: "unfinished messages"),
        Attack(
            testDescription: "unfinished messages that announce much",
            bytes: Self.unfinished(3..<8, length: 8 << 20),
            words: "unfinished messages"),
        Attack(
            testDescription: "an object in an object in an object",
            bytes: Self.deepCommand, words: "unreadable command"),
    ]

    private static func chunked(_ body: [UInt8], _ chunkStream: UInt8) -> [UInt8] {
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: body.count, by: 128) {
            if start > 0 { bytes.append(0xC0 | chunkStream) }
            bytes += body[start..<min(start + 128, body.count)]
        }
        return bytes
    }

    @Test(arguments: attacks) func isNamed(_ attack: Attack) async throws {
        var script = ScriptedRTMP.Script()
        script.raw = { $0.name == "play" ? attack.bytes : [] }
        try await ScriptedRTMP.run(script) { server in
            let error = try await RefusalTests.failure(server.url)
            guard case .protocolViolation(let words) = error else {
                Issue.record("\(error)")
                return
            }
            #expect(words.contains(attack.words), "\(words)")
        }
    }

    /// Random bytes after play, from a fixed seed. The link ends, with any error.
    @Test func chanceBytes() async throws {
        for seed in 1...60 as ClosedRange<UInt64> {
            var script = ScriptedRTMP.Script()
            script.raw = { command in
                guard command.name == "play" else { return [] }
                var state = seed &* 0x9E37_79B9_7F4A_7C15
                let bytes = (0..<3_000).map { _ -> UInt8 in
                    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                    return UInt8(truncatingIfNeeded: state >> 33)
                }
                // A plausible header, so that the random bytes get past the first byte.
                return Self.header(6, type: [8, 9, 18, 20, 22, 4][Int(seed % 6)], length: Int(seed) * 37) + bytes
            }
            script.closesAfter = ["play"]
            try await ScriptedRTMP.run(script) { server in _ = try await RefusalTests.failure(server.url) }
        }
    }

    /// Broken messages within a sound chunk stream are dropped, and the stream goes on.
    @Test func brokenMessagesAreLeftOut() async throws {
        var script = ScriptedRTMP.Script()
        script.answer = { command, _ in
            guard command.name == "play" else { return nil }
            func message(_ type: MessageType, _ timestamp: UInt32, _ bytes: [UInt8]) -> Message {
                Message(type: type, streamID: 1, timestamp: timestamp, payload: ByteBuffer(bytes: bytes))
            }
            return [
                ScriptedRTMP.status(StatusCode.playStart), message(.dataAMF0, 0, [2, 0, 200, 1]), message(.audio, 0, [0xAF]),
                message(.video, 0, [0x17]), message(.audio, 5, [0xAF, 1, 9, 9]), message(.audio, 6, []),
            ]
        }
        try await ScriptedRTMP.run(script) { server in
            try await pulling(server.url) { task, record in
                try await eventually("the sound frames") { record.frames.count == 2 }
                #expect(task.status.malformed == 3)
                #expect(record.frames.map(\.timestamp) == [5, 6])
                #expect(task.state == .running)
            }
        }
    }

    /// An aggregate is split into its messages. The first one has the aggregate's time.
    @Test func aggregateIsOpened() async throws {
        func part(_ type: UInt8, _ timestamp: UInt8, _ body: [UInt8]) -> [UInt8] {
            [type, 0, 0, UInt8(body.count), 0, 0, timestamp, 0, 0, 0, 0] + body + [0, 0, 0, UInt8(body.count + 11)]
        }
        let body = part(8, 10, [0xAF, 1, 7]) + part(9, 20, [0x27, 1, 0, 0, 0, 8]) + part(20, 25, [2, 0, 0]) + part(8, 30, [0xAF, 1, 9])
        var script = ScriptedRTMP.Script()
        script.answer = { command, _ in
            guard command.name == "play" else { return nil }
            return [
                ScriptedRTMP.status(StatusCode.playStart),
                Message(type: .aggregate, streamID: 1, timestamp: 1_000, payload: ByteBuffer(bytes: body)),
            ]
        }
        try await ScriptedRTMP.run(script) { server in
            try await pulling(server.url) { _, record in
                try await eventually("the frames") { record.frames.count == 3 }
                #expect(record.frames.map(\.timestamp) == [1_000, 1_010, 1_020])
                #expect(record.frames.map(\.kind) == [.audio, .video, .audio])
            }
        }
    }

    /// 32-bit timestamps that wrap, extended ones, large chunks and messages of the largest size.
    @Test(arguments: [128, 4_096, 60_000, 0xFF_FFFF]) func largeMessagesAndLateTimes(_ chunkSize: Int) async throws {
        var script = ScriptedRTMP.Script()
        script.chunkSize = chunkSize
        let keyframe = [0x17, 1, 0, 0, 0] + [UInt8](repeating: 0x5A, count: (8 << 20) - 5)
        script.answer = { command, _ in
            guard command.name == "play" else { return nil }
            func message(_ type: MessageType, _ timestamp: UInt32, _ bytes: [UInt8]) -> Message {
                Message(type: type, streamID: 1, timestamp: timestamp, payload: ByteBuffer(bytes: bytes))
            }
            return [
                ScriptedRTMP.status(StatusCode.playStart), message(.audio, 0xFFFF_FF00, [0xAF, 1, 1]),
                message(.video, 0xFFFF_FFF0, keyframe),
                message(.audio, 0x10, [0xAF, 1, 2]),
            ]
        }
        try await ScriptedRTMP.run(script) { server in
            try await pulling(server.url) { _, record in
                // There may be more: when a busy machine looks late, the link has reconnected and got the same frames again.
                try await eventually("the frames") { record.frames.count >= 3 }
                #expect(record.frames.prefix(3).map(\.timestamp) == [0xFFFF_FF00, 0xFFFF_FFF0, 0x1_0000_0010])
                #expect(record.frames[1].payload == ByteBuffer(bytes: keyframe))
            }
        }
    }

    /// Servers send an extended timestamp once per message, or repeat it in every chunk.
    @Test(arguments: [true, false]) func extendedTimestamps(_ repeats: Bool) async throws {
        var script = ScriptedRTMP.Script()
        let time: [UInt8] = [1, 2, 3, 4]
        func message(_ mark: UInt8) -> [UInt8] {
            var bytes = Self.header(6, type: 9, length: 300, timestamp: 0xFF_FFFF) + time + [0x27, 1, 0, 0, 0]
            bytes += [UInt8](repeating: mark, count: 123) + [0xC6] + (repeats ? time : [])
            bytes += [UInt8](repeating: mark, count: 128) + [0xC6] + (repeats ? time : [])
            return bytes + [UInt8](repeating: mark, count: 44)
        }
        let bytes = message(7) + message(8)
        script.raw = { $0.name == "play" ? bytes : [] }
        try await ScriptedRTMP.run(script) { server in
            try await pulling(server.url) { task, record in
                try await eventually("the frames") { record.frames.count == 2 }
                #expect(record.frames.map(\.timestamp) == [0x0102_0304, 0x0102_0304])
                #expect(
                    record.frames.map { Array($0.payload.readableBytesView.dropFirst(5)) }
                        == [7, 8].map { [UInt8](repeating: $0, count: 295) })
                #expect(task.status.malformed == 0)
            }
        }
    }
}
