/// One target under mutation, and the tests that answer for it. A plain value.
package struct Floor: Sendable {
    package let name: String
    /// From the clone's root.
    package let folder: String
    /// What `--filter` of the test binary takes.
    package let tests: String
    /// Files of the folder that are left alone; empty: none.
    package let without: Set<String>
    /// The only files of the folder; nil: all.
    package let only: Set<String>?

    package init(_ name: String, tests: String? = nil, only: Set<String>? = nil, without: Set<String> = []) {
        self.name = name
        self.folder = "Sources/\(name)"
        self.tests = tests ?? "^\(name)Tests\\."
        self.without = without
        self.only = only
    }

    /// The pure floors: rules and values. What talks to disks, sockets and other libraries is for other tests.
    package static let all: [Floor] = [
        Floor("Media"), Floor("RTMP"), Floor("HLS"), Floor("Talk"),
        Floor(
            "Rooms",
            without: [
                "FileIdentity.swift", "FileReader.swift", "QueueExecutor.swift", "StoreLock.swift", "StoreProbe.swift", "StoreStatus.swift",
                "TokenStore.swift", "WriteAheadLog.swift",
            ]),
        Floor("Relay"),
        Floor("Upstream", tests: "^UpstreamTests\\.ChunkGuard", only: ["ChunkGuard.swift"]),
    ]

    /// The floor whose file this is, if it is to be changed.
    package static func of(file: String, source: String) -> Floor? {
        guard let floor = all.first(where: { file.hasPrefix($0.folder + "/") }) else { return nil }
        let name = String(file[(file.lastIndex(of: "/").map(file.index(after:)) ?? file.startIndex)...])
        guard floor.only?.contains(name) ?? true, !floor.without.contains(name) else { return nil }
        // GRDB is SQL, and the shape of tables.
        return source.contains("import GRDB") ? nil : floor
    }

    package static func of(_ mutant: Mutant) -> Floor? { all.first { mutant.file.hasPrefix($0.folder + "/") } }
}
