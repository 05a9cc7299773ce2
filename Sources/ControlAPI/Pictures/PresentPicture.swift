import Delivery
import FFmpeg
package import HTTPServer
import HTTPTypes
import Media
package import NIOCore
import Packaging
import Relay
package import Rooms
import Support

extension APIServices {
    /// The stream's present picture, or one that is at most `maxAgeMs` old. Throws the API's error when there is none.
    package func snapshot(of path: StreamPath, width: Int?, maxAgeMs: Int64 = SnapshotMaker.freshMs) async throws(APIError) -> ByteBuffer {
        let found = await self.streams.onHome(of: path.description) { home, stream in
            home.keyframe(of: stream).map { SnapshotMaker.Source(stream: stream, header: $0.header, keyframe: $0.keyframe) }
        }
        guard let found, let source = found else {
            throw APIError(
                .notFound, .notFound, "There is no picture of \(path) now: it is not live, has no video, or has not sent a keyframe yet.")
        }
        do throws(FFmpegError) {
            return try await self.snapshots.jpeg(of: path.description, source, width: width, maxAgeMs: maxAgeMs, nowMs: LoopSweeper.nowMs)
        } catch {
            throw APIError.unavailable("No picture can be made of \(path): \(error).")
        }
    }
}
