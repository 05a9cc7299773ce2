import Support

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// `keys.json` in the data directory, with the keys that the server made. All calls block; for start-up.
package struct KeyFile {
    package static let fileName = "keys.json"
    private let file: SecretFile
    private let directory: String
    private var path: String { self.file.path }

    /// The file's contents. An older file lacks keys that later versions added.
    struct Contents: Codable {
        var version: Int?
        var key: String?
        var jwtKey: String?
        var webhookKey: String?
    }

    /// The contents, and the file's path for messages.
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

    fileprivate static let advice =
        "restore the file from a backup, or remove it: the server then creates new keys, and all URLs and tokens issued before stop working"

    init(directory: String) {
        self.directory = directory
        self.file = SecretFile(Self.fileName, in: directory, advice: Self.advice)
    }

    /// Reads the file's keys, making the file if needed. If several servers start at once on one directory, one of them makes it.
    func readOrMake() throws -> Stored {
        if let stored = try self.read() { return stored }
        try DataDirectory.prepare(self.directory)
        try self.make()
        guard let stored = try self.read() else { throw KeyFileError("\(self.path) vanished while it was read; start again") }
        return stored
    }

    /// Nil when there is no file.
    private func read() throws(KeyFileError) -> Stored? {
        guard let bytes = try self.file.read() else { return nil }
        do {
            return Stored(contents: try JSONDecoder().decode(Contents.self, from: Data(bytes)), path: self.path)
        } catch {
            // The decoder's own message could quote a key.
            throw KeyFileError("\(self.path) does not hold keys as JSON; \(Self.advice)")
        }
    }

    private func make() throws {
        let contents = Contents(version: 1, key: SecretText.random(), jwtKey: SecretText.random(), webhookKey: SecretText.random())
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        try self.file.make([UInt8](try encoder.encode(contents)) + [0x0A])
    }
}

/// The reason why the server has no keys. Names the file and what to do; holds no key.
package struct KeyFileError: Error, Equatable, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}
