import ArgumentParser
import CommandSupport
import LibC
import RoomRegistry
import Rooms
import ServerData
import Store
import Support

/// `earshot store`: the database of rooms and the keys, directly in the data directory.
struct StoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store",
        abstract: "Check, back up and restore the server's database and keys; copy the database to PostgreSQL and back.",
        discussion: """
            These commands work on the server's data directory: run them on its machine, as the user that the server runs as. check and \
            backup may run beside the server; restore and copy need it stopped. Recordings and pictures are separate files and not part of it.

            EXAMPLES
              earshot store check
              earshot store backup /var/backups/earshot-$(date +%F)
              earshot store restore /var/backups/earshot-2026-11-22
              earshot store copy --from /var/lib/earshot --to env:EARSHOT_DATABASE_URL

            \(ExitStatus.explanation)
            """,
        subcommands: [Check.self, Backup.self, Restore.self, Copy.self])

    struct Check: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Read the whole database and report what is wrong with it.",
            discussion: "Changes nothing. The exit status is 1 if something is wrong.")
        @Flag(help: "Print JSON, keys in alphabetical order.") var json = false
        @OptionGroup var location: StoreLocationOptions

        func run() async throws {
            try await self.location.withStore { store in
                let report = try store.check()
                if self.json {
                    try Console.print(Self.json(report).indented())
                } else {
                    for line in Self.lines(report) { try Console.print(DisplayText.escaped(line)) }
                }
                guard report.problems.isEmpty else {
                    let count = report.problems.count
                    throw CommandFailure(.failed, "\(count) \(count == 1 ? "problem" : "problems") in \(DisplayText.escaped(report.path))")
                }
            }
        }

        private static func lines(_ report: StoreFolder.Report) -> [String] {
            let use = report.isInUse ? "in use by a server" : "not in use"
            let log = report.logBytes > 0 ? ", and \(report.logBytes) in its log" : ""
            let older =
                (1..<report.newestSchema).contains(report.schema) ? "; the server's next start upgrades it to \(report.newestSchema)" : ""
            return [
                "store     \(report.path), \(report.bytes) bytes\(log), \(use)", "schema    \(report.schema)\(older)",
                "holds     " + (report.rows.isEmpty ? "nothing" : report.rows.map { "\($0.count) \($0.what)" }.joined(separator: ", ")),
            ] + (report.problems.isEmpty ? ["problems  none"] : report.problems.map { "problem   \($0)" })
        }

        private static func json(_ report: StoreFolder.Report) -> JSONValue {
            [
                "ok": .bool(report.problems.isEmpty), "path": .string(report.path), "bytes": .integer(report.bytes),
                "logBytes": .integer(report.logBytes), "inUse": .bool(report.isInUse), "schema": .integer(Int64(report.schema)),
                "newestSchema": .integer(Int64(report.newestSchema)),
                "rows": .of(Dictionary(uniqueKeysWithValues: report.rows.map { ($0.what, JSONValue.integer($0.count)) })),
                "problems": .array(report.problems.map { .string($0) }),
            ]
        }
    }

    struct Backup: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Copy database and keys into a new folder, with or without a running server.",
            discussion: """
                The copy is the database at one moment, checked, with keys.json, links.key and admin-token. The folder contains secrets: \
                only its owner may read it. It must not exist yet.
                """)
        @Argument(help: ArgumentHelp("The folder to create.", valueName: "BACKUP")) var backup: String
        @OptionGroup var location: StoreLocationOptions

        func run() async throws {
            let backup = Folder.name(self.backup)
            try await self.location.withStore { store in
                try store.backup(to: backup)
                try Console.print(DisplayText.escaped(backup))
            }
        }
    }

    struct Restore: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Replace the data directory's database and keys with a backup.",
            discussion: """
                Stop the server first. The former files are kept in a folder before-restore-… in the data directory. A backup that lacks \
                a key of the data directory is refused. If the command is interrupted, run it again: the server does not start until it \
                has finished.
                """)
        @Argument(help: ArgumentHelp("A folder that `earshot store backup` has made.", valueName: "BACKUP")) var backup: String
        @OptionGroup var location: StoreLocationOptions

        func run() async throws {
            let backup = Folder.name(self.backup)
            // If the disk was lost, the data directory may be missing too.
            try await self.location.withStore(mustExist: false) { store in
                if let former = try store.restore(from: backup) {
                    Console.complain("the former files are in \(DisplayText.escaped(former.folder))")
                    for name in former.missing {
                        Console.complain("\(name) is left only there: the backup has none, and the restored store has other tokens")
                    }
                }
                try Console.print("restored from \(DisplayText.escaped(backup))")
            }
        }
    }

    private enum Folder {
        static func name(_ text: String) -> String {
            var name = text
            while name.count > 1, name.hasSuffix("/") { name.removeLast() }
            return name
        }
    }
}

extension StoreLocationOptions {
    fileprivate func withStore(mustExist: Bool = true, _ body: (StoreFolder) throws -> Void) async throws {
        Console.ignoreClosedPipes()
        try await CommandFailure.reporting {
            let (path, database): (String, String?) =
                switch try self.location() {
                case .folder(let folder): (folder, StoreMarker.database(of: folder))
                case .postgres(let location): ("", "\(location)")
                }
            if let database {
                throw CommandFailure(
                    .failed,
                    """
                    rooms and tokens are in \(DisplayText.escaped(database)), not in a data directory
                    Use pg_dump and pg_restore for them, and copy the keys in the data directory: \(ServerSecrets.files.joined(separator: ", ")).
                    """)
            }
            guard !mustExist || access(path, F_OK) == 0 else {
                throw CommandFailure(
                    .notFound, "cannot use the data directory \(path): \(Console.explain(errno))\nGive --data DIR.")
            }
            do {
                try body(StoreFolder(directory: path, secrets: ServerSecrets.files, ofStore: [FirstToken.fileName]))
            } catch let error as StoreError {
                throw CommandFailure(error.isConflict ? .conflict : .failed, DisplayText.escaped("\(error)"))
            }
        }
    }
}
