package import NIOCore

/// One walk along the NAL units of a coded frame of H.264 or HEVC, by the length before each (ISO/IEC 14496-15 §5.3.4.2, §8.3.3).
///
/// A plain value, made once per frame when it arrives: it reads lengths and unit headers, and does not allocate.
package struct NALWalk {
    /// The first unit that carries a picture: its offset in the buffer, header included, its end, and its type.
    struct Slice {
        let at: Int
        let end: Int
        let type: UInt8
    }

    /// The lengths add up to the frame's end.
    private(set) var isEven = false
    /// Every unit so far has a header with a forbidden bit of 0, so the lengths are no accident.
    private(set) var isPlausible = true
    /// Bytes behind the last unit, too few for another length.
    private(set) var strayBytes = 0
    private(set) var slice: Slice?
    /// SPS or PPS (or VPS) precede the picture.
    private(set) var hasParameterSets = false

    /// Real frames have a unit per slice, and some before; a walk of more units is given up.
    private static let mostUnits = 4_096

    /// `start` is the offset of the first length in the buffer.
    init(_ bytes: ByteBuffer, from start: Int, lengthSize: Int, isHEVC: Bool) {
        var at = start
        let end = bytes.writerIndex
        for _ in 0..<Self.mostUnits {
            guard at < end else {
                self.isEven = true
                return
            }
            let length: Int
            var header: UInt8?
            if lengthSize == 4, let word = bytes.getInteger(at: at, as: UInt64.self) {
                // The length and the unit's header with one read.
                length = Int(word >> 32)
                header = UInt8(truncatingIfNeeded: word >> 24)
            } else if let read = Self.length(bytes, at: at, size: lengthSize) {
                length = read
                header = bytes.getInteger(at: at &+ lengthSize, as: UInt8.self)
            } else {
                self.strayBytes = end &- at
                return
            }
            at &+= lengthSize
            guard length <= end &- at else { return }
            if length > 0, let header, header & 0x80 == 0 {
                if self.slice == nil { self.note(header, at: at, end: at &+ length, isHEVC: isHEVC) }
            } else {
                self.isPlausible = false
            }
            at &+= length
        }
    }

    private mutating func note(_ header: UInt8, at: Int, end: Int, isHEVC: Bool) {
        // H.264 Table 7-1: 1 to 5 are slices, 7 and 8 parameter sets. H.265 Table 7-1: 0 to 31 are slices, 32 to 34 parameter sets.
        let type = isHEVC ? header >> 1 & 0x3F : header & 0x1F
        if isHEVC ? type < 32 : (1...5).contains(type) {
            self.slice = Slice(at: at, end: end, type: type)
        } else if isHEVC ? (32...34).contains(type) : type == 7 || type == 8 {
            self.hasParameterSets = true
        }
    }

    /// Nil where the buffer ends before.
    private static func length(_ bytes: ByteBuffer, at: Int, size: Int) -> Int? {
        switch size {
        case 1: bytes.getInteger(at: at, as: UInt8.self).map { Int($0) }
        case 2: bytes.getInteger(at: at, as: UInt16.self).map { Int($0) }
        default: bytes.getInteger(at: at, as: UInt32.self).map { Int($0) }
        }
    }

    /// Whether a unit with a length stands first, though the walk is not even: its header is one that a frame may begin with.
    static func looksLikeUnit(_ bytes: ByteBuffer, from start: Int, lengthSize: Int, isHEVC: Bool) -> Bool {
        guard let length = Self.length(bytes, at: start, size: lengthSize), length > 0,
            let unit = bytes.getSlice(at: start &+ lengthSize, length: length),
            let first = unit.getInteger(at: unit.readerIndex, as: UInt8.self)
        else { return false }
        if isHEVC {
            // The layer is 0, the temporal id plus one is not (H.265 §7.3.1.2).
            guard let second = unit.getInteger(at: unit.readerIndex &+ 1, as: UInt8.self) else { return false }
            return first & 0x81 == 0 && second & 0xF8 == 0 && second & 7 != 0
        }
        let isReference = first & 0x60 != 0
        // §7.4.1: IDR and parameter sets are references, delimiters and supplemental information are not.
        return switch first & 0x9F {
        case 1: length > 1
        case 5, 7, 8: isReference && length > 1
        case 6, 9: !isReference && length > 1
        case 10, 11, 12: !isReference
        default: false
        }
    }

    /// The units of an even walk, without their lengths.
    package static func units(_ bytes: ByteBuffer, from start: Int, lengthSize: Int) -> [ByteBuffer] {
        var units: [ByteBuffer] = []
        var at = start
        while units.count < Self.mostUnits, let length = Self.length(bytes, at: at, size: lengthSize),
            let unit = bytes.getSlice(at: at &+ lengthSize, length: length)
        {
            units.append(unit)
            at &+= lengthSize &+ length
        }
        return units
    }
}

/// NAL units after start codes: H.264 and H.265 Annex B.
enum StartCodes {
    /// More units than this are no frame.
    private static let mostUnits = 4_096

    /// The length of the start code at this offset, 3 or 4 bytes; nil without one.
    static func length(_ bytes: ByteBuffer, at offset: Int) -> Int? {
        guard let word = bytes.getInteger(at: offset, as: UInt32.self) else { return nil }
        return word == 1 ? 4 : word >> 8 == 1 ? 3 : nil
    }

    /// The units behind the start codes, from the one at `start` on. Nil if there is none, or one that is no NAL unit.
    static func units(_ bytes: ByteBuffer, from start: Int) -> [ByteBuffer]? {
        guard let first = Self.length(bytes, at: start),
            let body = bytes.getSlice(at: start &+ first, length: bytes.writerIndex &- start &- first)
        else { return nil }
        var ranges: [Range<Int>] = []
        body.withUnsafeReadableBytes { bytes in
            var begin = 0
            var zeros = 0
            for (index, byte) in bytes.enumerated() {
                if byte == 1, zeros >= 2 {
                    ranges.append(begin..<(index &- zeros))
                    begin = index &+ 1
                    if ranges.count > Self.mostUnits { return }
                }
                zeros = byte == 0 ? zeros &+ 1 : 0
            }
            // No unit ends with a zero byte (§7.4.1): those behind it are padding.
            ranges.append(begin..<(bytes.count &- zeros))
        }
        guard ranges.count <= Self.mostUnits else { return nil }
        var units: [ByteBuffer] = []
        for range in ranges where !range.isEmpty {
            guard let unit = body.getSlice(at: body.readerIndex &+ range.lowerBound, length: range.count),
                let header = unit.getInteger(at: unit.readerIndex, as: UInt8.self), header & 0x80 == 0
            else { return nil }
            units.append(unit)
        }
        return units.isEmpty ? nil : units
    }
}
