#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif
// Once the compiler has read Foundation, it attributes `stat` to CoreFoundation, not the C library.
#if canImport(CoreFoundation)
internal import CoreFoundation
#endif

/// The kind, permissions and size of an open file.
struct FileStatus {
    let isRegular: Bool
    /// Permissions: the lowest nine bits of the mode.
    let permissions: UInt32
    /// Bytes.
    let size: Int64

    /// Returns nil when `fstat` fails.
    init?(descriptor: Int32) {
        var info = stat()
        guard fstat(descriptor, &info) == 0 else { return nil }
        self.isRegular = info.st_mode & S_IFMT == S_IFREG
        self.permissions = UInt32(info.st_mode & 0o777)
        self.size = Int64(info.st_size)
    }
}
