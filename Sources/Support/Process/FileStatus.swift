import CFileStatus

/// The kind, permissions, size and number of an open file. A value.
package struct FileStatus {
    package let isRegular: Bool
    /// Permissions: the lowest nine bits of the mode.
    package let permissions: UInt32
    /// Bytes.
    package let size: Int64
    /// The file's inode number; it differs once the file has been replaced.
    package let inode: UInt64

    /// Returns nil when `fstat` fails.
    package init?(descriptor: Int32) {
        var isRegular: Int32 = 0
        var permissions: UInt32 = 0
        var size: Int64 = 0
        var inode: UInt64 = 0
        guard earshot_status_of_file(descriptor, &isRegular, &permissions, &size, &inode) == 0 else { return nil }
        self.isRegular = isRegular != 0
        self.permissions = permissions
        self.size = size
        self.inode = inode
    }
}
