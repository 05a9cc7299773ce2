import FFmpeg
import Media
import NIOCore

extension FuzzTarget {
    /// Makes JPEG pictures of keyframes, each with the sequence header before it.
    static let snapshot = FuzzTarget("snapshot", maxLength: 8_192, allocationMiB: 256, timeoutSeconds: 60) { input in
        var header: Frame?
        var pictures = 0
        for record in MediaRecords(input) where record.frame.kind == .video && pictures < 2 {
            if record.frame.isSequenceHeader { header = record.frame }
            guard record.frame.isKeyframe, let header else { continue }
            pictures += 1
            do throws(FFmpegError) {
                let jpeg = try Snapshot.jpeg(keyframe: record.frame, header: header, width: 64)
                let bytes = Array(jpeg.readableBytesView)
                expect(bytes.starts(with: [0xFF, 0xD8]) && bytes.suffix(2) == [0xFF, 0xD9], "no JPEG")
            } catch {
                expect(!"\(error)".isEmpty, "an error without words")
            }
        }
    }
}
