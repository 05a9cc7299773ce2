package import NIOCore

/// Reassembles messages from chunks (RTMP 1.0 §5.3): a pull parser, `append` then `nextMessage` until it returns `nil`.
///
/// Owned by one connection and used on its event loop only. Memory grows with the bytes received, never with announced lengths. A server's
/// decoder starts with small limits, since the peer may be anybody; ``publishAccepted()`` switches to the media limits. Set Chunk Size and
/// Abort take effect here, at their position in the byte stream, and are returned like any other message. A publisher's data message over its
/// limit comes out empty: see ``popDropped()``.
package struct ChunkDecoder {
    /// Bytes passed to ``append(_:)`` so far, which acknowledgements count (RTMP 1.0 §5.4.3).
    package private(set) var receivedBytes: UInt64 = 0
    /// Payload bytes per chunk from the peer.
    package private(set) var chunkSize = 128

    private let limits: SharedLimits
    private var input = ByteBuffer()
    private var streams: [ChunkStream] = []
    /// Positions in `streams` of the ids beyond the first `linearSearchLimit`.
    private var positions: [UInt32: Int] = [:]
    /// The chunk being read: its position in `streams` and its remaining payload bytes.
    private var currentStream = 0
    private var currentRemaining = 0
    private var partialMessages = 0
    private var partialBytes = 0
    /// Limit on `partialBytes`. Until a publish is accepted, the cost of chunk streams lowers it.
    private var partialBytesLimit = 0
    /// Bytes of memory allocated for messages under assembly.
    private var assemblyCapacity = 0
    /// Whether the peer may send media: its publish was accepted, or this side requested the media.
    private var maySendMedia: Bool
    /// Bytes of the last data message that was dropped for its size.
    private var droppedBytes: Int?
    /// Becomes false at the first fmt 3 chunk that does not repeat the extended timestamp.
    private var peerRepeatsExtendedTimestamp = true

    private static let linearSearchLimit = 8
    /// Larger chunk sizes are legal (RTMP 1.0 §5.4.1) but no message is longer than this.
    private static let largestChunkSize = 0xFF_FFFF

    /// Initial buffer size, in bytes, of a media message that arrives in pieces.
    private static let firstCapacity = 16 << 10

    /// Bytes of memory per chunk stream, including its table entry.
    private static let chunkStreamCost = 128

    package init(limits: Limits = Limits(), maySendMedia: Bool = true) {
        self.init(SharedLimits(limits), maySendMedia: maySendMedia)
    }

    package init(_ limits: SharedLimits, maySendMedia: Bool = true) {
        self.limits = limits
        self.maySendMedia = maySendMedia
        self.setPartialBytesLimit()
    }

    /// Switches to the media limits from the next chunk on: the peer's publish was accepted.
    package mutating func publishAccepted() {
        self.maySendMedia = true
        self.setPartialBytesLimit()
    }

    /// Bytes appended and not yet read.
    package var waitingBytes: Int { self.input.readableBytes }

    /// Bytes of memory held for the peer: unfinished messages, unread bytes and chunk streams. Mutating, as the decoder would be copied otherwise.
    package mutating func heldBytes() -> Int { self.assemblyCapacity + self.streams.count * Self.chunkStreamCost + self.waitingBytes }

    /// Returns the length of the data message that just came out empty because it is over its limit; nil for any other message.
    package mutating func popDropped() -> Int? { self.droppedBytes.take() }

    /// Adds bytes from the wire.
    package mutating func append(_ bytes: consuming ByteBuffer) {
        self.receivedBytes &+= UInt64(bytes.readableBytes)
        if self.input.readableBytes == 0 {
            self.input = bytes
        } else {
            // Read bytes must not pile up before unread ones, which a peer can keep around. At most as many bytes move as were read, so the
            // cost stays linear.
            if self.input.readerIndex >= self.input.readableBytes { self.input.discardReadBytes() }
            self.input.writeBuffer(&bytes)
        }
    }

    /// Returns the next whole message, or `nil` until more bytes arrive. The decoder must not be used after an error.
    package mutating func nextMessage() throws(RTMPError) -> Message? {
        while true {
            if self.currentRemaining == 0 {
                guard try self.readHeader() else {
                    self.releaseRead()
                    return nil
                }
                if self.streams[self.currentStream].length == 0 { return self.finish(ByteBuffer()) }
            }
            guard self.input.readableBytes > 0 else {
                self.input = ByteBuffer()
                return nil
            }
            if let message = try self.readPayload() { return message }
        }
    }

    // MARK: Headers

    /// Reads one chunk header if all of it has arrived; consumes nothing otherwise.
    private mutating func readHeader() throws(RTMPError) -> Bool {
        let start = self.input.readerIndex
        guard let first = self.input.getInteger(at: start, as: UInt8.self) else { return false }
        let format = first >> 6
        guard let (id, basicLength) = self.chunkStreamID(first, at: start) else { return false }

        guard let position = self.position(of: id) else {
            // librtmp opens chunk stream 2 with a fmt 1 header. It carries length and type, so it can stand alone.
            guard format <= 1 else { throw .chunkWithoutHeader(chunkStream: id, format: format) }
            guard self.headerIsComplete(format: format, at: start + basicLength) else { return false }
            guard self.streams.count < self.limits.values.chunkStreams else {
                throw .tooManyChunkStreams(limit: self.limits.values.chunkStreams)
            }
            let new = self.streams.count
            self.streams.append(ChunkStream(id: id))
            self.setPartialBytesLimit()
            guard self.partialBytes <= self.partialBytesLimit else { throw self.tooManyBytes }
            if new >= Self.linearSearchLimit { self.positions[id] = new }
            return try self.readMessageHeader(format: format, position: new, basicLength: basicLength)
        }
        if format < 3 {
            guard !self.streams[position].isInMessage else { throw .headerInsideMessage(chunkStream: id) }
            return try self.readMessageHeader(format: format, position: position, basicLength: basicLength)
        }
        return try self.readContinuation(position: position, basicLength: basicLength)
    }

    // RTMP 1.0 §5.3.1.1: three forms, 2…63, 64…319 and 64…65599 (the last one little-endian).
    private func chunkStreamID(_ first: UInt8, at start: Int) -> (id: UInt32, length: Int)? {
        switch first & 0x3F {
        case 0:
            guard let second = self.input.getInteger(at: start + 1, as: UInt8.self) else { return nil }
            return (64 + UInt32(second), 2)
        case 1:
            guard let rest = self.input.getInteger(at: start + 1, endianness: .little, as: UInt16.self) else { return nil }
            return (64 + UInt32(rest), 3)
        case let id:
            return (UInt32(id), 1)
        }
    }

    private func position(of id: UInt32) -> Int? {
        for position in 0..<min(self.streams.count, Self.linearSearchLimit) where self.streams[position].id == id {
            return position
        }
        return self.streams.count > Self.linearSearchLimit ? self.positions[id] : nil
    }

    private static func headerLength(format: UInt8) -> Int {
        switch format {
        case 0: 11
        case 1: 7
        case 2: 3
        default: 0
        }
    }

    private func headerIsComplete(format: UInt8, at offset: Int) -> Bool {
        let available = self.input.writerIndex - offset
        let length = Self.headerLength(format: format)
        guard available >= length else { return false }
        return available >= length + 4 || self.input.getUInt24(at: offset) != 0xFF_FFFF
    }

    /// Reads a fmt 0, 1 or 2 header, the start of a message (RTMP 1.0 §5.3.1.2).
    private mutating func readMessageHeader(format: UInt8, position: Int, basicLength: Int) throws(RTMPError) -> Bool {
        guard self.headerIsComplete(format: format, at: self.input.readerIndex + basicLength) else { return false }
        self.input.moveReaderIndex(forwardBy: basicLength)
        var stream = self.streams[position].header
        var field: UInt32
        if format <= 1, let word = self.input.getInteger(at: self.input.readerIndex, as: UInt64.self) {
            // Timestamp, length and type with one read; the message's first byte or more of the header follows.
            field = UInt32(truncatingIfNeeded: word >> 40)
            stream.length = Int(word >> 16 & 0xFF_FFFF)
            stream.type = UInt8(truncatingIfNeeded: word >> 8)
            self.input.moveReaderIndex(forwardBy: 7)
        } else {
            field = self.input.readUInt24() ?? 0
            if format <= 1 {
                stream.length = Int(self.input.readUInt24() ?? 0)
                stream.type = self.input.readInteger(as: UInt8.self) ?? 0
            }
        }
        if format == 0 { stream.streamID = self.input.readInteger(endianness: .little, as: UInt32.self) ?? 0 }
        stream.isExtended = field == 0xFF_FFFF
        if stream.isExtended { field = self.input.readInteger(as: UInt32.self) ?? 0 }
        stream.timestampField = field
        stream.timestamp = format == 0 ? field : stream.timestamp &+ field
        self.streams[position].header = stream
        try self.beginMessage(position)
        return true
    }

    /// Reads a fmt 3 header (RTMP 1.0 §5.3.1.2.4). It continues a message, or starts a new one with the last header again.
    private mutating func readContinuation(position: Int, basicLength: Int) throws(RTMPError) -> Bool {
        var consumed = basicLength
        let header = self.streams[position].header
        if header.isExtended && self.peerRepeatsExtendedTimestamp {
            switch self.repeatedTimestamp(header, at: self.input.readerIndex + basicLength) {
            case .present: consumed += 4
            case .absent: self.peerRepeatsExtendedTimestamp = false
            case .undecided: return false
            }
        }
        self.input.moveReaderIndex(forwardBy: consumed)
        if self.streams[position].isInMessage {
            self.currentStream = position
            let stream = self.streams[position]
            self.currentRemaining = min(self.chunkSize, stream.length - stream.received)
        } else {
            // After a fmt 0 the delta is that chunk's timestamp itself.
            self.streams[position].header.timestamp &+= header.timestampField
            try self.beginMessage(position)
        }
        return true
    }

    private enum Repetition { case present, absent, undecided }

    /// Detects whether the peer repeats the extended timestamp on fmt 3, as some writers do: the next four bytes equal it.
    private func repeatedTimestamp(_ header: ChunkStream.Header, at offset: Int) -> Repetition {
        for byte in 0..<4 {
            guard let found = self.input.getInteger(at: offset + byte, as: UInt8.self) else { return .undecided }
            let shift = UInt32(24 - 8 * byte)
            if found != UInt8(truncatingIfNeeded: header.timestampField >> shift) { return .absent }
        }
        return .present
    }

    private mutating func beginMessage(_ position: Int) throws(RTMPError) {
        let length = self.streams[position].length
        let type = self.streams[position].header.type
        let limit = self.limits.values.messageBytes(MessageType(rawValue: type))
        if length > limit {
            // Metadata is worth less than the push that it describes. Its bytes are read and not kept.
            guard self.maySendMedia, MessageType(rawValue: type).isData else {
                throw .messageTooLarge(type: type, length: length, limit: limit)
            }
            self.streams[position].dropped = 0
        }
        guard self.maySendMedia || length <= self.limits.values.messageBytesBeforePublish else {
            throw .messageTooLargeBeforePublish(type: type, length: length, limit: self.limits.values.messageBytesBeforePublish)
        }
        self.currentStream = position
        self.currentRemaining = min(self.chunkSize, length)
        guard length > 0 else { return }
        guard self.partialMessages < self.limits.values.partialMessages else {
            throw .tooManyPartialMessages(limit: self.limits.values.partialMessages)
        }
        self.partialMessages += 1
        self.streams[position].isInMessage = true
    }

    // MARK: Payload

    /// Consumes payload bytes of the current chunk; returns the message they complete, if any. Requires non-empty input.
    private mutating func readPayload() throws(RTMPError) -> Message? {
        let position = self.currentStream
        let length = self.streams[position].length
        if let dropped = self.streams[position].dropped { return self.dropPayload(position, after: dropped) }
        // The whole message is in this one chunk and has arrived: take a slice, no copy. It counts like a message in pieces, so that the
        // limit does not depend on how the peer's bytes are split into reads.
        if self.currentRemaining == length, self.streams[position].received == 0, self.input.readableBytes >= length {
            guard self.partialBytes + length <= self.partialBytesLimit else { throw self.tooManyBytes }
            guard let slice = self.input.readSlice(length: length) else { return nil }
            self.currentRemaining = 0
            return self.finish(slice)
        }
        guard var piece = self.input.readSlice(length: min(self.currentRemaining, self.input.readableBytes)) else { return nil }
        let count = piece.readableBytes
        self.currentRemaining -= count
        self.partialBytes += count
        guard self.partialBytes <= self.partialBytesLimit else { throw self.tooManyBytes }
        let assembled = self.streams[position].received + count
        if self.streams[position].assembly.capacity < assembled { self.reserve(assembled, for: position) }
        self.streams[position].assembly.writeBuffer(&piece)
        guard self.streams[position].received == length else { return nil }
        self.partialBytes -= length
        let payload = self.removeAssembly(position)
        return self.finish(payload)
    }

    /// Reads payload bytes of a message that is too large to keep. Returns it without its payload once all have been read.
    private mutating func dropPayload(_ position: Int, after dropped: Int) -> Message? {
        let count = min(self.currentRemaining, self.input.readableBytes)
        self.input.moveReaderIndex(forwardBy: count)
        self.currentRemaining -= count
        let length = self.streams[position].length
        guard dropped + count == length else {
            self.streams[position].dropped = dropped + count
            return nil
        }
        self.streams[position].dropped = nil
        self.droppedBytes = length
        return self.finish(ByteBuffer())
    }

    private mutating func finish(_ payload: ByteBuffer) -> Message? {
        let position = self.currentStream
        if self.streams[position].isInMessage {
            self.streams[position].isInMessage = false
            self.partialMessages -= 1
        }
        let header = self.streams[position].header
        let message = Message(
            type: MessageType(rawValue: header.type), streamID: header.streamID, timestamp: header.timestamp, payload: payload)
        self.apply(message)
        return message
    }

    /// Applies control messages that change how later bytes are read (RTMP 1.0 §5.4.1, §5.4.2). Leaves malformed ones to the session.
    private mutating func apply(_ message: Message) {
        guard message.type == .setChunkSize || message.type == .abort,
            let value = message.payload.getInteger(at: message.payload.readerIndex, as: UInt32.self)
        else { return }
        if message.type == .setChunkSize {
            guard value > 0, value <= 0x7FFF_FFFF else { return }
            self.chunkSize = min(Int(value), Self.largestChunkSize)
        } else if let position = self.position(of: value), self.streams[position].isInMessage {
            self.streams[position].isInMessage = false
            self.partialMessages -= 1
            self.partialBytes -= self.streams[position].assembly.readableBytes
            self.streams[position].dropped = nil
            _ = self.removeAssembly(position)
        }
    }

    // MARK: Memory

    /// Lets go of the buffer that was read. An empty slice, or the beginning of a header, would keep the whole of it alive on an idle connection.
    private mutating func releaseRead() {
        let rest = self.input
        self.input = ByteBuffer()
        if rest.readableBytes > 0 { self.input.writeImmutableBuffer(rest) }
    }

    /// Grows the buffer of an unfinished message to hold the bytes received.
    private mutating func reserve(_ assembled: Int, for position: Int) {
        let length = self.streams[position].length
        // A publisher's first buffer fits a usual frame. Larger ones are four times the bytes received, so that little is copied twice.
        // Other peers get the bytes received, which ByteBuffer rounds up to a power of two.
        let wanted = self.maySendMedia ? max(4 * assembled, Self.firstCapacity) : assembled
        let before = self.streams[position].assembly.capacity
        self.streams[position].assembly.reserveCapacity(min(length, wanted))
        self.assemblyCapacity += self.streams[position].assembly.capacity - before
    }

    private mutating func removeAssembly(_ position: Int) -> ByteBuffer {
        self.assemblyCapacity -= self.streams[position].assembly.capacity
        return self.streams[position].removeAssembly()
    }

    /// Sets the limit for the current state. Before a publish it counts bytes received, not allocated: rounding up less than doubles them.
    private mutating func setPartialBytesLimit() {
        self.partialBytesLimit =
            self.maySendMedia
            ? self.limits.values.partialBytes
            : min(self.limits.values.partialBytes, self.limits.values.bytesBeforePublish - self.streams.count * Self.chunkStreamCost)
    }

    /// The error for too many bytes, which names the limit in force.
    private var tooManyBytes: RTMPError {
        self.partialBytesLimit < self.limits.values.partialBytes
            ? .tooManyBytesBeforePublish(limit: self.limits.values.bytesBeforePublish)
            : .tooManyPartialBytes(limit: self.limits.values.partialBytes)
    }
}

/// The state of one chunk stream between its chunks.
private struct ChunkStream {
    struct Header {
        var timestamp: UInt32 = 0
        /// The timestamp or delta as written, which fmt 3 repeats.
        var timestampField: UInt32 = 0
        var streamID: UInt32 = 0
        var length = 0
        var type: UInt8 = 0
        var isExtended = false
    }

    let id: UInt32
    var header = Header()
    var isInMessage = false
    var assembly = ByteBuffer()
    /// Bytes read of a message that is too large to keep; nil while messages are kept.
    var dropped: Int?

    init(id: UInt32) { self.id = id }

    var length: Int { self.header.length }
    /// Bytes of the unfinished message that have arrived.
    var received: Int { self.dropped ?? self.assembly.readableBytes }

    mutating func removeAssembly() -> ByteBuffer {
        let taken = self.assembly
        self.assembly = ByteBuffer()
        return taken
    }
}
