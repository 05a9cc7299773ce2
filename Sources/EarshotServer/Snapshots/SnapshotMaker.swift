import HTTPTypes
import FFmpeg
import Media
import NIOCore
import Relay
import Rooms

/// Decodes a stream's last keyframe to JPEG on demand, and caches it for a moment.
///
/// An actor with its own thread: decodes one picture at a time, without delaying the relay.
actor SnapshotMaker {
    private nonisolated let executor = QueueExecutor(label: "snapshots")
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    private struct Key: Hashable {
        let path: String
        let width: Int?
    }

    private struct Entry {
        let jpeg: ByteBuffer
        /// Tells apart streams of the same name, which show other pictures.
        weak var stream: Relay.Stream?
        /// Timestamp of the keyframe: the same picture need not be decoded twice.
        let timestamp: Int64
        let madeMs: Int64
    }

    private var entries: [Key: Entry] = [:]

    /// A younger picture is reused even if there is a newer keyframe.
    private static let freshMs: Int64 = 2_000
    private static let keptMs: Int64 = 30_000
    private static let entryLimit = 256

    /// A keyframe and the header needed to decode it.
    struct Source: Sendable {
        let stream: Relay.Stream
        let header: Frame
        let keyframe: Frame
    }

    /// Throws the decoder's error for the keyframe.
    func jpeg(of path: String, _ source: Source, width: Int?, nowMs: Int64) throws(FFmpegError) -> ByteBuffer {
        let key = Key(path: path, width: width)
        self.forget(nowMs: nowMs)
        if let entry = self.entries[key], entry.stream === source.stream,
            nowMs - entry.madeMs < Self.freshMs || entry.timestamp == source.keyframe.timestamp
        {
            return entry.jpeg
        }
        if self.entries.count >= Self.entryLimit { self.entries.removeAll() }
        let jpeg = try Snapshot.jpeg(keyframe: source.keyframe, header: source.header, width: width)
        self.entries[key] = Entry(jpeg: jpeg, stream: source.stream, timestamp: source.keyframe.timestamp, madeMs: nowMs)
        return jpeg
    }

    /// Drops pictures that are old or whose streams are gone.
    func forget(nowMs: Int64) {
        self.entries = self.entries.filter { nowMs - $0.value.madeMs < Self.keptMs && $0.value.stream != nil }
    }
}

extension ServerCore {
    /// The stream's present picture. Throws the API's error when there is none.
    func snapshot(of path: StreamPath, width: Int?) async throws(APIError) -> ByteBuffer {
        let found = await self.onHome(of: path.description) { home, stream in
            home.keyframe(of: stream).map { SnapshotMaker.Source(stream: stream, header: $0.header, keyframe: $0.keyframe) }
        }
        guard let found, let source = found else {
            throw APIError(
                .notFound, .notFound, "\(path) shows no picture now: it is not live, has no video, or has not sent a keyframe yet.")
        }
        do throws(FFmpegError) {
            return try await self.snapshots.jpeg(of: path.description, source, width: width, nowMs: LoopSweeper.nowMs)
        } catch {
            throw APIError.unavailable("No picture can be made of \(path): \(error).")
        }
    }
}
