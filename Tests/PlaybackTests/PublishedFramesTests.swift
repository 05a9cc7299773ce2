import Media
import NIOCore
import Testing
import WebRTC

@testable import Playback

@Suite struct PublishedFramesTests {
    /// x264's, of 320 × 180.
    private static let sequenceSet: [UInt8] = [
        0x67, 0x42, 0xC0, 0x0C, 0xDA, 0x05, 0x06, 0x7E, 0x7C, 0x04, 0x40, 0x00, 0x00, 0x03, 0x00, 0x40, 0x00, 0x00, 0x0C, 0xA3, 0xC5, 0x0A,
        0xA8,
    ]
    private static let pictureSet: [UInt8] = [0x68, 0xCE, 0x0F, 0xC8]
    private var frames = PublishedFrames()

    /// A keyframe with its sets is a header and a picture; with the same sets again a picture alone.
    @Test mutating func pictures() throws {
        let slice: [UInt8] = [0x65, 0x88, 1, 2]
        let first = try self.frames.frames(
            .picture([[9, 0xF0], Self.sequenceSet, Self.pictureSet, slice], isKeyframe: true, ms: 40))
        #expect(first.map(\.timestamp) == [40, 40] && first[0].isSequenceHeader && !first[1].isSequenceHeader && first[1].isKeyframe)
        #expect(Array(first[1].payload.readableBytesView) == [0x17, 1, 0, 0, 0, 0, 0, 0, 4] + slice)
        let again = try self.frames.frames(.picture([Self.sequenceSet, Self.pictureSet, slice], isKeyframe: true, ms: 80))
        #expect(again.count == 1)
        let delta = try self.frames.frames(.picture([[0x41, 0x9A]], isKeyframe: false, ms: 120))
        #expect(delta.count == 1 && !delta[0].isKeyframe && Array(delta[0].payload.readableBytesView.prefix(2)) == [0x27, 1])
    }

    @Test mutating func sound() throws {
        let first = try self.frames.frames(.sound([0x78, 1, 2], ms: 20))
        #expect(first.count == 2 && first[0].isSequenceHeader && first[0].tag.audioCodec == .opus)
        #expect(try self.frames.frames(.sound([0x78, 1, 2], ms: 40)).count == 1)
    }
}
