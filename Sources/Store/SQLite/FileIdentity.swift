// CoreFoundation, not the C library, defines `stat` if the compiler has already read Foundation.
import LibC

#if canImport(CoreFoundation)
import CoreFoundation
#endif

/// The device and inode of the file at a path; both decide equality. A value.
struct FileIdentity: Equatable, Sendable {
    private let device: UInt64
    private let inode: UInt64
    /// Bytes.
    let size: Int64

    /// Nil if the file does not exist or `stat` fails.
    init?(path: String) {
        var info = stat()
        guard stat(path, &info) == 0 else { return nil }
        self.device = UInt64(truncatingIfNeeded: info.st_dev)
        self.inode = UInt64(truncatingIfNeeded: info.st_ino)
        self.size = Int64(info.st_size)
    }

    static func == (left: Self, right: Self) -> Bool { left.device == right.device && left.inode == right.inode }
}
