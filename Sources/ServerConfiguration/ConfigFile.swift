import LibC
import Support

/// Reads small files whole; errors quote the system's text. Blocks; for start and reload only.
package enum ConfigFile {
    static let maxBytes = 1 << 20

    /// Reads the file at `path`. `regular` also refuses pipes and devices, which could block.
    static func read(_ path: String, regular: Bool = false) throws(ValueProblem) -> [UInt8] {
        var status = stat()
        guard stat(path, &status) == 0 else { throw problem(path) }
        let kind = status.st_mode & S_IFMT
        if kind == S_IFDIR { throw ValueProblem("cannot read \(path): it is a folder") }
        if regular, kind != S_IFREG { throw ValueProblem("cannot read \(path): it is not a regular file") }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw problem(path) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = LibC.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw problem(path) }
            guard count > 0 else { return bytes }
            bytes += buffer[..<count]
            guard bytes.count <= maxBytes else {
                throw ValueProblem("cannot read \(path): it is larger than \(ConfigUnits.size(bytes: maxBytes))")
            }
        }
    }

    /// Waits until the file has not changed for half a second, five seconds at most: a program may be writing it.
    package static func waitUntilWritten(_ path: String) async {
        var last: (Int, Int, Int)?
        for _ in 0..<10 {
            var status = stat()
            guard stat(path, &status) == 0 else { return }
            var now = timespec()
            clock_gettime(CLOCK_REALTIME, &now)
            let ageMs =
                (Int(now.tv_sec) - Int(status.st_mtim.tv_sec)) * 1_000 + (Int(now.tv_nsec) - Int(status.st_mtim.tv_nsec)) / 1_000_000
            let mark = (Int(status.st_size), Int(status.st_mtim.tv_sec), Int(status.st_mtim.tv_nsec))
            // A modification time in the future counts as old.
            if !(0..<500).contains(ageMs) { return }
            if let last, last == mark { return }
            last = mark
            try? await Task.sleep(for: .milliseconds(500))
        }
    }

    /// Whether something other than a folder is at `path`.
    static func isNotFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFDIR
    }

    private static func problem(_ path: String) -> ValueProblem {
        ValueProblem("cannot read \(path): \(errorText(errno))")
    }
}
