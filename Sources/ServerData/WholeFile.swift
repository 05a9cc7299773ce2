import LibC

/// A small file of the data directory, written whole: others see the former content or the new one. Blocks.
enum WholeFile {
    /// Writes a temporary file and renames it; it never has more permissions than `mode`. Returns the failed file and errno; nil when it is done.
    static func replace(_ bytes: [UInt8], to path: String, mode: mode_t) -> (path: String, code: Int32)? {
        let partial = path + ".new"
        unlink(partial)
        let descriptor = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard descriptor >= 0 else { return (partial, errno) }
        let isWritten = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) } == bytes.count && fsync(descriptor) == 0
        let code = errno
        close(descriptor)
        guard isWritten else {
            unlink(partial)
            return (partial, code)
        }
        return rename(partial, path) == 0 ? nil : (path, errno)
    }
}
