package import FFmpeg
import Foundation
import Media
package import NIOCore

/// A consumer of a muxer: flushes a piece at each keyframe, or after `partMs`.
package struct Pieces {
    package var initialization: ByteBuffer
    package var fragments: [Fragment] = []

    package init(_ muxer: FragmentMuxer, _ samples: [Sample], partMs: Int64 = 1_000, pauseAt: Int? = nil) throws {
        self.initialization = muxer.initialization
        let leading: Frame.Kind = muxer.tracks.contains { $0.kind == .video } ? .video : .audio
        var start: Int64?
        for sample in samples {
            if sample.kind == leading {
                if let begun = start, sample.dts - begun >= partMs || (sample.isKeyframe && sample.kind == .video) {
                    if let fragment = try muxer.flush(before: sample) { self.fragments.append(fragment) }
                    start = sample.dts
                }
                start = start ?? sample.dts
            }
            try muxer.write(sample)
        }
        if let fragment = try muxer.flush() { self.fragments.append(fragment) }
    }

    package var whole: ByteBuffer {
        var bytes = self.initialization
        for fragment in self.fragments { bytes.writeImmutableBuffer(fragment.bytes) }
        return bytes
    }

    package func write(to path: String) throws {
        try Data(self.whole.readableBytesView).write(to: URL(fileURLWithPath: path))
    }
}
