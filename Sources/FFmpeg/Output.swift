internal import CFFmpeg
import LibC
internal import NIOCore

/// A container written to memory. Owned by a muxer; used by one thread at a time.
final class Output {
    let context: UnsafeMutablePointer<AVFormatContext>
    private let io: UnsafeMutablePointer<AVIOContext>
    private let sink: Sink

    /// Bytes from libav that ``Output/popBytes()`` has not returned yet. libav holds it unretained, for as long as the `Output` lives.
    private final class Sink {
        var bytes = ByteBuffer()
        /// Bytes that earlier calls of ``Output/popBytes()`` returned.
        var base: Int64 = 0
        /// The next byte's index in `bytes`: the end, except when sizes are filled in.
        var position = 0

        func write(_ source: UnsafeRawBufferPointer) {
            self.position += self.bytes.setBytes(source, at: self.position)
            if self.position > self.bytes.writerIndex { self.bytes.moveWriterIndex(to: self.position) }
        }

        /// Seeks only within `bytes`.
        func seek(_ offset: Int64, _ whence: Int32) -> Int64 {
            let start: Int64
            switch whence & ~Int32(AVSEEK_FORCE) {
            case SEEK_SET: start = 0
            case SEEK_CUR: start = self.base + Int64(self.position)
            default: return Int64(earshot_error(EINVAL))
            }
            let index = start.addingReportingOverflow(offset).partialValue.subtractingReportingOverflow(self.base).partialValue
            guard index >= 0, index <= Int64(self.bytes.writerIndex) else { return Int64(earshot_error(EINVAL)) }
            self.position = Int(index)
            return self.base + index
        }
    }

    /// Bytes.
    private static let bufferSize: Int32 = 16 << 10

    /// `format` is libavformat's short name.
    init(format: String) throws(FFmpegError) {
        Library.quiet
        var context: UnsafeMutablePointer<AVFormatContext>?
        try check(avformat_alloc_output_context2(&context, nil, format, nil), "avformat_alloc_output_context2 (\(format))")
        self.context = try allocated(context, "avformat_alloc_output_context2")
        let sink = Sink()
        self.sink = sink
        let memory = av_malloc(Int(Self.bufferSize))
        let io = memory.flatMap { memory in
            earshot_avio_writer(
                memory.assumingMemoryBound(to: UInt8.self), Self.bufferSize, Unmanaged.passUnretained(sink).toOpaque(),
                { opaque, bytes, count in
                    guard let opaque, let bytes, count > 0 else { return 0 }
                    let sink = Unmanaged<Sink>.fromOpaque(opaque).takeUnretainedValue()
                    sink.write(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
                    return count
                },
                { opaque, offset, whence in
                    guard let opaque else { return -1 }
                    return Unmanaged<Sink>.fromOpaque(opaque).takeUnretainedValue().seek(offset, whence)
                })
        }
        guard let io else {
            av_free(memory)
            avformat_free_context(self.context)
            throw .library(operation: "avio_alloc_context", code: earshot_error_no_memory, text: FFmpegError.text(earshot_error_no_memory))
        }
        self.io = io
        // Large writes bypass the buffer. Muxers see an unseekable stream: they seek only to fill in sizes.
        io.pointee.seekable = 0
        io.pointee.direct = 1
        self.context.pointee.pb = io
    }

    deinit {
        avformat_free_context(self.context)
        av_freep(&self.io.pointee.buffer)
        var io: UnsafeMutablePointer<AVIOContext>? = self.io
        avio_context_free(&io)
    }

    /// Adds a stream; indexes count from 0.
    func addStream() throws(FFmpegError) -> UnsafeMutablePointer<AVStream> {
        try allocated(avformat_new_stream(self.context, nil), "avformat_new_stream")
    }

    func writeHeader(_ options: [(String, String)]) throws(FFmpegError) {
        var dictionary: OpaquePointer?
        defer { av_dict_free(&dictionary) }
        for (key, value) in options { try check(av_dict_set(&dictionary, key, value, 0), "av_dict_set") }
        try check(avformat_write_header(self.context, &dictionary), "avformat_write_header")
    }

    /// Sets one of the muxer's own options while it runs.
    func set(_ option: String, _ value: String) throws(FFmpegError) {
        try check(av_opt_set(self.context.pointee.priv_data, option, value, 0), "av_opt_set (\(option))")
    }

    func write(_ packet: borrowing Packet) throws(FFmpegError) {
        try check(av_write_frame(self.context, packet.pointer), "av_write_frame")
    }

    /// Makes the muxer write its pending data.
    func flush() throws(FFmpegError) { try check(av_write_frame(self.context, nil), "av_write_frame (flush)") }

    /// Returns all bytes written since the last call.
    func popBytes() -> ByteBuffer {
        avio_flush(self.io)
        let bytes = self.sink.bytes
        self.sink.bytes = ByteBuffer()
        self.sink.base += Int64(bytes.readableBytes)
        self.sink.position = 0
        return bytes
    }

    /// Reserves bytes for the next writes, so the buffer is not copied as it grows.
    func reserve(_ count: Int) { self.sink.bytes.reserveCapacity(minimumWritableBytes: count) }
}
