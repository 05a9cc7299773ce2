import LibC
internal import NIOCore

/// Writes decoded audio as 16-bit WAV to a file or to the standard output.
///
///     | "RIFF" | size UI32 LE | "WAVE" | "fmt " | 16 | 1 | channels | rate | bytes a second | bytes a frame | 16 | "data" | size | samples
///
/// Owned by one caller, used on one thread at a time; blocks on the disk or the pipe. Sizes are written at the end. A pipe cannot seek,
/// so there they hold their maximum from the start, which readers treat as "to the end". Source: Microsoft's and IBM's Multimedia
/// Programming Interface 1.0, RIFF.
package final class WAVWriter {
    /// The most bytes of samples in a file: sizes are 32 bits wide.
    package static let maxBytes: Int64 = 0xFFFF_FFFF - 36

    private let descriptor: CInt
    private let path: String
    private let sampleRate: Int
    private let channels: Int
    private let maxBytes: Int64
    /// Bytes of samples.
    private var written: Int64 = 0
    private var isFinished = false

    /// - Parameters:
    ///   - path: "-" is the standard output; an existing file is replaced.
    ///   - sampleRate: Hz, 1…768,000.
    ///   - channels: 1…24.
    package init(_ path: String, sampleRate: Int = 48_000, channels: Int = 1, maxBytes: Int64 = WAVWriter.maxBytes) throws(FFmpegError) {
        guard (1...768_000).contains(sampleRate) else { throw .overLimit(field: "sample rate", found: sampleRate, max: 768_000) }
        guard (1...24).contains(channels) else { throw .overLimit(field: "channels to write", found: channels, max: 24) }
        (self.path, self.sampleRate, self.channels) = (path, sampleRate, channels)
        self.maxBytes = min(max(0, maxBytes), Self.maxBytes)
        self.descriptor = path == "-" ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard self.descriptor >= 0 else { throw .file(operation: "create", path: path, errno: errno) }
        try self.write(self.header(dataBytes: Self.maxBytes))
    }

    deinit { if self.path != "-" { close(self.descriptor) } }

    private func header(dataBytes: Int64) -> ByteBuffer {
        var header = ByteBuffer()
        let frame = self.channels * 2
        header.writeString("RIFF")
        header.writeInteger(UInt32(clamping: dataBytes + 36), endianness: .little)
        header.writeString("WAVEfmt ")
        header.writeInteger(UInt32(16), endianness: .little)
        header.writeInteger(UInt16(1), endianness: .little)
        header.writeInteger(UInt16(clamping: self.channels), endianness: .little)
        header.writeInteger(UInt32(clamping: self.sampleRate), endianness: .little)
        header.writeInteger(UInt32(clamping: self.sampleRate * frame), endianness: .little)
        header.writeInteger(UInt16(clamping: frame), endianness: .little)
        header.writeInteger(UInt16(16), endianness: .little)
        header.writeString("data")
        header.writeInteger(UInt32(clamping: dataBytes), endianness: .little)
        return header
    }

    /// Adds audio of the writer's rate and channels. Throws `.unsupported` for any other, `.overLimit` when the file is full, `.file`
    /// when it cannot be written.
    package func write(_ pcm: PCM) throws(FFmpegError) {
        guard pcm.sampleRate == self.sampleRate, pcm.channels == self.channels else {
            throw .unsupported("writing \(pcm.channels) channels at \(pcm.sampleRate) Hz")
        }
        let bytes = Int64(pcm.count * self.channels * 2)
        guard self.written + bytes <= self.maxBytes else {
            throw .overLimit(field: "WAV file (bytes)", found: Int(self.written + bytes), max: Int(self.maxBytes))
        }
        var buffer = ByteBuffer()
        buffer.reserveCapacity(Int(bytes))
        for index in 0..<pcm.count {
            for plane in pcm.planes {
                let sample = plane[index]
                buffer.writeInteger(sample.isNaN ? 0 : Int16((max(-1, min(1, sample)) * 32_767).rounded()), endianness: .little)
            }
        }
        try self.write(buffer)
        self.written += bytes
    }

    /// Writes the sizes. Nothing can be written afterwards; without this call the header claims the maximum size.
    package func finish() throws(FFmpegError) {
        guard !self.isFinished else { return }
        self.isFinished = true
        // The standard output may be someone else's file, opened for appending.
        guard self.path != "-", lseek(self.descriptor, 0, SEEK_SET) == 0 else { return }
        try self.write(self.header(dataBytes: self.written))
    }

    private func write(_ bytes: ByteBuffer) throws(FFmpegError) {
        var offset = 0
        while offset < bytes.readableBytes {
            let (count, code) = bytes.withUnsafeReadableBytes { source -> (Int, CInt) in
                let rest = UnsafeRawBufferPointer(rebasing: source[offset...])
                let count = LibC.write(self.descriptor, rest.baseAddress, rest.count)
                return (count, errno)
            }
            if count > 0 {
                offset += count
            } else if code != EINTR {
                throw .file(operation: "write", path: self.path, errno: count < 0 ? code : EIO)
            }
        }
    }
}
