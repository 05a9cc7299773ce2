internal import NIOCore

/// Replaces libavformat's own counters in a movie fragment by those of the stream.
///
///     moof  | mfhd: sequence number | traf  | tfhd: track id | tfdt: decode time | trun … |  traf …  |   mdat
///
/// Source: ISO/IEC 14496-12 §8.8.4 to §8.8.12. Our own muxer wrote the fragment, so anything unexpected is a fault of the muxer.
enum MovieFragment {
    /// Sets the sequence number and each track's base decode time in its timescale. `times` is keyed by track id, which counts from 1.
    static func renumber(_ fragment: inout ByteBuffer, sequenceNumber: UInt32, times: [UInt32: UInt64]) throws(FFmpegError) {
        let whole = Box(start: fragment.readerIndex, size: fragment.readableBytes, type: 0)
        let boxes = try Self.boxes(in: whole, header: 0, fragment)
        guard boxes.map(\.type) == [Self.moof, Self.mdat], let moof = boxes.first else {
            throw .unsupported("a fragment of boxes \(boxes.map { String($0.type, radix: 16) })")
        }
        for box in try Self.boxes(in: moof, header: 8, fragment) {
            if box.type == Self.mfhd {
                fragment.setInteger(sequenceNumber, at: box.start + 12)
            } else if box.type == Self.traf {
                try Self.renumber(&fragment, track: box, times)
            }
        }
    }

    private static func renumber(_ fragment: inout ByteBuffer, track: Box, _ times: [UInt32: UInt64]) throws(FFmpegError) {
        let boxes = try Self.boxes(in: track, header: 8, fragment)
        guard let header = boxes.first(where: { $0.type == Self.tfhd }), let decodeTime = boxes.first(where: { $0.type == Self.tfdt }),
            let id = fragment.getInteger(at: header.start + 12, as: UInt32.self), let time = times[id],
            fragment.getInteger(at: decodeTime.start + 8, as: UInt8.self) == 1, decodeTime.size >= 20
        else { throw .unsupported("a track fragment without a 64-bit decode time") }
        fragment.setInteger(time, at: decodeTime.start + 12)
    }

    struct Box {
        var start: Int
        var size: Int
        var type: UInt32
    }

    /// The child boxes of `parent`, which follow its first `header` bytes.
    static func boxes(in parent: Box, header: Int, _ bytes: ByteBuffer) throws(FFmpegError) -> [Box] {
        var boxes: [Box] = []
        var index = parent.start + header
        let end = parent.start + parent.size
        while index < end {
            guard let size = bytes.getInteger(at: index, as: UInt32.self), let type = bytes.getInteger(at: index + 4, as: UInt32.self),
                size >= 8, Int(size) <= end - index
            else { throw .unsupported("a box that runs past its parent") }
            boxes.append(Box(start: index, size: Int(size), type: type))
            index += Int(size)
        }
        return boxes
    }

    private static let moof: UInt32 = 0x6D6F_6F66
    private static let mfhd: UInt32 = 0x6D66_6864
    private static let traf: UInt32 = 0x7472_6166
    private static let tfhd: UInt32 = 0x7466_6864
    private static let tfdt: UInt32 = 0x7466_6474
    private static let mdat: UInt32 = 0x6D64_6174
}
