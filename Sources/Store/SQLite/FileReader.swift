import LibC

/// Reads a file from its beginning and closes it on deinit. Blocks.
final class FileReader {
    private let path: String
    private let descriptor: Int32

    /// Nil if the file cannot be opened.
    init?(path: String) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        self.path = path
        self.descriptor = descriptor
    }

    deinit { close(self.descriptor) }

    /// Reads `count` bytes, or fewer at the end of the file.
    func read(_ count: Int) throws(FileFailure) -> [UInt8] {
        var failure: FileFailure?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, done in
            while done < count {
                let more = readBytes(
                    self.descriptor, UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[done...]))
                if more > 0 {
                    done += more
                } else if more == 0 {
                    return
                } else if errno != EINTR {
                    failure = FileFailure("read", self.path)
                    return
                }
            }
        }
        if let failure { throw failure }
        return bytes
    }
}

/// Calls the system's `read`, which the method of the same name hides.
private func readBytes(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
    read(descriptor, buffer.baseAddress, buffer.count)
}
