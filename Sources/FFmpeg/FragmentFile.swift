import LibC
package import NIOCore

/// A recording in progress: an MP4 file to which whole fragments are appended.
///
/// Owned by one recorder, used on one thread at a time; all calls block on the disk. Appended fragments survive a kill of this process
/// at once, and a power loss up to the last sync. A partly written fragment is cut off again, so the file always ends with a whole one
/// and can grow further when there is room.
package final class FragmentFile {
    /// When written bytes are forced to the disk.
    package enum Sync: Sendable, Hashable {
        /// Left to the kernel: after about half a minute.
        case never
        case everyFragment
        case everyMs(Int64)
    }

    package let path: String
    /// Bytes of the whole fragments and the initialization segment.
    package private(set) var bytes: Int64 = 0
    package private(set) var fragments = 0
    private let policy: Sync
    private var descriptor: CInt
    private var lastSyncMs: Int64?
    /// Bytes that are known to be on the disk.
    private var synced: Int64 = 0

    /// Creates the file, which must not exist, readable by owner and group. Throws `.file` and leaves no file behind then.
    package init(path: String, initialization: ByteBuffer, sync policy: Sync) throws(FFmpegError) {
        self.path = path
        self.policy = policy
        self.descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o640)
        guard self.descriptor >= 0 else { throw .file(operation: "create", path: path, errno: errno) }
        do throws(FFmpegError) {
            try self.write(initialization)
            if policy != .never {
                try self.sync()
                try FileSystem.syncDirectory(of: path)
            }
        } catch {
            unlink(path)
            throw error
        }
    }

    deinit {
        if self.descriptor >= 0 { LibC.close(self.descriptor) }
    }

    /// Appends a fragment and syncs as the policy requires; `nowMs` is any clock's time in milliseconds.
    ///
    /// Throws `.file` with operation "write" (the file is as before), or "sync" (the fragment is in the file, but may not be on the disk).
    package func append(_ fragment: ByteBuffer, nowMs: Int64) throws(FFmpegError) {
        try self.write(fragment)
        self.fragments += 1
        switch self.policy {
        case .never: break
        case .everyFragment: try self.sync()
        case .everyMs(let interval):
            guard let last = self.lastSyncMs else {
                self.lastSyncMs = nowMs
                return
            }
            guard nowMs - last >= interval else { return }
            self.lastSyncMs = nowMs
            try self.sync()
        }
    }

    /// Forces pending bytes to the disk.
    package func sync() throws(FFmpegError) {
        guard self.synced < self.bytes else { return }
        guard fdatasync(self.descriptor) == 0 else { throw .file(operation: "sync", path: self.path, errno: errno) }
        self.synced = self.bytes
    }

    /// Syncs, unless the policy is `.never`, and closes. Nothing can be appended afterwards.
    package func close() throws(FFmpegError) {
        guard self.descriptor >= 0 else { return }
        defer {
            LibC.close(self.descriptor)
            self.descriptor = -1
        }
        if self.policy != .never { try self.sync() }
    }

    private func write(_ buffer: ByteBuffer) throws(FFmpegError) {
        let code = buffer.withUnsafeReadableBytes { Self.write($0, to: self.descriptor) }
        guard code == 0 else {
            // Cut off a partial write. Readers stop at half a fragment and would lose everything after it.
            _ = ftruncate(self.descriptor, off_t(self.bytes))
            lseek(self.descriptor, off_t(self.bytes), SEEK_SET)
            throw .file(operation: "write", path: self.path, errno: code)
        }
        self.bytes += Int64(buffer.readableBytes)
    }

    /// Returns 0, or the errno of the failed write.
    private static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: CInt) -> CInt {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = LibC.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if count == 0 || errno != EINTR {
                return count == 0 ? EIO : errno
            }
        }
        return 0
    }
}

/// Calls shared by several kinds of file.
enum FileSystem {
    /// Syncs the directory of `path`, which holds the file's name.
    static func syncDirectory(of path: String) throws(FFmpegError) {
        let directory = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .file(operation: "open", path: directory, errno: errno) }
        defer { close(descriptor) }
        // Some file systems cannot sync directories: EINVAL.
        guard fsync(descriptor) == 0 || errno == EINVAL else { throw .file(operation: "sync", path: directory, errno: errno) }
    }

    /// Forces a whole file to the disk.
    static func sync(_ path: String) throws(FFmpegError) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .file(operation: "open", path: path, errno: errno) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw .file(operation: "sync", path: path, errno: errno) }
    }
}
