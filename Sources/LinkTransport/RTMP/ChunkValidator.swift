internal import NIOCore
internal import RTMP

/// Checks the headers of a server's chunks before librtmp reads them. Rejects chunks that would break librtmp.
///
/// librtmp trusts its peer: it reserves the announced length on any of 65,600 chunk streams, and (2.4 of 2015, which Debian ships)
/// writes past a message's end when a new header in the middle announces more. It also blocks until a chunk is whole, so the guard
/// finds the ends of chunks. Tracks chunk streams just as librtmp does. A plain value, on the link's thread.
struct ChunkValidator {
    /// The state of one chunk stream, RTMP 1.0 §5.3.
    private struct ChunkStream {
        var type: UInt8 = 0
        var length = 0
        var received = 0
        /// The extended timestamp, which fmt 3 chunks should repeat.
        var extended: UInt32?
        var isInMessage: Bool { self.received > 0 }
    }

    /// One whole chunk at the buffer's reader index.
    struct Chunk: Equatable {
        /// Bytes in the buffer.
        let length: Int
        /// The extended timestamp that librtmp expects and the server omitted. `at` counts bytes from the chunk's start.
        var missingTimestamp: (at: Int, value: UInt32)?

        static func == (left: Chunk, right: Chunk) -> Bool {
            left.length == right.length && left.missingTimestamp?.at == right.missingTimestamp?.at
                && left.missingTimestamp?.value == right.missingTimestamp?.value
        }
    }

    private let limits: Limits
    /// Turns false at the first fmt 3 chunk that does not repeat the extended timestamp.
    private var serverRepeatsTimestamp = true
    private var streams: [UInt32: ChunkStream] = [:]
    private var announcedBytes = 0
    private var partialMessages = 0

    /// Payload bytes of the server's chunks; changed by ``setChunkSize(_:)``.
    private(set) var chunkSize = 128
    /// No message is longer, so larger chunk sizes have no further effect.
    private static let largestChunkSize = 0xFF_FFFF

    init(limits: Limits) { self.limits = limits }

    /// Returns the next whole chunk, or nil until more bytes arrive.
    ///
    /// It also accounts for the chunk, so call it again only after librtmp has read that. Throws on violations of RTMP 1.0 §5.3 or of a
    /// limit; end the connection then.
    mutating func nextChunk(in buffer: ByteBuffer) throws(LinkError) -> Chunk? {
        let start = buffer.readerIndex
        guard let first = buffer.getInteger(at: start, as: UInt8.self), let (id, basicLength) = Self.chunkStreamID(first, buffer) else {
            return nil
        }
        let format = first >> 6
        let known = self.streams[id]
        var stream = known ?? ChunkStream()
        if known == nil {
            guard format <= 1 else { throw Self.violation(.chunkWithoutHeader(chunkStream: id, format: format)) }
            guard self.streams.count < self.limits.chunkStreams else {
                throw Self.violation(.tooManyChunkStreams(limit: self.limits.chunkStreams))
            }
        }
        var headerLength = basicLength
        if format < 3 {
            guard !stream.isInMessage else { throw Self.violation(.headerInsideMessage(chunkStream: id)) }
            let length = format == 0 ? 11 : format == 1 ? 7 : 3
            guard let header = buffer.getBytes(at: start + basicLength, length: length) else { return nil }
            let isExtended = header[0] == 0xFF && header[1] == 0xFF && header[2] == 0xFF
            if format <= 1 {
                stream.length = Int(header[3]) << 16 | Int(header[4]) << 8 | Int(header[5])
                stream.type = header[6]
            }
            headerLength += length
            stream.extended = isExtended ? buffer.getInteger(at: start + headerLength, as: UInt32.self) : nil
            guard !isExtended || stream.extended != nil else { return nil }
            if isExtended { headerLength += 4 }
        }
        var missing: (at: Int, value: UInt32)?
        if format == 3, let timestamp = stream.extended {
            switch self.repetition(of: timestamp, at: start + headerLength, in: buffer) {
            case .present: headerLength += 4
            case .absent:
                self.serverRepeatsTimestamp = false
                missing = (headerLength, timestamp)
            case .undecided: return nil
            }
        }
        if !stream.isInMessage { try self.check(stream) }
        let payload = min(self.chunkSize, stream.length - stream.received)
        guard buffer.readableBytes >= headerLength + payload else { return nil }
        self.account(id, stream, payload)
        return Chunk(length: headerLength + payload, missingTimestamp: missing)
    }

    private enum Repetition { case present, absent, undecided }

    /// Implementations disagree whether fmt 3 repeats the extended timestamp (RTMP 1.0 §5.3.1.3). Four equal bytes mean that this server does.
    private func repetition(of timestamp: UInt32, at index: Int, in buffer: ByteBuffer) -> Repetition {
        guard self.serverRepeatsTimestamp else { return .absent }
        for byte in 0..<4 {
            guard let found = buffer.getInteger(at: index + byte, as: UInt8.self) else { return .undecided }
            if found != UInt8(truncatingIfNeeded: timestamp >> UInt32(24 - 8 * byte)) { return .absent }
        }
        return .present
    }

    /// Applies a Set Chunk Size message (RTMP 1.0 §5.4.1).
    mutating func setChunkSize(_ size: UInt32) throws(LinkError) {
        guard size > 0, size <= 0x7FFF_FFFF else { throw Self.violation(.invalidChunkSize(size)) }
        self.chunkSize = min(Int(size), Self.largestChunkSize)
    }

    /// Checks the start of a message: librtmp reserves the length announced there.
    private func check(_ stream: ChunkStream) throws(LinkError) {
        let limit = self.limits.messageBytes(MessageType(rawValue: stream.type))
        guard stream.length <= limit else {
            throw Self.violation(.messageTooLarge(type: stream.type, length: stream.length, limit: limit))
        }
        guard self.partialMessages < self.limits.partialMessages else {
            throw Self.violation(.tooManyPartialMessages(limit: self.limits.partialMessages))
        }
        guard self.announcedBytes + stream.length <= self.limits.partialBytes else {
            throw Self.violation(.tooManyPartialBytes(limit: self.limits.partialBytes))
        }
    }

    private mutating func account(_ id: UInt32, _ stream: ChunkStream, _ payload: Int) {
        var stream = stream
        if !stream.isInMessage {
            self.partialMessages += 1
            self.announcedBytes += stream.length
        }
        stream.received += payload
        if stream.received == stream.length {
            stream.received = 0
            self.partialMessages -= 1
            self.announcedBytes -= stream.length
        }
        self.streams[id] = stream
    }

    /// RTMP 1.0 §5.3.1.1: three forms, the last one little-endian.
    private static func chunkStreamID(_ first: UInt8, _ buffer: ByteBuffer) -> (id: UInt32, length: Int)? {
        let next = buffer.readerIndex + 1
        switch first & 0x3F {
        case 0: return buffer.getInteger(at: next, as: UInt8.self).map { (64 + UInt32($0), 2) }
        case 1: return buffer.getInteger(at: next, endianness: .little, as: UInt16.self).map { (64 + UInt32($0), 3) }
        case let id: return (UInt32(id), 1)
        }
    }

    private static func violation(_ error: RTMPError) -> LinkError { .protocolViolation(error.description) }
}
