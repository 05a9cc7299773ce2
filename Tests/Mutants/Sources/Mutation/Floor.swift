/// One target under mutation, and the tests that must notice its mutants. A plain value.
package struct Floor: Sendable {
    package let name: String
    /// The path from the clone's root.
    package let folder: String
    /// The regular expression for `--filter` of the test binary.
    package let tests: String
    /// Files of the folder that are not mutated.
    package let without: Set<String>
    /// The only files of the folder that are mutated; nil: all.
    package let only: Set<String>?

    package init(_ name: String, tests: String? = nil, only: Set<String>? = nil, without: Set<String> = []) {
        self.name = name
        self.folder = "Sources/\(name)"
        self.tests = tests ?? "^\(name)Tests\\."
        self.without = without
        self.only = only
    }

    /// The pure floors: rules and values; then services, by their own tests, which need no port. Other tests cover code that uses disks, sockets and
    /// other libraries.
    package static let all: [Floor] = [
        Floor("Media"), Floor("RTMP"), Floor("HLS"), Floor("Talk"), Floor("Trace"),
        Floor("Rooms", tests: "^(Rooms|RoomRegistry)Tests\\."),
        Floor("RoomRegistry", without: ["StoreProbe.swift", "StoreStatus.swift"]),
        Floor(
            "Store", tests: "^RoomRegistryTests\\.",
            without: ["FileIdentity.swift", "FileReader.swift", "StoreConnection.swift", "StoreLock.swift", "WriteAheadLog.swift"]),
        Floor("Apps"),
        Floor("Relay", without: ["SocketWriter.swift"]),
        Floor("LinkTransport", tests: "^LinkTransportTests\\.ChunkValidator", only: ["ChunkValidator.swift"]),
        Floor("HTTPServer"), Floor("RTMPServer"), Floor("Talkback"), Floor("AppServer"), Floor("ControlAPI"), Floor("HTTPAPI"),
    ]

    /// The floor of a file, or nil if the file is not mutated.
    package static func of(file: String, source: String) -> Floor? {
        guard let floor = all.first(where: { file.hasPrefix($0.folder + "/") }) else { return nil }
        let name = String(file[(file.lastIndex(of: "/").map(file.index(after:)) ?? file.startIndex)...])
        guard floor.only?.contains(name) ?? true, !floor.without.contains(name) else { return nil }
        // These hold SQL and table definitions.
        return source.contains("import GRDB") || source.contains("extension StoreAccess") ? nil : floor
    }

    package static func of(_ mutant: Mutant) -> Floor? { all.first { mutant.file.hasPrefix($0.folder + "/") } }
}
