import LibC
import NIOCore
import RTMP

/// Reads one viewer's chunk stream in place. Frames are checked piece by piece and never assembled, so that hundreds of viewers cost a
/// fraction of a core. Everything else becomes a `Message` for the session. One per viewer, on the loop's thread.
///
/// Lighter than `ChunkDecoder` on purpose: no size limits beyond its own tables, and fmt 3 is assumed to repeat the extended timestamp.
struct ChunkReader {
    /// The reason why the bytes cannot be RTMP.
    struct FormatError: Error, Equatable {
        var what: String
    }

    private var chunkSize = 128
    private var streams: [PartialMessage] = []
    private var current = 0
    private var chunkRemaining = 0
    /// A header cut off by the end of a read.
    private var carried: [UInt8] = []

    /// Consumes the bytes of one read.
    mutating func read(
        _ input: UnsafeRawBufferPointer, room: Int, nowNs: UInt64, check: inout StreamCheck, other: (Message) -> Void
    ) throws(FormatError) {
        var position = 0
        while true {
            if self.chunkRemaining == 0 {
                guard try self.readHeader(input, &position) else { return }
                self.chunkRemaining = min(self.chunkSize, self.streams[self.current].remaining)
            }
            let count = min(self.chunkRemaining, input.count - position)
            if count == 0 && self.chunkRemaining > 0 { return }
            self.streams[self.current].receive(UnsafeRawBufferPointer(rebasing: input[position..<position + count]))
            position += count
            self.chunkRemaining -= count
            if self.streams[self.current].remaining == 0 { self.finish(room: room, nowNs: nowNs, check: &check, other: other) }
        }
    }

    private mutating func finish(room: Int, nowNs: UInt64, check: inout StreamCheck, other: (Message) -> Void) {
        if let message = self.streams[self.current].finish(room: room, nowNs: nowNs, check: &check) {
            // Set Chunk Size takes effect here (RTMP 1.0 §5.4.1).
            if message.type == .setChunkSize,
                let size = message.payload.getInteger(at: message.payload.readerIndex, as: UInt32.self), size > 0
            {
                self.chunkSize = Int(size & 0x7FFF_FFFF)
            }
            other(message)
        }
    }

    // MARK: Headers

    /// Makes the header's chunk stream the current one; returns `false` when the input ends first.
    private mutating func readHeader(_ input: UnsafeRawBufferPointer, _ position: inout Int) throws(FormatError) -> Bool {
        if self.carried.isEmpty {
            let rest = UnsafeRawBufferPointer(rebasing: input[position...])
            let length = self.headerLength(rest)
            if length <= rest.count {
                position += length
                try self.beginChunk(rest)
                return true
            }
        }
        while position < input.count {
            self.carried.append(input[position])
            position += 1
            let header = self.carried
            let isWhole = header.withUnsafeBytes { self.headerLength($0) <= $0.count }
            if isWhole {
                self.carried.removeAll(keepingCapacity: true)
                try header.withUnsafeBufferPointer { (bytes) throws(FormatError) in try self.beginChunk(UnsafeRawBufferPointer(bytes)) }
                return true
            }
        }
        return false
    }

    // RTMP 1.0 §5.3.1.1
    private static func basicHeader(_ bytes: UnsafeRawBufferPointer) -> (id: UInt32, length: Int)? {
        switch bytes[0] & 0x3F {
        case 0: bytes.count < 2 ? nil : (64 + UInt32(bytes[1]), 2)
        case 1: bytes.count < 3 ? nil : (64 + UInt32(bytes[1]) + UInt32(bytes[2]) << 8, 3)
        case let id: (UInt32(id), 1)
        }
    }

    /// The header's length as far as these bytes show. The header is complete when it has that many.
    private func headerLength(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard !bytes.isEmpty else { return 1 }
        guard let (id, basic) = Self.basicHeader(bytes) else { return bytes[0] & 0x3F == 0 ? 2 : 3 }
        let format = bytes[0] >> 6
        if format == 3 { return basic + (self.position(of: id).map { self.streams[$0].isExtended } == true ? 4 : 0) }
        let length = basic + (format == 0 ? 11 : format == 1 ? 7 : 3)
        guard bytes.count >= length else { return length }
        return length + (Self.uint24(bytes, basic) == 0xFF_FFFF ? 4 : 0)
    }

    private mutating func beginChunk(_ bytes: UnsafeRawBufferPointer) throws(FormatError) {
        guard let (id, basic) = Self.basicHeader(bytes) else { return }
        let format = bytes[0] >> 6
        if let known = self.position(of: id) {
            self.current = known
        } else {
            guard format <= 1, self.streams.count < 64 else { throw FormatError(what: "chunk stream \(id) starts with fmt \(format)") }
            self.current = self.streams.count
            self.streams.append(PartialMessage(id: id))
        }
        if format == 3 {
            self.streams[self.current].continueOrRepeat()
            return
        }
        var field = UInt32(Self.uint24(bytes, basic))
        let isExtended = field == 0xFF_FFFF
        if isExtended {
            let offset = basic + (format == 0 ? 11 : format == 1 ? 7 : 3)
            field = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
        }
        guard !self.streams[self.current].isStarted else { throw FormatError(what: "a header inside a message of chunk stream \(id)") }
        if format <= 1 {
            let length = Self.uint24(bytes, basic + 3)
            guard length <= Pattern.longestMessage else { throw FormatError(what: "a message of \(length) bytes") }
            self.streams[self.current].length = length
            self.streams[self.current].type = bytes[basic + 6]
        }
        if format == 0 {
            self.streams[self.current].streamID = UInt32(
                littleEndian: bytes.loadUnaligned(fromByteOffset: basic + 7, as: UInt32.self))
        }
        self.streams[self.current].start(timestampField: field, isAbsolute: format == 0, isExtended: isExtended)
    }

    private func position(of id: UInt32) -> Int? {
        for position in self.streams.indices where self.streams[position].id == id { return position }
        return nil
    }

    private static func uint24(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> Int {
        Int(bytes[offset]) << 16 | Int(bytes[offset + 1]) << 8 | Int(bytes[offset + 2])
    }
}
