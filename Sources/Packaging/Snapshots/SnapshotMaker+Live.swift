import FFmpeg
package import NIOCore
package import Rooms
import Relay
package import Streaming
import Support

extension SnapshotMaker {
    /// Why there is no picture of a live stream.
    package enum Missing: Error {
        /// Nobody publishes it now.
        case stream
        /// It has no video, or has not sent a keyframe yet.
        case keyframe
        /// Its keyframe cannot be decoded.
        case picture(String)
    }

    /// The stream's present picture, or one that is at most `maxAgeMs` old.
    package nonisolated func jpeg(of path: StreamPath, in streams: LiveStreams, width: Int?, maxAgeMs: Int64) async throws(Missing)
        -> ByteBuffer
    {
        let found = await streams.onHome(of: path.description) { home, stream in
            home.keyframe(of: stream).map { Source(stream: stream, header: $0.header, keyframe: $0.keyframe) }
        }
        guard let source = found ?? nil else { throw await streams.media(of: path.description) == nil ? .stream : .keyframe }
        do throws(FFmpegError) {
            return try await self.jpeg(of: path.description, source, width: width, maxAgeMs: maxAgeMs, nowMs: LoopSweeper.nowMs)
        } catch {
            throw .picture("\(error)")
        }
    }
}
