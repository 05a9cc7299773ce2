import Media
import NIOCore
import Testing

@testable import Links
@testable import Streaming

/// Frames that wait for a room's answer are bounded, whatever another server sends.
@Suite struct EarlyFramesTests {
    private static func frame(_ kind: Frame.Kind, _ head: [UInt8], bytes: Int, at timestamp: Int64) throws -> Frame {
        try Frame(kind: kind, timestamp: timestamp, payload: ByteBuffer(bytes: head + [UInt8](repeating: 1, count: bytes)))
    }

    @Test(arguments: [Frame.Kind.data, .audio, .video]) func floodsAreForgotten(_ kind: Frame.Kind) throws {
        // AMF0 "x"; AAC; AVC, inter.
        let head: [UInt8] = kind == .data ? [2, 0, 1, 0x78] : kind == .audio ? [0xAF, 1] : [0x27, 1, 0, 0, 0]
        var early = EarlyFrames()
        for index in 0..<10_000 {
            early.append(try Self.frame(kind, head, bytes: 4_000, at: Int64(index)))
            try #require(early.frames.count <= EarlyFrames.mostFrames + 1 && early.bytes <= EarlyFrames.mostBytes + 4_100)
        }
        #expect(early.bytes == early.frames.reduce(0) { $0 + $1.payload.readableBytes })
    }

    @Test func theNewestHeadersStay() throws {
        var early = EarlyFrames()
        for index in 0..<3 {
            early.append(try Self.frame(.audio, [0xAF, 0, 0x12], bytes: 1, at: Int64(index)))
            early.append(try Self.frame(.video, [0x17, 0, 0, 0, 0], bytes: 10, at: Int64(index)))
        }
        for index in 0..<EarlyFrames.mostFrames { early.append(try Self.frame(.audio, [0xAF, 1], bytes: 10, at: Int64(10 + index))) }
        #expect(early.frames.prefix(2).map(\.timestamp) == [2, 2] && early.frames.prefix(2).allSatisfy(\.isSequenceHeader))
        #expect(early.frames.count < 10)
    }
}
