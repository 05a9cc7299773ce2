package import NIOCore

/// A piece of a container: what a muxer wrote from one flush to the next.
///
/// A plain value; the bytes are its own and shared by whoever serves them.
package struct Fragment: Sendable {
    /// One moof and one mdat; or TS packets of which the first ones are the tables (SDT, PAT, PMT).
    package var bytes: ByteBuffer
    /// Milliseconds on the stream's timeline, decode order, of the video where there is any: `endMs` of one is `startMs` of the next.
    package var startMs: Int64
    package var endMs: Int64
    /// It begins with a video keyframe, or the container has no video track.
    package var isIndependent: Bool
    /// The moof's; of TS the running number.
    package var sequenceNumber: UInt32
    package var samples: Int

    package var durationMs: Int64 { self.endMs - self.startMs }
}
