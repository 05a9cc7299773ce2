import Support

/// `keys.json` in the data directory, with the keys that the server made. All calls block; for start-up.
package struct KeyFile {
    package static let fileName = "keys.json"
    private let file: SecretFile
    private let directory: String
    private var path: String { self.file.path }

    private static let names = ["key", "jwtKey", "webhookKey"]

    /// The file's keys by their names, and its path for messages. An older file lacks keys that later versions added.
    struct Stored {
        fileprivate let keys: [String: String]
        fileprivate let path: String

        /// Throws ``KeyFileError`` when the key is absent or too short.
        func read(_ name: String, least: Int) throws(KeyFileError) -> String {
            guard let key = self.keys[name] else {
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
        let json: JSONValue
        do throws(JSONProblem) {
            json = try JSONParser.parse(JSONParser.unmarked(bytes))
        } catch {
            throw self.unreadable(error.description)
        }
        return try self.stored(json)
    }

    private func stored(_ json: JSONValue) throws(KeyFileError) -> Stored {
        guard case .object = json else { throw self.unreadable("it is \(json.kind), expected an object") }
        var keys: [String: String] = [:]
        for name in Self.names {
            switch json[name] {
            case nil, .null?: break
            case .string(let key)?: keys[name] = key
            case let other?: throw self.unreadable("\"\(name)\" is \(other.kind), expected a string")
            }
        }
        return Stored(keys: keys, path: self.path)
    }

    /// `problem` quotes no value from the file.
    private func unreadable(_ problem: String) -> KeyFileError {
        KeyFileError("\(self.path) does not hold keys as JSON: \(problem); \(Self.advice)")
    }

    private func make() throws {
        let keys = Self.names.map { "  \"\($0)\": \(JSONValue.string(SecretText.random()).text)" }
        // One line per key, for people who read the file.
        let text = "{\n  \"version\": 1,\n" + keys.joined(separator: ",\n") + "\n}\n"
        try self.file.make(Array(text.utf8))
    }
}

/// The reason why the server has no keys. Names the file and the remedy; holds no key.
package struct KeyFileError: Error, Equatable, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}
