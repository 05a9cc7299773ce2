import FFmpeg
import Foundation
import Media
import NIOCore
import Testing

/// What a stream costs to take into another container. Counted in this thread's CPU time; held to its budget in optimised builds.
@Suite struct CostTests {
    static let clip = Task {
        try await Clip([
            "-f", "lavfi", "-i", "testsrc2=s=1280x720:r=30:d=10", "-f", "lavfi", "-i", "sine=r=48000:d=10", "-c:v", "libx264", "-preset",
            "ultrafast", "-tune", "zerolatency", "-b:v", "2M", "-g", "60", "-c:a", "aac", "-b:a", "128k",
        ])
    }

    /// Ten seconds of 720p30 in parts of 200 ms: at most 10 ms, of which the playlists need some too.
    @Test(arguments: [FragmentMuxer.Format.fmp4, .mpegTS]) func tenSeconds(_ format: FragmentMuxer.Format) async throws {
        let clip = try await Self.clip.value
        let (tracks, frames) = (try clip.tracks, clip.frames)
        var best = Double.infinity
        for _ in 0..<5 {
            let start = Self.now()
            let pieces = try Pieces(FragmentMuxer(tracks: tracks, format: format), frames.compactMap { Sample($0) }, partMs: 200)
            best = min(best, Self.now() - start)
            #expect(pieces.fragments.count >= 40)
        }
        print("10 s of 720p30 in \(format): \((best * 10).rounded() / 10) ms")
        #if !DEBUG
        #expect(best < 8)
        #endif
    }

    /// Milliseconds.
    private static func now() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1_000 + Double(time.tv_nsec) / 1_000_000
    }
}
