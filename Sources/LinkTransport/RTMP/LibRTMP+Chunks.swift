internal import NIOCore
internal import RTMP

extension LibRTMP {
    /// Feeds chunks through the guard to librtmp until a message is complete. nil until more bytes arrive.
    ///
    /// Throws when the guard rejects a chunk; end the connection then.
    mutating func nextMessage(in input: inout ByteBuffer, chunks: inout ChunkValidator) throws(LinkError) -> Message? {
        while let chunk = try chunks.nextChunk(in: input) {
            let message: Message?
            if let missing = chunk.missingTimestamp {
                var whole = ByteBuffer()
                whole.writeImmutableBuffer(input.getSlice(at: input.readerIndex, length: missing.at) ?? ByteBuffer())
                whole.writeInteger(missing.value)
                let rest = chunk.length - missing.at
                whole.writeImmutableBuffer(input.getSlice(at: input.readerIndex + missing.at, length: rest) ?? ByteBuffer())
                message = try self.read(whole.readableBytes, of: whole)
            } else {
                message = try self.read(chunk.length, of: input)
            }
            input.moveReaderIndex(forwardBy: chunk.length)
            if let message { return message }
        }
        input.discardReadBytes()
        return nil
    }
}
