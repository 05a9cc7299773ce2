/// Reads one HTTP-FLV viewer's response in place. Parses the head, the chunks (RFC 9112 §7.1) and the tags in them (Adobe FLV 10.1 §E.4.1).
/// Frames are checked piece by piece and never assembled, as in ``ChunkReader``. One per viewer, on the loop's thread.
///
/// ```
/// head → chunk size → chunk data → end of line → chunk size → …      in the data: file header → (tag header → body → size of the tag) …
/// ```
struct FLVReader {
    /// The reason why the bytes are no such response.
    struct FormatError: Error, Equatable {
        var what: String
    }

    private enum Framing { case head, size, data, end }
    private enum Part { case fileHeader, tagHeader, body, trailer }

    private var framing = Framing.head
    /// The head or a chunk's size line, as far as it was read.
    private var line: [UInt8] = []
    /// Bytes of the chunk that are still to be read.
    private var chunkRemaining = 0
    private var part = Part.fileHeader
    /// The current part of the file, unless that is a tag's body.
    private var head: [UInt8] = []
    private var message = PartialMessage(id: 0)

    private static let longestHead = 4_096
    private static let fileHeaderLength = 13
    private static let tagHeaderLength = 11
    private static let trailerLength = 4

    /// Whether the server has accepted the request.
    var isOpen: Bool { self.framing != .head }

    /// Consumes the bytes of one read.
    mutating func read(_ input: UnsafeRawBufferPointer, room: Int, nowNs: UInt64, check: inout StreamCheck) throws(FormatError) {
        var position = 0
        while position < input.count {
            switch self.framing {
            case .head, .size, .end:
                self.line.append(input[position])
                position += 1
                try self.lineGrew()
            case .data:
                let count = min(self.chunkRemaining, input.count - position)
                try self.receive(UnsafeRawBufferPointer(rebasing: input[position..<position + count]), room, nowNs, &check)
                position += count
                self.chunkRemaining -= count
                if self.chunkRemaining == 0 { self.framing = .end }
            }
        }
    }

    private mutating func lineGrew() throws(FormatError) {
        guard self.line.last == 0x0A else {
            if self.line.count > Self.longestHead { throw FormatError(what: "a line without an end") }
            return
        }
        switch self.framing {
        case .head:
            guard self.line.suffix(4) == [0x0D, 0x0A, 0x0D, 0x0A] else { return }
            let text = String(decoding: self.line, as: UTF8.self)
            guard text.hasPrefix("HTTP/1.1 200") else { throw FormatError(what: String(text.prefix { $0 != "\r\n" })) }
            self.framing = .size
        case .size:
            let digits = String(decoding: self.line.dropLast(2), as: UTF8.self)
            guard let size = Int(digits, radix: 16) else { throw FormatError(what: "a chunk's size is \(digits)") }
            guard size > 0 else { throw FormatError(what: "the stream ended") }
            self.chunkRemaining = size
            self.framing = .data
        case .end, .data: self.framing = .size
        }
        self.line.removeAll(keepingCapacity: true)
    }

    private mutating func receive(
        _ bytes: UnsafeRawBufferPointer, _ room: Int, _ nowNs: UInt64, _ check: inout StreamCheck
    ) throws(FormatError) {
        var position = 0
        while position < bytes.count {
            guard self.part != .body else {
                let count = min(self.message.remaining, bytes.count - position)
                self.message.receive(UnsafeRawBufferPointer(rebasing: bytes[position..<position + count]))
                position += count
                if self.message.remaining == 0 {
                    _ = self.message.finish(room: room, nowNs: nowNs, check: &check)
                    self.part = .trailer
                }
                continue
            }
            let wanted =
                switch self.part {
                case .fileHeader: Self.fileHeaderLength
                case .tagHeader: Self.tagHeaderLength
                case .trailer, .body: Self.trailerLength
                }
            let count = min(wanted - self.head.count, bytes.count - position)
            self.head.append(contentsOf: bytes[position..<position + count])
            position += count
            if self.head.count == wanted { try self.partIsWhole() }
        }
    }

    private mutating func partIsWhole() throws(FormatError) {
        defer { self.head.removeAll(keepingCapacity: true) }
        guard self.part == .tagHeader else {
            if self.part == .fileHeader, self.head.prefix(3) != [0x46, 0x4C, 0x56] { throw FormatError(what: "no FLV file") }
            self.part = .tagHeader
            return
        }
        let length = Int(self.head[1]) << 16 | Int(self.head[2]) << 8 | Int(self.head[3])
        guard length <= Pattern.longestMessage else { throw FormatError(what: "a tag of \(length) bytes") }
        self.message.length = length
        self.message.type = self.head[0]
        let low = UInt32(self.head[4]) << 16 | UInt32(self.head[5]) << 8 | UInt32(self.head[6])
        self.message.start(timestampField: UInt32(self.head[7]) << 24 | low, isAbsolute: true, isExtended: false)
        self.part = length > 0 ? .body : .trailer
    }
}
