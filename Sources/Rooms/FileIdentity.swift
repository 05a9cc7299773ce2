#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
// Where the compiler has read Foundation before this file, it holds this module, not the C library, to be the one that defines `stat`.
#if canImport(CoreFoundation)
import CoreFoundation
#endif

/// Which file a path names: its device and inode. A value.
struct FileIdentity: Equatable, Sendable {
    private let device: UInt64
    private let inode: UInt64
    /// Bytes.
    let size: Int64

    /// Nil when there is no such file.
    init?(path: String) {
        var info = stat()
        guard stat(path, &info) == 0 else { return nil }
        self.device = UInt64(truncatingIfNeeded: info.st_dev)
        self.inode = UInt64(truncatingIfNeeded: info.st_ino)
        self.size = Int64(info.st_size)
    }

    static func == (left: Self, right: Self) -> Bool { left.device == right.device && left.inode == right.inode }
}
