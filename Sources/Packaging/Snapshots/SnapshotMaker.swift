package import FFmpeg
package import Media
package import NIOCore
package import Relay
import Rooms
import Support

/// Decodes a stream's last keyframe to JPEG on demand, and caches it for a moment.
///
/// An actor with its own thread: decodes one picture at a time, without delaying the relay.
package actor SnapshotMaker {
    private nonisolated let executor = QueueExecutor(label: "snapshots")
    package nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    private struct Key: Hashable {
        @ExactText var path: String
        package let width: Int?
    }

    private struct Entry {
        let jpeg: ByteBuffer
        /// Distinguishes streams of the same name, which show different pictures.
        weak var stream: Relay.Stream?
        /// Timestamp of the keyframe, so that the same picture is not decoded twice.
        let timestamp: Int64
        let madeMs: Int64
    }

    private var entries: [Key: Entry] = [:]

    package init() {}

    /// The version of the FFmpeg libraries that decode and remux, such as "5.1.6-0+deb12u1".
    package static let libraries = FFmpegVersion.text

    /// Milliseconds. A younger picture is reused even if there is a newer keyframe.
    package static let freshMs: Int64 = 2_000
    private static let keptMs: Int64 = 30_000
    private static let entryLimit = 256

    /// A keyframe and the header needed to decode it.
    package struct Source: Sendable {
        package let stream: Relay.Stream
        package let header: Frame
        package let keyframe: Frame

        package init(stream: Relay.Stream, header: Frame, keyframe: Frame) {
            self.stream = stream
            self.header = header
            self.keyframe = keyframe
        }
    }

    /// Throws the decoder's error for the keyframe.
    package func jpeg(of path: String, _ source: Source, width: Int?, maxAgeMs: Int64 = SnapshotMaker.freshMs, nowMs: Int64)
        throws(FFmpegError) -> ByteBuffer
    {
        let key = Key(path: path, width: width)
        self.forget(nowMs: nowMs)
        if let entry = self.entries[key], entry.stream === source.stream,
            nowMs - entry.madeMs < maxAgeMs || entry.timestamp == source.keyframe.timestamp
        {
            return entry.jpeg
        }
        if self.entries.count >= Self.entryLimit { self.entries.removeAll() }
        let jpeg = try Snapshot.jpeg(keyframe: source.keyframe, header: source.header, width: width)
        self.entries[key] = Entry(jpeg: jpeg, stream: source.stream, timestamp: source.keyframe.timestamp, madeMs: nowMs)
        return jpeg
    }

    /// Drops pictures that are old or whose streams are gone.
    package func forget(nowMs: Int64) {
        self.entries = self.entries.filter { nowMs - $0.value.madeMs < Self.keptMs && $0.value.stream != nil }
    }
}
