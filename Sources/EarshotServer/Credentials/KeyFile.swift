#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif
#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// `keys.json` in the data directory: the keys that the server made for itself. All calls block; for start-up.
struct KeyFile {
    let path: String
    private let directory: String

    /// What the file holds. Keys that a later version adds are absent from an older file.
    struct Contents: Codable {
        var version: Int?
        var key: String?
        var jwtKey: String?
        var webhookKey: String?
    }

    /// Contents and where they came from, for messages.
    struct Stored {
        let contents: Contents
        let path: String

        /// Throws ``KeyFileError`` when the key is absent or too short.
        func take(_ name: String, _ member: KeyPath<Contents, String?>, least: Int) throws(KeyFileError) -> String {
            guard let key = self.contents[keyPath: member] else {
                throw KeyFileError("\(self.path) has no \"\(name)\"; \(KeyFile.advice)")
            }
            guard (least...512).contains(key.utf8.count) else {
                throw KeyFileError("\"\(name)\" in \(self.path) has \(key.utf8.count) bytes, expected \(least) to 512; \(KeyFile.advice)")
            }
            return key
        }
    }

    /// Bytes: far more than the file ever has.
    private static let limit = 64 << 10
    fileprivate static let advice =
        "put the file back from a backup, or remove it: new keys are made then, and URLs and tokens handed out before stop working"

    init(directory: String) {
        self.directory = directory
        self.path = directory.hasSuffix("/") ? "\(directory)keys.json" : "\(directory)/keys.json"
    }

    /// The file's keys; makes the file first when there is none. Of several servers that start at once on one directory, one makes it.
    func readOrMake() throws -> Stored {
        if let stored = try self.read() { return stored }
        try DataDirectory.prepare(self.directory)
        try self.make()
        guard let stored = try self.read() else { throw KeyFileError("\(self.path) vanished while it was read; start again") }
        return stored
    }

    /// Nil when there is no file.
    private func read() throws(KeyFileError) -> Stored? {
        let descriptor = open(self.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw KeyFileError("cannot read the keys in \(self.path): \(Self.errorText()); make it readable for the server's user")
        }
        defer { close(descriptor) }
        guard let info = FileStatus(descriptor: descriptor), info.isRegular else {
            throw KeyFileError("\(self.path) is not a regular file; move it away: new keys are made then")
        }
        guard info.permissions & 0o077 == 0 else {
            let mode = String(info.permissions, radix: 8)
            throw KeyFileError(
                "\(self.path) holds secret keys and has mode 0\(mode), open to other users; run: chmod 600 \(self.path)"
                    + " (if others may have read it, remove it instead: new keys are made then)")
        }
        guard info.size <= Self.limit else {
            throw KeyFileError("\(self.path) has \(info.size) bytes and is no key file; \(Self.advice)")
        }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while bytes.count <= Self.limit {
            let count = Self.retrying { readBytes(descriptor, &buffer) }
            guard count >= 0 else { throw KeyFileError("cannot read the keys in \(self.path): \(Self.errorText())") }
            if count == 0 { break }
            bytes += buffer[..<count]
        }
        do {
            return Stored(contents: try JSONDecoder().decode(Contents.self, from: Data(bytes)), path: self.path)
        } catch {
            // The decoder's own words could quote a key.
            throw KeyFileError("\(self.path) does not hold keys as JSON; \(Self.advice)")
        }
    }

    /// Whole or not at all: written under another name, synced, then linked to its name, which fails when another was first.
    private func make() throws {
        let contents = Contents(version: 1, key: SecretText.random(), jwtKey: SecretText.random(), webhookKey: SecretText.random())
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        let bytes = [UInt8](try encoder.encode(contents)) + [0x0A]
        let temporary = "\(self.path).\(getpid()).\(SecretText.random().prefix(8))"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw KeyFileError("cannot make \(temporary) for new keys: \(Self.errorText()) (setting data.directory)")
        }
        defer { unlink(temporary) }
        var failure: String?
        var written = 0
        while written < bytes.count, failure == nil {
            let count = Self.retrying { bytes[written...].withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) } }
            if count > 0 { written += count } else { failure = Self.errorText() }
        }
        if failure == nil, fsync(descriptor) != 0 { failure = Self.errorText() }
        if close(descriptor) != 0, failure == nil { failure = Self.errorText() }
        if failure == nil, link(temporary, self.path) != 0, errno != EEXIST { failure = Self.errorText() }
        if let failure { throw KeyFileError("cannot write new keys to \(self.path): \(failure) (setting data.directory)") }
        // The name, too, must outlive a power cut.
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

    private static func errorText() -> String { String(cString: strerror(errno)) }
}

private func readBytes(_ descriptor: Int32, _ buffer: inout [UInt8]) -> Int {
    buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
}

/// Why the server has no keys: names the file and what to do. Holds no key.
package struct KeyFileError: Error, Equatable, CustomStringConvertible {
    package let description: String
    init(_ description: String) { self.description = description }
}
