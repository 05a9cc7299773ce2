import FFmpeg
import Foundation
import Media
import NIOCore
import Relay
import TestSupport
import Testing

@testable import Packaging
@testable import Streaming

/// The times in HLS, MP4 and recordings, whatever a device's clock does.
@Suite struct DeviceClockPieceTests {
    private static let seconds = 30

    private static func headers() async throws -> [Frame] {
        try await FLVTag.clip().filter(\.isSequenceHeader).map {
            let payload = $0.kind == .audio ? [0xAF, 0, 0x12, 0x10] : $0.payload
            return try Frame(kind: $0.kind, timestamp: 0, payload: ByteBuffer(bytes: payload))
        }
    }

    /// Ingests the device's frames as the relay does, makes pieces of them, and reads these as a player does.
    private static func play(
        _ shots: [DeviceClock.Shot], _ format: ContainerFormat, rebases: Bool = false
    ) async throws -> (packets: PacketList, beginnings: Int, problems: [String]) {
        let taker = PieceList()
        let maker = FragmentPackager(format, for: taker, rebases: rebases)
        var state = StreamState()
        var unwrapper = TimestampUnwrapper()
        var items: [StreamState.Item] = []
        let token = try state.claim(PublisherIdentity("me"), nowMs: 0, items: &items).token
        func ingest(_ frame: Frame, _ nowMs: Int64) {
            items = []
            state.ingest(frame, token: token, nowMs: nowMs, items: &items)
            for case .frame(let frame) in items { maker.receive([.frame(frame)], nowMs: nowMs, wallMs: nowMs) }
        }
        for header in try await Self.headers() { ingest(header, 0) }
        for shot in shots {
            ingest(try Frame(kind: shot.kind, timestamp: unwrapper.unwrap(shot.stamp), payload: shot.payload), shot.arrivalMs)
        }
        maker.finish(nowMs: Int64(Self.seconds) * 1_000)
        var bytes = taker.beginnings.first?.initialization ?? ByteBuffer()
        for piece in taker.pieces { bytes.writeImmutableBuffer(piece.fragment.bytes) }
        let whole = bytes
        let packets = try await Fixture.withDirectory { directory in
            let path = directory.appendingPathComponent("out").path
            try Data(whole.readableBytesView).write(to: URL(fileURLWithPath: path))
            return try await PacketList.of(file: path)
        }
        return (packets, taker.beginnings.count, maker.problems)
    }

    /// Frames beside the packets that they became. Players begin with a picture, so the frames' last ones are matched.
    private static func pairs(
        _ shots: [DeviceClock.Shot], _ packets: PacketList, _ kind: Frame.Kind
    ) -> [(shot: DeviceClock.Shot, dts: Int, pts: Int)] {
        let packets = packets.only(kind == .video ? "video" : "audio").packets
        return zip(shots.filter { $0.kind == kind }.suffix(packets.count), packets).map { ($0, $1.dts ?? -1, $1.pts ?? -1) }
    }

    @Test(.seeded, arguments: 0..<8, [ContainerFormat.fmp4, .mpegTS]) func timesAreOrderedEvenAndTogether(
        _ part: Int, _ format: ContainerFormat
    ) async throws {
        var random = TestRandom(part)
        let device = DeviceClock(any: &random, seconds: Self.seconds)
        let shots = device.shots(seconds: Self.seconds, &random)
        let (packets, beginnings, problems) = try await Self.play(shots, format, rebases: format == .fmp4 && part % 2 == 0)
        #expect(beginnings == 1 && problems.isEmpty, "\(problems) \(device)")
        let (pictures, sounds) = (Self.pairs(shots, packets, .video), Self.pairs(shots, packets, .audio))
        #expect(pictures.count == Self.seconds * 25 && sounds.count > Self.seconds * 42, "\(pictures.count) \(sounds.count) \(device)")
        // MPEG-TS has the time of a PES packet's first frame alone. ffprobe counts the others by their whole lengths, which sound before the origin,
        // pressed together there, does not have.
        for (frames, slack) in [(pictures, 0), (sounds, format == .mpegTS ? 1_045 : 0)] {
            for (frame, next) in zip(frames, frames.dropFirst()) where next.dts + slack <= frame.dts || frame.pts < frame.dts {
                Issue.record("\(frame) then \(next), \(device)")
            }
        }
        let soundScale = format == .fmp4 ? 44_100.0 : 90_000
        for (frame, next) in zip(sounds, sounds.dropFirst()) {
            let most = device.hasJustStepped(next.shot) ? 0.15 : 0.047
            if Double(next.dts - frame.dts) > soundScale * most { Issue.record("a hole: \(frame) then \(next), \(device)") }
        }
        let errors = pictures.map { (ms: $0.shot.shownMs, error: Double($0.pts) / 90 - $0.shot.shownMs) }.sorted { $0.ms < $1.ms }
        for sound in sounds {
            let picture = errors[min(Int(sound.shot.momentMs / 40), errors.count - 1)]
            let error = Double(sound.pts) * 1_000 / soundScale - sound.shot.momentMs
            if abs(error - picture.error) > 400 { Issue.record("\(sound) beside \(picture), \(device)") }
        }
    }

    /// Pictures that are stamped in the order of decoding: after the first few each is shown when its composition time says, in every format.
    @Test(arguments: [ContainerFormat.fmp4, .mpegTS]) func negativeCompositionTimesAreKept(_ format: ContainerFormat) async throws {
        var random = TestRandom()
        var device = DeviceClock()
        device.hasNegativeComposition = true
        let shots = device.shots(seconds: Self.seconds, &random)
        let packets = try await Self.play(shots, format).packets
        let pictures = Self.pairs(shots, packets, .video)
        #expect(pictures.count == Self.seconds * 25)
        let start = Double(pictures.last?.pts ?? 0) / 90 - (pictures.last?.shot.shownMs ?? 0)
        for picture in pictures { #expect(abs(Double(picture.pts) / 90 - start - picture.shot.shownMs) < 1, "\(picture)") }
        let shown = pictures.sorted { $0.pts < $1.pts }.map(\.shot.shownMs)
        #expect(shown == shown.sorted())
    }
}
