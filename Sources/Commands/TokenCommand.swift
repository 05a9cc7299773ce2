import ArgumentParser
import CommandSupport
import LibC
import RoomRegistry
import Rooms
import Store
import Support

/// `earshot token`: API tokens, directly in the data directory, with or without a running server.
struct TokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Make, list and revoke API tokens, with or without a running server.",
        discussion: """
            These commands work on the server's data directory: run them on its machine, as the user that the server runs as. A running \
            server applies the change at once. For a server with a PostgreSQL database give --config FILE, or set EARSHOT_DATABASE_URL.

            The role backend may create, list, change and close rooms and make their URLs; ops may also forbid them, list and cut streams \
            and sessions, and manage recordings; admin may do everything.

            EXAMPLES
              (umask 077; earshot token create shop-backend --role backend > shop.token)
              earshot token create acme --role ops --rooms acme- --apps live
              earshot rooms list --token-file shop.token
              earshot token revoke shop-backend

            \(ExitStatus.explanation)
            """,
        subcommands: [Create.self, List.self, Revoke.self])

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a token and print its secret, which is shown only once.",
            discussion: "Only the secret goes to standard output. The server keeps nothing but its hash, so it cannot be shown again.")
        @Argument(help: ArgumentHelp("The token's owner, for the list and the audit trail.", valueName: "NAME")) var name: String
        @Option(help: ArgumentHelp("The token's role: admin, ops or backend.", valueName: "ROLE"))
        var role: TokenRole
        @Option(
            help: ArgumentHelp(
                "Limit the token to rooms and streams whose names begin so; may be given several times.", valueName: "PREFIX"))
        var rooms: [String] = []
        @Option(help: ArgumentHelp("Limit the token to this app's rooms and streams; may be given several times.", valueName: "APP"))
        var apps: [String] = []
        @OptionGroup var location: StoreLocationOptions

        func run() async throws {
            try await self.location.withTokens { tokens in
                let namesake = try tokens.list().first { $0.name == self.name && $0.revokedAt == nil }
                if let namesake {
                    throw CommandFailure(
                        .conflict,
                        "a token \(DisplayText.escaped(self.name)) exists already (id \(namesake.id)); revoke it, or choose another name"
                    )
                }
                let made = try tokens.create(
                    name: self.name, role: self.role, scope: TokenScope(apps: self.apps, rooms: self.rooms))
                do {
                    try Console.print(made.secret)
                } catch {
                    // Nobody has seen the secret.
                    _ = try tokens.revoke(made.token.id)
                    throw CommandFailure(.failed, "the secret could not be printed, so the token was revoked")
                }
                Console.complain(
                    "token \(made.token.id) \(DisplayText.escaped(made.token.name)), role \(made.token.role.rawValue); keep the secret, it is not shown again"
                )
            }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List tokens; their secrets are not kept.")
        @Flag(help: "Include revoked tokens.") var all = false
        @Flag(help: "Print JSON, keys in alphabetical order.") var json = false
        @OptionGroup var location: StoreLocationOptions

        func run() async throws {
            try await self.location.withTokens { tokens in
                let list = try tokens.list().filter { self.all || $0.revokedAt == nil }
                if self.json { return try Console.print(Self.json(list).indented()) }
                guard !list.isEmpty else { return Console.complain("no tokens") }
                var table = Table([.right("ID"), .text("NAME"), .left("ROLE"), .left("MADE"), .left("REVOKED"), .text("LIMITS")])
                for token in list {
                    table.add([
                        .init("\(token.id)"), .init(token.name), .init(token.role.rawValue), .init(Self.time(token.createdAt)),
                        .init(token.revokedAt.map(Self.time), .dim), .init(Self.limits(token.scope)),
                    ])
                }
                for line in table.lines(width: Console.width, colour: Console.usesColour) { try Console.print(line) }
            }
        }

        private static func time(_ milliseconds: Int64) -> String { TimeText.short("\(Moment(milliseconds: milliseconds))") }

        /// "apps live; rooms acme-".
        private static func limits(_ scope: TokenScope) -> String {
            [("apps", scope.apps), ("rooms", scope.rooms)].filter { !$1.isEmpty }
                .map { "\($0) \($1.joined(separator: ", "))" }.joined(separator: "; ")
        }

        /// The same form as in the API.
        private static func json(_ tokens: [APIToken]) -> JSONValue {
            let list = tokens.map { token -> JSONValue in
                [
                    "tokenId": .integer(token.id), "name": .string(token.name), "role": .string(token.role.rawValue),
                    "apps": .array(token.scope.apps.map(JSONValue.string)), "rooms": .array(token.scope.rooms.map(JSONValue.string)),
                    "createdAt": .string("\(Moment(milliseconds: token.createdAt))"),
                    "revokedAt": token.revokedAt.map { .string("\(Moment(milliseconds: $0))") } ?? .null,
                ]
            }
            return ["total": .integer(Int64(tokens.count)), "list": .array(list)]
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Revoke a token, at once and for good.")
        @Argument(help: ArgumentHelp("The token's id or its name.", valueName: "ID|NAME")) var token: String
        @OptionGroup var location: StoreLocationOptions

        func run() async throws {
            try await self.location.withTokens { tokens in
                let list = try tokens.list()
                // Names may be numbers: prefer a valid token of this name, then the id.
                let known =
                    list.first { $0.name == self.token && $0.revokedAt == nil } ?? list.first { "\($0.id)" == self.token }
                    ?? list.last { $0.name == self.token }
                guard let known, let revoked = try tokens.revoke(known.id) else {
                    throw CommandFailure(
                        .notFound, "there is no token \(DisplayText.escaped(self.token)); `earshot token list --all` shows all")
                }
                let since = known.revokedAt == nil ? "is revoked" : "was revoked before"
                try Console.print("token \(revoked.id) \(DisplayText.escaped(revoked.name)) \(since)")
            }
        }
    }
}

extension TokenRole: ExpressibleByArgument {}

extension StoreLocationOptions {
    /// Opens the directory's tokens, or those of the configured database, for the duration of `body`. A missing directory is not created: it
    /// is more likely a mistake.
    func withTokens(_ body: (TokenStore) throws -> Void) async throws {
        Console.ignoreClosedPipes()
        try await CommandFailure.reporting {
            let location = try self.location()
            if case .folder(let path) = location {
                guard access(path, F_OK) == 0 else {
                    let why = Console.explain(errno)
                    throw CommandFailure(
                        .failed, "cannot use the data directory \(path): \(why)\nGive --data DIR; the server makes it at its first start.")
                }
                if let database = StoreMarker.database(of: path) {
                    throw CommandFailure(
                        .failed,
                        """
                        the server of \(path) keeps its tokens in \(DisplayText.escaped(database))
                        Give --config FILE with the server's settings, or set EARSHOT_DATABASE_URL.
                        """)
                }
            }
            do {
                let tokens = try TokenStore(location)
                for notice in tokens.notices { Console.complain("earshot: \(DisplayText.escaped(notice))") }
                defer { tokens.close() }
                try body(tokens)
            } catch let error as StoreError {
                throw CommandFailure(.failed, "\(error)")
            } catch let error as RegistryError {
                throw CommandFailure(.failed, Self.explain(error))
            }
        }
    }

    private static func explain(_ error: RegistryError) -> String {
        switch error {
        case .invalid(let field): DisplayText.escaped("\(field)")
        case .onOtherNode(let what, let node): "\(what) is on the node \(node)"
        case .tooMany(let what, let limit): "there are too many \(what); the limit is \(limit), so revoke some"
        case .storeFailed(let why): "the store cannot be read or written: \(DisplayText.escaped(why))"
        default: DisplayText.escaped("\(error)")
        }
    }
}
