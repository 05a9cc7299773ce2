import Health
import Media
import NIOCore
import Testing

@testable import Relay

/// Frames that come in a form of their own, from the publisher to viewers, joiners and the verdict.
@Suite struct FrameRepairTests {
    // libx264 164.
    private static let sps: [UInt8] = [
        0x67, 0x42, 0xC0, 0x1E, 0xDA, 0x02, 0x80, 0xBF, 0xE5, 0xC0, 0x44, 0, 0, 3, 0, 4, 0, 0, 3, 0, 0xC8, 0x3C, 0x58, 0xBA, 0x80,
    ]
    private static let pps: [UInt8] = [0x68, 0xCE, 0x0F, 0xC8]
    private static let idr: [UInt8] = [0x65, 0x88, 0x84, 0x12, 0x34]
    private static let inter: [UInt8] = [0x41, 0x9A, 0x24, 0x6C, 0x41]

    private static func picture(_ units: [[UInt8]], isFlagged: Bool, at timestamp: Int64) throws -> Frame {
        let body = units.flatMap { unit -> [UInt8] in [0, 0, 0, 1] + unit }
        return try Frame(
            kind: .video, timestamp: timestamp, payload: ByteBuffer(bytes: [isFlagged ? 0x17 : 0x27, 1, 0, 0, 0] + body))
    }

    private static func lengths(_ units: [[UInt8]]) -> [UInt8] {
        units.flatMap { unit -> [UInt8] in [0, 0, 0, UInt8(unit.count)] + unit }
    }

    /// A camera with start codes, parameter sets in its pictures instead of a header, and wrong flags.
    @Test func viewersGetTheRightForm() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let early = try await relay.join(live.stream, on: relay.other)
            let keyUnits = [Self.sps, Self.pps, Self.idr]
            try await relay.publish([try Self.picture(keyUnits, isFlagged: false, at: 0)], to: live)
            try await relay.publish([try Self.picture([Self.inter], isFlagged: true, at: 40)], to: live)
            let late = try await relay.join(live.stream, on: relay.home)
            for sink in [early, late] {
                let got = try await relay.received(sink)
                #expect(got.count == 3)
                let header = try #require(got.first).frame()
                let format = try VideoFormat.from(sequenceHeader: header.payload)
                #expect(header.isSequenceHeader && format.width == 640)
                #expect(Array(got[1].payload.readableBytesView) == [0x17, 1, 0, 0, 0] + Self.lengths(keyUnits))
                #expect(Array(got[2].payload.readableBytesView) == [0x27, 1, 0, 0, 0] + Self.lengths([Self.inter]))
            }
        }
    }

    /// Frames that nobody can hold reach viewers as they came, and consumers with a flag, cached ones too.
    @Test func whatIsNotCertainIsFlagged() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let frames = [try Make.videoHeader(1), try Make.key(2, at: 0), try Make.inter(3, at: 40)]
            try await relay.publish(frames, to: live)
            let sink = try await relay.join(live.stream, on: relay.home)
            #expect(try await relay.received(sink) == frames.received())
            let kept = try await relay.on(relay.home) { loop in
                let ring = try #require(loop.homes.values.first).ring
                return (ring.base..<ring.head).compactMap { ring[$0].frame(loop.rtmp)?.tag.flags }
            }
            #expect(kept.map { $0.contains(.unusable) } == [false, true, true])
        }
    }

    /// Sound whose header has not come reaches nobody: a browser that gets it waits for the header, and shows nothing.
    @Test func whatNobodyCanDecodeIsLeftOut() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let first = [try Make.videoHeader(1), try Make.key(2, at: 0), try Make.audio(3, at: 0)]
            try await relay.publish(first, to: live)
            let early = try await relay.join(live.stream, on: relay.home)
            relay.clock.advance(2_100)
            let second = try Make.inter(4, at: 2_100)
            try await relay.publish([second, try Make.audio(5, at: 2_100)], to: live)
            #expect(try await relay.received(early) == (first + [second]).received(), "its header might have come")
            let snapshot = try await relay.on(relay.home) { $0.snapshot(of: live.stream)?.stream }
            #expect(snapshot?.meter.messagesIn == 5 && snapshot?.kinds.audio == false && snapshot?.kinds.video == true)
            // Once it comes, the sound is heard; whoever joined meanwhile hears it too.
            let sound = [try Make.audioHeader(6, at: 2_120), try Make.audio(7, at: 2_120)]
            try await relay.publish(sound, to: live)
            let heard = try await relay.received(early).suffix(2)
            #expect(Array(heard) == sound.received())
        }
    }

    /// What outputs refuse is in the next second.
    @Test func refusalsAddUp() {
        var refusals = OutputRefusals()
        refusals.note(.audio, 3, "one")
        refusals.note(.audio, 4, "another")
        let taken = refusals.popAll()
        #expect(taken.audio == TrackRefusal(frames: 7, cause: "another") && taken.video == nil)
        #expect(refusals.popAll().audio == nil)
    }
}
