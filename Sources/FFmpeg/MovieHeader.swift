internal import NIOCore

/// Adds defaults for absent tracks to an initialization segment.
///
///     ftyp | moov  | mvhd | trak … | mvex  | trex: track id, defaults | … |
///
/// FFmpeg's reader keeps only the first segment (libavformat/mov.c skips a second `moov`) and gives up at a fragment whose track has no
/// `trex`. With one it skips the unknown track and plays the known one. Source: ISO/IEC 14496-12 §8.8.3. Our own muxer wrote the
/// segment, so anything unexpected is a fault of the muxer.
enum MovieHeader {
    /// Returns the segment with another `trex`, for this track id.
    static func addingDefaults(ofTrack id: UInt32, to section: ByteBuffer) throws(FFmpegError) -> ByteBuffer {
        let whole = MovieFragment.Box(start: section.readerIndex, size: section.readableBytes, type: 0)
        guard let moov = try MovieFragment.boxes(in: whole, header: 0, section).first(where: { $0.type == Self.moov }),
            let mvex = try MovieFragment.boxes(in: moov, header: 8, section).first(where: { $0.type == Self.mvex })
        else { throw .unsupported("an initialization section without mvex") }
        let end = mvex.start + mvex.size
        guard let before = section.getSlice(at: section.readerIndex, length: end - section.readerIndex),
            let after = section.getSlice(at: end, length: section.writerIndex - end)
        else { throw .unsupported("an initialization section whose boxes run past it") }
        var result = ByteBuffer()
        result.reserveCapacity(section.readableBytes + Int(Self.trexSize))
        result.writeImmutableBuffer(before)
        // Size, type, version and flags, track id, default sample description, duration, size and flags.
        result.writeMultipleIntegers(Self.trexSize, Self.trex, UInt32(0), id, UInt32(1), UInt32(0), UInt32(0), UInt32(0))
        result.writeImmutableBuffer(after)
        for box in [moov, mvex] {
            result.setInteger(UInt32(truncatingIfNeeded: box.size) + Self.trexSize, at: box.start - section.readerIndex)
        }
        return result
    }

    private static let trexSize: UInt32 = 32
    private static let moov: UInt32 = 0x6D6F_6F76
    private static let mvex: UInt32 = 0x6D76_6578
    private static let trex: UInt32 = 0x7472_6578
}
