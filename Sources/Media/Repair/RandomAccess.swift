internal import NIOCore

/// Whether decoding can start at a picture, by its NAL units rather than by the message's flag.
enum RandomAccess {
    /// Nil where the units do not say it with certainty.
    static func isStart(_ bytes: ByteBuffer, from start: Int, lengthSize: Int, _ slice: NALWalk.Slice, isHEVC: Bool) -> Bool? {
        if self.isIntra(slice.type, isHEVC: isHEVC) { return true }
        // Streams without such pictures say where decoding may start (H.264 §D.2.8), or begin with an intra slice.
        let units = NALWalk.units(bytes, from: start, lengthSize: lengthSize)
        if units.contains(where: { Self.hasRecoveryPoint($0, isHEVC: isHEVC) }) { return true }
        return isHEVC ? false : self.isIntraSlice(bytes, slice)
    }

    /// H.264: IDR. H.265: BLA, IDR and CRA, with the reserved types of their kind.
    static func isIntra(_ type: UInt8, isHEVC: Bool) -> Bool { isHEVC ? (16...23).contains(type) : type == 5 }

    /// Reads slice_type (H.264 §7.3.3, Table 7-6).
    private static func isIntraSlice(_ bytes: ByteBuffer, _ slice: NALWalk.Slice) -> Bool? {
        guard let head = bytes.getSlice(at: slice.at &+ 1, length: min(16, slice.end &- slice.at &- 1)) else { return nil }
        do throws(MediaError) {
            var bits = try BitReader(rbspOf: head)
            _ = try bits.ue("first_mb_in_slice")
            let type = try bits.ue("slice_type", max: 9)
            return [2, 4, 7, 9].contains(type)
        } catch {
            // A slice whose header cannot be read says nothing.
            return nil
        }
    }

    /// Whether the unit is supplemental information with a recovery point: payload type 6 (§7.3.2.3.1).
    private static func hasRecoveryPoint(_ unit: ByteBuffer, isHEVC: Bool) -> Bool {
        guard let header = unit.getInteger(at: unit.readerIndex, as: UInt8.self) else { return false }
        guard isHEVC ? header >> 1 & 0x3F == 39 : header & 0x1F == 6 else { return false }
        var bytes = unit
        bytes.moveReaderIndex(forwardBy: min(isHEVC ? 2 : 1, bytes.readableBytes))
        // The last byte is the trailing bit.
        while bytes.readableBytes > 2 {
            guard let type = Self.number(&bytes), let size = Self.number(&bytes) else { return false }
            if type == 6 { return true }
            guard size <= bytes.readableBytes else { return false }
            bytes.moveReaderIndex(forwardBy: size)
        }
        return false
    }

    /// Reads a number as bytes of 255 and a last one.
    private static func number(_ bytes: inout ByteBuffer) -> Int? {
        var sum = 0
        while let byte = bytes.readInteger(as: UInt8.self) {
            sum &+= Int(byte)
            if byte < 255 { return sum }
        }
        return nil
    }
}
