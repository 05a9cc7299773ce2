import FFmpeg
import Foundation
import Media
import MediaClips
import Testing

/// Muxes the stream whose cost `Benchmarks/budget.sh` counts, into each container, and checks the output.
@Suite struct CostTests {
    private static let clip = Task {
        try await Clip([
            "-f", "lavfi", "-i", "testsrc2=s=1280x720:r=30:d=10", "-f", "lavfi", "-i", "sine=r=48000:d=10", "-c:v", "libx264", "-preset",
            "ultrafast", "-tune", "zerolatency", "-threads", "1", "-b:v", "2M", "-g", "60", "-c:a", "aac", "-b:a", "128k",
        ])
    }

    /// Ten seconds of 720p30 in parts of 200 ms hold every sample.
    @Test(arguments: [ContainerFormat.fmp4, .mpegTS]) func tenSeconds(_ format: ContainerFormat) async throws {
        let clip = try await Self.clip.value
        let samples = clip.samples
        let pieces = try Pieces(FragmentMuxer(tracks: clip.tracks, format: format), samples, partMs: 200)
        #expect(pieces.fragments.count >= 40)
        #expect(pieces.fragments.reduce(0) { $0 + Int($1.samples) } == samples.count)
    }
}
