import FFmpeg
import HLS
import HLSCheck
import Media
import NIOCore
import NIOEmbedded
import Relay
import Synchronization
import TestSupport
import Testing

@testable import Packaging
@testable import Streaming

/// The delay that low latency promises, with a clock of the test's own. `Benchmarks/hls.sh` measures it through a live server.
@Suite struct PartDelayTests {
    /// A part is listed within 300 ms of its last frame's arrival: when the next picture comes, or when nothing comes for too long, as in
    /// a pause of the network and when the publisher falls silent. One that a pause cuts too short for a part waits for the next picture.
    @Test(arguments: [true, false]) func partsAreListedInTime(_ hasAudio: Bool) async throws {
        let file = try await Fixture.flv(video: Fixture.baseline, audio: hasAudio ? Fixture.aac : nil, seconds: 16)
        try Self.check(try FLVTag.media(of: file))
    }

    private static func check(_ tags: [FLVTag]) throws {
        let first = Int64(try tags.first.orThrow().timestamp)
        let last = Int64(try tags.last.orThrow().timestamp)
        // Eight seconds in, the network stands still for a while.
        let pause = (from: first + 8_040, ms: Int64(1_000))
        func arrivalMs(_ timestamp: Int64) -> Int64 { timestamp + (timestamp >= pause.from ? pause.ms : 0) }
        var frames = try PieceList.frames(tags)[...]
        let timestamps = tags.filter { !$0.isSequenceHeader }.map { Int64($0.timestamp) }

        let clock = Clock(first)
        let loop = EmbeddedEventLoop()
        let mailbox = FrameMailbox(on: loop, nowMs: { clock.nowMs.load(ordering: .relaxed) }) {
            clock.isWoken.store(true, ordering: .relaxed)
        }
        let taker = WindowTaker(
            try MediaWindow(epoch: "e", configuration: .init(segmentMs: 1_000, windowMs: 60_000)), cacheLimit: (1 << 20, 10_000))
        let maker = FragmentPackager(.fmp4, for: taker)
        var listedMs: Int64 = 0
        var late: [Int64] = []
        for nowMs in first...arrivalMs(last) + 1_000 {
            clock.nowMs.store(nowMs, ordering: .relaxed)
            loop.advanceTime(by: .milliseconds(1))
            while case .frame(let frame)? = frames.first, arrivalMs(frame.timestamp) <= nowMs { mailbox.receive([frames.removeFirst()]) }
            if nowMs % (RelayLoop.sweepInterval.nanoseconds / 1_000_000) == 0 { mailbox.sweep() }
            guard clock.isWoken.exchange(false, ordering: .relaxed) else { continue }
            // As a remuxer does while a player waits for the next part.
            repeat {
                let batch = mailbox.drain()
                maker.receive(batch.items, nowMs: nowMs, wallMs: nowMs)
                if batch.isStalled { maker.closeStalled(nowMs: nowMs) }
            } while !mailbox.rest(maker.patience)
            guard let text = taker.shared.change({ $0.mediaPlaylist(PlaylistKind(isLowLatency: true, skips: false)) }) else { continue }
            for endMs in ListedParts.partEndsMs(String(buffer: text.bytes())) where endMs > listedMs + 10 {  // but for rounding
                listedMs = endMs
                // Players begin with the first playlist: what came before it is no part's delay.
                guard endMs > 2_000 else { continue }
                late.append(nowMs - arrivalMs(try timestamps.last { $0 < first + endMs }.orThrow()))
            }
        }
        #expect(frames.isEmpty && maker.problems.isEmpty)
        // What is too short to be a part waits for what comes next: the end's, and what came before the pause.
        #expect(first + listedMs >= last - 100 - 184, "all but the last picture is listed: \(listedMs) ms")
        #expect(late.count > 60, "\(late.count) parts")
        #expect(late.count { $0 > 300 } <= 1 && late.allSatisfy { (0...300 + pause.ms).contains($0) }, "milliseconds: \(late)")
    }

    private final class Clock: Sendable {
        let nowMs: Atomic<Int64>
        let isWoken = Atomic<Bool>(false)
        init(_ nowMs: Int64) { self.nowMs = Atomic(nowMs) }
    }
}
