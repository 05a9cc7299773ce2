package import NIOCore

/// Cuts coded pictures of one codec into RTP payloads. A value.
package protocol VideoPacketizer: Sendable {
    /// What the pictures are that came so far.
    var profile: VideoProfile { get }

    /// Cuts a picture. `units`: NAL units without lengths and start codes; for codecs without them, the picture. `time`: presentation, in 90,000ths of a
    /// second. `isKeyframe`: a decoder may begin here. Nil for what shows no picture.
    mutating func bundle(_ units: [ByteBuffer], time: Int64, isKeyframe: Bool) -> ByteBuffer?
}

/// How a coded picture stands to the order in which pictures are decoded.
package enum PictureOrder: Sendable, Equatable {
    /// It is shown when it is decoded.
    case plain
    /// It is shown before one that was decoded earlier. `isReference`: later pictures are made from it.
    case early(isReference: Bool)
}

/// What packetizers have in common.
enum Payload {
    /// Bytes of a payload: 1,200 of a datagram without RTP's header, a repeat's number and the tag.
    static let longest = 1_200 - 24 - 2 - 16
    static let mostUnits = 4_096

    /// A bundle of this size, with room for headers.
    static func capacity(_ bytes: Int) -> Int { bytes + bytes / 64 + 512 }
}

extension PacketBundle.Writer {
    /// Adds these bytes in pieces of the same size, but for the last: then the kernel can cut them from one piece. `prefixBytes`: how long what `prefix`
    /// makes for each piece is.
    mutating func addPieces(of bytes: ByteBuffer, prefixBytes: Int, _ prefix: (_ isFirst: Bool, _ isLast: Bool) -> [UInt8]) {
        let count = bytes.readableBytes
        let room = Payload.longest - prefixBytes
        let pieces = max(1, (count + room - 1) / room)
        let size = (count + pieces - 1) / pieces
        var offset = 0
        while offset < count {
            let length = min(size, count - offset)
            guard let piece = bytes.getSlice(at: bytes.readerIndex + offset, length: length) else { return }
            self.add(prefix(offset == 0, offset + length == count), piece)
            offset += length
        }
    }

    /// Adds units with 16-bit lengths before each as one payload (RFC 6184 §5.7.1, RFC 7798 §4.4.2).
    mutating func addAggregate(_ header: [UInt8], of units: [ByteBuffer]) {
        var rest = ByteBuffer()
        for unit in units {
            rest.writeInteger(UInt16(truncatingIfNeeded: unit.readableBytes))
            rest.writeImmutableBuffer(unit)
        }
        self.add(header, rest)
    }
}
