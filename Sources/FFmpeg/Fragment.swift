package import NIOCore

/// A piece of a container: the muxer's output between two flushes.
///
/// A plain value; all who serve it share the bytes.
package struct Fragment: Sendable {
    /// One moof and one mdat; or TS packets, tables (SDT, PAT, PMT) first.
    package var bytes: ByteBuffer
    /// Milliseconds on the stream's timeline in decode order, of the video if there is any. Each `endMs` is the next `startMs`.
    package var startMs: Int64
    package var endMs: Int64
    /// It begins with a video keyframe, or the container has no video track.
    package var isIndependent: Bool
    /// It has video frames.
    package var holdsPictures: Bool
    /// The moof's number; for TS a running number.
    package var sequenceNumber: UInt32
    package var samples: Int

    package var durationMs: Int64 { self.endMs - self.startMs }
}
