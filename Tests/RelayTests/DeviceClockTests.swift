import Media
import NIOCore
import TestSupport
import Testing

@testable import Relay

/// The times that RTMP's and FLV's viewers get, whatever a device's clock does.
@Suite struct DeviceClockTests {
    private static let seconds = 40
    /// AAC-LC, 44.1 kHz, stereo.
    private static let header = ByteBuffer(bytes: [0xAF, 0, 0x12, 0x10])

    /// A frame as it goes out, and the one it was.
    private struct Sent {
        let shot: DeviceClock.Shot
        let ms: Int64
        /// How far it is from where it would be on an even clock.
        var errorMs: Double { Double(self.ms) - self.shot.momentMs }
    }

    /// Ingests what a connection reads, and returns what its viewers get.
    private static func relay(_ shots: [DeviceClock.Shot]) throws -> [Sent] {
        var state = StreamState()
        var items: [StreamState.Item] = []
        let token = try state.claim(PublisherIdentity("me"), nowMs: 0, items: &items).token
        state.ingest(try Frame(kind: .audio, timestamp: 0, payload: Self.header), token: token, nowMs: 0, items: &items)
        var unwrapper = TimestampUnwrapper()
        var wire = TimestampUnwrapper()
        return try shots.compactMap { shot in
            items = []
            let frame = try Frame(kind: shot.kind, timestamp: unwrapper.unwrap(shot.stamp), payload: shot.payload)
            state.ingest(frame, token: token, nowMs: shot.arrivalMs, items: &items)
            guard case .frame(let out)? = items.last else { return nil }
            return Sent(shot: shot, ms: wire.unwrap(out.wireTimestamp))
        }
    }

    @Test(.seeded, arguments: 0..<60) func timesAreOrderedEvenAndTogether(_ part: Int) throws {
        var random = TestRandom(part)
        let device = DeviceClock(any: &random, seconds: Self.seconds)
        let shots = device.shots(seconds: Self.seconds, &random)
        let sent = try Self.relay(shots)
        #expect(sent.count == shots.count)
        let (sounds, pictures) = (sent.filter { $0.shot.kind == .audio }, sent.filter { $0.shot.kind == .video })
        for (frame, next) in zip(pictures, pictures.dropFirst()) where next.ms < frame.ms { Issue.record("back to \(next), \(device)") }
        for (frame, next) in zip(sounds, sounds.dropFirst()) {
            // Twice 23.2 ms, rounded: a gap of a frame.
            let most: Int64 = device.hasJustStepped(next.shot) ? 150 : 48
            if !(1...most).contains(next.ms - frame.ms) { Issue.record("\(frame) then \(next), \(device)") }
        }
        // Blocks, jitter and a step's own inaccuracy; the device itself says no better.
        for sound in sounds {
            let picture = pictures[min(Int(sound.shot.momentMs / 40), pictures.count - 1)]
            if abs(sound.errorMs - picture.errorMs) > 350 { Issue.record("\(sound) beside \(picture), \(device)") }
        }
    }

    /// A clock that is right, and one that is not quite: relayed as sent.
    @Test(arguments: [0, 2, 8]) func rightTimesStand(jitterMs: Int) throws {
        var random = TestRandom(jitterMs)
        var device = DeviceClock()
        device.jitterMs = jitterMs
        device.soundStartMs = 3_600_000
        device.pictureStartMs = 3_600_040
        for frame in try Self.relay(device.shots(seconds: Self.seconds, &random)) where frame.ms != Int64(frame.shot.stamp) {
            Issue.record("\(frame)")
        }
    }

    /// Sound in blocks of one timestamp: each frame gets its own time, as if it had been stamped.
    @Test(arguments: [2, 3, 4, 8]) func blocksAreSpread(_ block: Int) throws {
        var random = TestRandom(block)
        var device = DeviceClock()
        device.block = block
        for frame in try Self.relay(device.shots(seconds: Self.seconds, &random)) where abs(frame.errorMs) > 1.5 {
            Issue.record("\(frame)")
        }
    }

    /// A pause of the sound goes on where its timestamps are, at once; one of two frames within seconds, since jitter looks the same. In blocks it does so
    /// to within a block, whose timestamp does not say which of its frames were lost.
    @Test(arguments: [2, 10, 200], [1, 4]) func missingSoundStaysMissing(_ lost: Int, _ block: Int) throws {
        var random = TestRandom(lost)
        var device = DeviceClock()
        device.block = block
        let from = 430 / block * block
        let shots = device.shots(seconds: Self.seconds, &random).filter { shot in
            shot.kind == .video || !(from..<from + lost).contains(Int((shot.momentMs * 44.1 / 1_024).rounded()))
        }
        for frame in try Self.relay(shots) where abs(frame.errorMs) > 13 {
            let afterMs = frame.shot.momentMs - DeviceClock.soundMs(from)
            let mayDiffer = block == 1 ? lost == 2 && (0...4_000).contains(afterMs) : afterMs >= 0 && abs(frame.errorMs) < 71
            if frame.shot.kind == .video || !mayDiffer { Issue.record("\(frame)") }
        }
    }

    /// A header with the wrong sample rate: counting does not fit, so the timestamps stand.
    @Test func wrongRatesAreNotCounted() throws {
        var times = SoundTimes()
        times.headerCame(try Frame(kind: .audio, timestamp: 0, payload: ByteBuffer(bytes: [0xAF, 0, 0x15, 0x88])))
        var last: Int64 = -1
        for index in 0..<Int64(2_000) {
            var frame = try Frame(kind: .audio, timestamp: index / 2 * 40, payload: ByteBuffer(bytes: [0xAF, 1, 0]))
            times.even(&frame)
            #expect(frame.timestamp >= last && abs(frame.timestamp - index / 2 * 40) <= 450, "\(index)")
            last = frame.timestamp
        }
        #expect(!times.isCounting)
    }
}
