import ArgumentParser
import CommandSupport
import LibC
import RoomRegistry
import Rooms
import ServerData
import Store
import Support

extension StoreCommand {
    /// `earshot store copy`: the registry from SQLite to PostgreSQL, and back.
    struct Copy: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Copy the whole registry from a data directory into PostgreSQL, or back.",
            discussion: """
                Rooms, streams, bans, events, tokens, keys, webhooks and their deliveries, links, recordings' entries and the audit: every row is copied \
                and then compared, value by value. Stop the server first. The source stays as it is. The target must be empty; a copy \
                that fails or is interrupted leaves it empty. Files stay where they are: secrets, recordings, pictures, statistics.

                PLACE is a data directory, a URL as postgresql://user:password@host/database, or env:NAME, which reads one of the two from \
                the environment variable NAME. Other users of the machine can see a URL on the command line, and its password: prefer env:NAME.

                EXAMPLES
                  export EARSHOT_DATABASE_URL=postgresql://earshot:password@db.example/earshot
                  earshot store copy --from /var/lib/earshot --to env:EARSHOT_DATABASE_URL
                  earshot store copy --from env:EARSHOT_DATABASE_URL --to /var/lib/earshot-again
                """)
        @Option(help: ArgumentHelp("The store to copy.", valueName: "PLACE")) var from: String
        @Option(help: ArgumentHelp("The empty store that receives the copy.", valueName: "PLACE")) var to: String
        @Flag(help: "Print JSON, keys in alphabetical order.") var json = false

        func run() async throws {
            Console.ignoreClosedPipes()
            try await CommandFailure.reporting {
                let (source, target) = (try Self.location(self.from, "--from"), try Self.location(self.to, "--to"))
                if case .folder(let directory) = source, access(directory, F_OK) != 0 {
                    throw CommandFailure(
                        .notFound, "cannot use the data directory \(DisplayText.escaped(directory)): \(Console.explain(errno))")
                }
                do {
                    var notice = ProgressNotice()
                    let report = try StoreTransfer(from: source, to: target).run { notice.show($0) }
                    try self.print(report, source, target)
                } catch let error as StoreError {
                    throw CommandFailure(error.isConflict ? .conflict : .failed, DisplayText.escaped("\(error)"))
                }
            }
        }

        /// What PLACE names.
        private static func location(_ text: String, _ option: String) throws -> StoreLocation {
            var location = text
            if text.hasPrefix("env:") {
                let name = String(text.dropFirst("env:".count))
                guard let value = Console.variable(name), !value.isEmpty else {
                    throw CommandFailure(
                        .notFound, "\(option): the environment variable \(DisplayText.escaped(name)) is not set\nExport it, and its value.")
                }
                location = value
            }
            // libpq's other form is `key=value`. It may begin with any key, and hold a password.
            let isAddress =
                ["postgresql://", "postgres://"].contains { location.hasPrefix($0) } || location.prefixMatch(of: /[a-z_]+ *=/) != nil
            // A pooler may be in between, and no statement is repeated often enough to be worth keeping.
            if isAddress { return .postgres(PostgresLocation(url: location, prepares: false)) }
            guard !location.contains("://") else {
                throw CommandFailure(.failed, "\(option): no data directory and no postgresql:// URL")
            }
            while location.count > 1, location.hasSuffix("/") { location.removeLast() }
            return .folder(location)
        }

        private func print(_ report: StoreTransfer.Report, _ source: StoreLocation, _ target: StoreLocation) throws {
            // They stay with the data directory, wherever the database is.
            let directory = [source, target].lazy.compactMap { if case .folder(let directory) = $0 { directory } else { nil } }.first
            let there = directory.map { directory in ServerSecrets.files.filter { access("\(directory)/\($0)", F_OK) == 0 } } ?? []
            if self.json {
                let tables = report.tables.map { ($0.name, JSONValue.integer($0.rows)) }
                let json: JSONValue = [
                    "ok": true, "from": .string(Self.shown(source)), "to": .string(Self.shown(target)),
                    "rows": .of(Dictionary(uniqueKeysWithValues: tables)), "files": .array(there.map { .string($0) }),
                ]
                return try Console.print(json.indented())
            }
            let tables = report.tables.map { "\($0.name) \($0.rows)" }.joined(separator: ", ")
            try Console.print(DisplayText.escaped("copied    \(Self.shown(source)) to \(Self.shown(target))"))
            try Console.print("compared  \(tables): all rows are the same")
            try Console.print(DisplayText.escaped("files     \(Self.files(directory, there, target))"))
        }

        private static func shown(_ location: StoreLocation) -> String {
            switch location {
            case .folder(let directory): directory
            case .postgres(let location): location.description
            }
        }

        /// Which files the server needs beside the database.
        private static func files(_ directory: String?, _ there: [String], _ target: StoreLocation) -> String {
            let recordings = "recordings, pictures and statistics are files too"
            guard let directory else {
                return "the server needs its data directory as before: \(ServerSecrets.files.joined(separator: ", "))"
            }
            guard case .folder = target else {
                let names = there.isEmpty ? "no keys are there yet" : "it needs \(there.joined(separator: ", "))"
                return "the server goes on with the data directory \(directory): \(names); \(recordings)"
            }
            let missing = ServerSecrets.files.filter { !there.contains($0) }
            guard !missing.isEmpty else { return "all keys are in \(directory); \(recordings)" }
            return "copy those that the server had into \(directory): \(missing.joined(separator: ", ")); \(recordings)"
        }
    }

    /// A line on standard error once a second while a copy runs.
    private struct ProgressNotice {
        private var next = ContinuousClock.now + Self.every

        private static let every = Duration.seconds(1)

        mutating func show(_ progress: StoreTransfer.Progress) {
            let now = ContinuousClock.now
            guard now >= self.next else { return }
            self.next = now + Self.every
            let step =
                switch progress.step {
                case .copies: "copied"
                case .compares: "compared"
                }
            Console.complain("\(progress.table): \(progress.rows) rows \(step)")
        }
    }
}
