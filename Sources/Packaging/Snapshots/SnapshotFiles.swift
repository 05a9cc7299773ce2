import LibC
import NIOCore
package import ServerConfiguration
import Support

/// Snapshot files, laid out like recordings. A value; its calls block.
package struct SnapshotFiles: Sendable {
    package let folder: RecordingFolder
    /// Free space to keep on the disk, the same as for recordings.
    private let minFree: @Sendable () -> Int64

    init(_ live: Live<ServerConfig>) { self.init(live.current) { Int64(live.recording.minFreeBytes) } }

    package init(_ config: ServerConfig) { self.init(config) { Int64(config.recording.minFreeBytes) } }

    private init(_ config: ServerConfig, _ minFree: @escaping @Sendable () -> Int64) {
        self.folder = RecordingFolder(path: config.snapshots.directory ?? "\(config.data.directory)/snapshots")
        self.minFree = minFree
    }

    /// Writes the whole file or nothing. Returns nil on success.
    func save(_ bytes: ByteBuffer, as file: String) -> RecordingFolder.Failure? {
        let path = self.folder.absolute(file)
        let minFreeBytes = self.minFree()
        if minFreeBytes > 0, let free = self.folder.freeBytes, free - Int64(bytes.readableBytes) < minFreeBytes {
            return RecordingFolder.Failure(operation: "write", path: path, code: ENOSPC)
        }
        do throws(RecordingFolder.Failure) {
            try self.folder.prepare(for: file)
        } catch {
            return error
        }
        let temporary = path + ".tmp"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return RecordingFolder.Failure(operation: "create", path: temporary, code: errno) }
        var code: Int32 = 0
        bytes.withUnsafeReadableBytes { bytes in
            var rest = bytes[...]
            while code == 0, !rest.isEmpty {
                let count = write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR { code = errno }
            }
        }
        if close(descriptor) != 0, code == 0 { code = errno }
        if code == 0, rename(temporary, path) != 0 { code = errno }
        guard code != 0 else { return nil }
        unlink(temporary)
        return RecordingFolder.Failure(operation: "write", path: path, code: code)
    }
}

/// The size of a JPEG picture, from its frame header (ITU-T T.81 §B.2.2). A value.
struct JPEGSize: Equatable {
    /// Pixels.
    let width: Int
    let height: Int

    /// Nil when there is no frame header.
    init?(_ jpeg: ByteBuffer) {
        var at = jpeg.readerIndex + 2
        while let mark = jpeg.getInteger(at: at, as: UInt8.self), mark == 0xFF, let kind = jpeg.getInteger(at: at + 1, as: UInt8.self),
            let length = jpeg.getInteger(at: at + 2, as: UInt16.self), length >= 2
        {
            // Frame headers are C0 to CF, except DHT, JPG and DAC.
            if (0xC0...0xCF).contains(kind), ![0xC4, 0xC8, 0xCC].contains(kind) {
                guard let height = jpeg.getInteger(at: at + 5, as: UInt16.self), let width = jpeg.getInteger(at: at + 7, as: UInt16.self),
                    width > 0, height > 0
                else { return nil }
                self.width = Int(width)
                self.height = Int(height)
                return
            }
            at += 2 + Int(length)
        }
        return nil
    }
}
