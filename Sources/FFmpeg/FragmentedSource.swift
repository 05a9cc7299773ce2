internal import CFFmpeg
import LibC
internal import Media

/// Reads a fragmented MP4 file up to the end of its last whole fragment.
///
/// Owned by a finisher, used on one thread; blocks on the disk.
final class FragmentedSource {
    let context: UnsafeMutablePointer<AVFormatContext>
    /// Bytes up to the end of the last whole fragment, and of the whole file.
    let wholeBytes: Int64
    let fileBytes: Int64
    private let io: UnsafeMutablePointer<AVIOContext>
    private let file: File

    /// The descriptor with its position. libav holds it unretained, for as long as the source lives.
    private final class File {
        let descriptor: CInt
        var end: Int64 = 0
        var position: Int64 = 0

        init(_ path: String) throws(FFmpegError) {
            self.descriptor = open(path, O_RDONLY | O_CLOEXEC)
            guard self.descriptor >= 0 else { throw .file(operation: "open", path: path, errno: errno) }
        }

        deinit { close(self.descriptor) }

        func read(_ bytes: UnsafeMutablePointer<UInt8>, _ count: Int32) -> Int32 {
            let rest = min(Int64(count), self.end - self.position)
            guard rest > 0 else { return earshot_error_eof }
            while true {
                let got = pread(self.descriptor, bytes, Int(rest), off_t(self.position))
                if got > 0 {
                    self.position += Int64(got)
                    return Int32(got)
                }
                if got == 0 { return earshot_error_eof }
                guard errno == EINTR else { return earshot_error(errno) }
            }
        }

        func seek(_ offset: Int64, _ whence: Int32) -> Int64 {
            switch whence & ~Int32(AVSEEK_FORCE) {
            case Int32(AVSEEK_SIZE): return self.end
            case SEEK_SET: self.position = offset
            case SEEK_CUR: self.position &+= offset
            case SEEK_END: self.position = self.end &+ offset
            default: return Int64(earshot_error(EINVAL))
            }
            return self.position
        }
    }

    private static let bufferSize: Int32 = 256 << 10

    init(_ path: String) throws(FFmpegError) {
        Library.quiet
        let file = try File(path)
        self.file = file
        var status = stat()
        guard fstat(file.descriptor, &status) == 0 else { throw .file(operation: "stat", path: path, errno: errno) }
        self.fileBytes = Int64(status.st_size)
        self.wholeBytes = try Self.endOfLastFragment(file.descriptor, size: self.fileBytes, path)
        file.end = self.wholeBytes
        let memory = av_malloc(Int(Self.bufferSize))
        let io = memory.flatMap { memory in
            earshot_avio_reader(
                memory.assumingMemoryBound(to: UInt8.self), Self.bufferSize, Unmanaged.passUnretained(file).toOpaque(),
                { opaque, bytes, count in
                    guard let opaque, let bytes else { return earshot_error_eof }
                    return Unmanaged<File>.fromOpaque(opaque).takeUnretainedValue().read(bytes, count)
                },
                { opaque, offset, whence in
                    guard let opaque else { return -1 }
                    return Unmanaged<File>.fromOpaque(opaque).takeUnretainedValue().seek(offset, whence)
                })
        }
        guard let io else {
            av_free(memory)
            throw .library(operation: "avio_alloc_context", code: earshot_error_no_memory, text: FFmpegError.text(earshot_error_no_memory))
        }
        var context = avformat_alloc_context()
        context?.pointee.pb = io
        // The file is complete, so nothing has to be guessed from the coded data.
        context?.pointee.flags |= AVFMT_FLAG_NOPARSE | AVFMT_FLAG_NOFILLIN | AVFMT_FLAG_CUSTOM_IO
        // On failure it frees the context but not the I/O.
        let code = avformat_open_input(&context, nil, av_find_input_format("mp4"), nil)
        guard code >= 0, let context else {
            Self.free(io)
            throw .library(operation: "avformat_open_input \(path)", code: code, text: FFmpegError.text(code))
        }
        self.context = context
        self.io = io
    }

    deinit {
        var context: UnsafeMutablePointer<AVFormatContext>? = self.context
        avformat_close_input(&context)
        Self.free(self.io)
    }

    private static func free(_ io: UnsafeMutablePointer<AVIOContext>) {
        av_freep(&io.pointee.buffer)
        var io: UnsafeMutablePointer<AVIOContext>? = io
        avio_context_free(&io)
    }

    /// Bytes read so far, roughly.
    var position: Int64 { min(self.file.position, self.wholeBytes) }

    /// Walks the top-level boxes (ISO/IEC 14496-12 §4.2): a fragment counts once its mdat is whole.
    private static func endOfLastFragment(_ descriptor: CInt, size: Int64, _ path: String) throws(FFmpegError) -> Int64 {
        var offset: Int64 = 0
        var end: Int64 = 0
        var hasMovie = false
        var isFragment = false
        while size - offset >= 8 {
            var header = [UInt8](repeating: 0, count: 16)
            let got = pread(descriptor, &header, 16, off_t(offset))
            guard got >= 8 else {
                if got < 0 { throw .file(operation: "read", path: path, errno: errno) }
                break
            }
            let number = { (range: Range<Int>) in header[range].reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
            var length = number(0..<4)
            if length == 1 { length = got == 16 ? number(8..<16) : 0 }
            // 0 means "to the end of the file", which our fragments never use. Lengths below a header are invalid too.
            guard length >= 8, length <= UInt64(size - offset) else { break }
            offset += Int64(length)
            switch String(decoding: header[4..<8], as: UTF8.self) {
            case "moov": hasMovie = true
            case "moof": isFragment = true
            case "mdat" where isFragment:
                isFragment = false
                end = offset
            default: break
            }
        }
        guard hasMovie, end > 0 else { throw .media(.mismatch(expected: "a movie box and a whole fragment in \(path)", found: "none")) }
        return end
    }
}
