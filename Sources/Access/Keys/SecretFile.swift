internal import Crypto
import LibC
import Support

/// A small file with the server's own secrets in the data directory. Only its owner may access it. All calls block; for start-up.
struct SecretFile {
    let path: String
    private let directory: String
    /// Advice to the operator when the file is unusable.
    private let advice: String

    /// Bytes; far more than such a file needs.
    private static let limit = 64 << 10
    private static let keyBytes = 32

    init(_ name: String, in directory: String, advice: String) {
        self.directory = directory
        self.path = directory.hasSuffix("/") ? "\(directory)\(name)" : "\(directory)/\(name)"
        self.advice = advice
    }

    /// The key of 32 bytes that the file holds; creates one when there is none. Throws ``KeyFileError``.
    static func key(_ name: String, in directory: String, advice: String) throws -> [UInt8] {
        let file = SecretFile(name, in: directory, advice: advice)
        if let key = try file.key() { return key }
        try DataDirectory.prepare(directory)
        try file.make(SymmetricKey(size: .bits256).withUnsafeBytes { Array($0) })
        guard let key = try file.key() else { throw KeyFileError("\(file.path) vanished while it was read; start again") }
        return key
    }

    /// Nil when there is no such file. Throws ``KeyFileError``.
    static func existingKey(_ name: String, in directory: String, advice: String) throws(KeyFileError) -> [UInt8]? {
        try SecretFile(name, in: directory, advice: advice).key()
    }

    private func key() throws(KeyFileError) -> [UInt8]? {
        guard let bytes = try self.read() else { return nil }
        guard bytes.count == Self.keyBytes else {
            throw KeyFileError("\(self.path) has \(bytes.count) bytes, expected \(Self.keyBytes); \(self.advice)")
        }
        return bytes
    }

    /// Nil when there is no file.
    func read() throws(KeyFileError) -> [UInt8]? {
        let descriptor = open(self.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw KeyFileError("cannot read the keys in \(self.path): \(errorText(errno)); make it readable for the server's user")
        }
        defer { close(descriptor) }
        guard let info = FileStatus(descriptor: descriptor), info.isRegular else {
            throw KeyFileError("\(self.path) is not a regular file; move it away: the server then creates new keys")
        }
        guard info.permissions & 0o077 == 0 else {
            let mode = String(info.permissions, radix: 8)
            throw KeyFileError(
                "\(self.path) holds secret keys and has mode 0\(mode), open to other users; run: chmod 600 \(self.path)"
                    + " (if others may have read it, remove it instead: the server then creates new keys)")
        }
        guard info.size <= Self.limit else {
            throw KeyFileError("\(self.path) has \(info.size) bytes and is not a key file; \(self.advice)")
        }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while bytes.count <= Self.limit {
            let count = Self.retrying { readBytes(descriptor, &buffer) }
            guard count >= 0 else { throw KeyFileError("cannot read the keys in \(self.path): \(errorText(errno))") }
            if count == 0 { break }
            bytes += buffer[..<count]
        }
        return bytes
    }

    /// Creates the file completely or not at all: writes under another name, syncs, then links it to its name. An existing file stays.
    func make(_ bytes: [UInt8]) throws(KeyFileError) {
        let temporary = "\(self.path).\(getpid()).\(SecretText.random().prefix(8))"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw KeyFileError("cannot create \(temporary) for new keys: \(errorText(errno)) (setting data.directory)")
        }
        defer { unlink(temporary) }
        var failure: String?
        var written = 0
        while written < bytes.count, failure == nil {
            let count = Self.retrying { bytes[written...].withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) } }
            if count > 0 { written += count } else { failure = errorText(errno) }
        }
        if failure == nil, fsync(descriptor) != 0 { failure = errorText(errno) }
        if close(descriptor) != 0, failure == nil { failure = errorText(errno) }
        if failure == nil, link(temporary, self.path) != 0, errno != EEXIST { failure = errorText(errno) }
        if let failure { throw KeyFileError("cannot write new keys to \(self.path): \(failure) (setting data.directory)") }
        // Syncs the folder, so that the name survives a power cut too.
        let folder = open(self.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if folder >= 0 {
            _ = fsync(folder)
            close(folder)
        }
    }

    private static func retrying(_ call: () -> Int) -> Int {
        while true {
            let result = call()
            if result >= 0 || errno != EINTR { return result }
        }
    }
}

private func readBytes(_ descriptor: Int32, _ buffer: inout [UInt8]) -> Int {
    buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
}
