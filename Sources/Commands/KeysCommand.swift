import ArgumentParser
import CommandSupport
import LibC
import RoomRegistry
import Rooms
import Support

/// `earshot keys`: keys for the Tencent-compatible API, directly in the data directory, with or without a running server.
struct KeysCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys",
        abstract: "Make, list and revoke keys for the Tencent-compatible API, with or without a running server.",
        discussion: """
            A back end signs its calls with a key: an id (SecretId) and a secret (SecretKey). These commands work on the server's data \
            directory: run them on its machine, as the user that the server runs as. A running server applies the change at once. For a \
            server with a PostgreSQL database give --config FILE, or set EARSHOT_DATABASE_URL.

            The role backend may ask for lists and states; ops and admin may also drop, forbid and resume streams.

            EXAMPLES
              earshot keys create shop-backend --role ops
              (umask 077; earshot keys create shop-backend --role ops --json > shop.key.json)
              earshot keys revoke shop-backend

            \(ExitStatus.explanation)
            """,
        subcommands: [Create.self, List.self, Revoke.self])

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a key and print its id and its secret, which is shown only once.",
            discussion: "Only these two go to standard output, in two lines: SecretId=… and SecretKey=….")
        @Argument(help: ArgumentHelp("The key's owner, for the list and the audit trail.", valueName: "NAME")) var name: String
        @Option(help: ArgumentHelp("The key's role: admin, ops or backend.", valueName: "ROLE")) var role: TokenRole
        @Flag(help: "Print JSON: secretId, secretKey, name, role.") var json = false
        @OptionGroup var location: StoreLocationOptions

        func run() async throws {
            try await self.location.withTokens { store in
                let namesake = try store.keys().first { $0.name == self.name && $0.revokedAt == nil }
                if let namesake {
                    throw CommandFailure(
                        .conflict,
                        "a key \(DisplayText.escaped(self.name)) exists already (\(namesake.id)); revoke it, or choose another name")
                }
                let (key, secret) = try store.createKey(name: self.name, role: self.role)
                let value: JSONValue = [
                    "name": .string(key.name), "role": .string(key.role.rawValue), "secretId": .string(key.id),
                    "secretKey": .string(secret),
                ]
                do {
                    try Console.print(self.json ? value.indented() : "SecretId=\(key.id)\nSecretKey=\(secret)")
                } catch {
                    // Nobody has seen the secret.
                    _ = try store.revokeKey(key.id)
                    throw CommandFailure(.failed, "the secret could not be printed, so the key was revoked")
                }
                Console.complain(
                    "key \(DisplayText.escaped(key.name)), role \(key.role.rawValue); keep the secret, it is not shown again")
            }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List keys, without their secrets.")
        @Flag(help: "Include revoked keys.") var all = false
        @Flag(help: "Print JSON.") var json = false
        @OptionGroup var location: StoreLocationOptions

        func run() async throws {
            try await self.location.withTokens { store in
                let list = try store.keys().filter { self.all || $0.revokedAt == nil }
                if self.json { return try Console.print(Self.json(list).indented()) }
                guard !list.isEmpty else { return Console.complain("no keys") }
                var table = Table([.text("ID"), .text("NAME"), .left("ROLE"), .left("MADE"), .left("REVOKED")])
                for key in list {
                    table.add([
                        .init(key.id), .init(key.name), .init(key.role.rawValue), .init(Self.time(key.createdAt)),
                        .init(key.revokedAt.map(Self.time), .dim),
                    ])
                }
                for line in table.lines(width: Console.width, colour: Console.usesColour) { try Console.print(line) }
            }
        }

        private static func time(_ ms: Int64) -> String { TimeText.short("\(Moment(milliseconds: ms))") }

        private static func json(_ keys: [AccessKey]) -> JSONValue {
            let list = keys.map { key -> JSONValue in
                [
                    "secretId": .string(key.id), "name": .string(key.name), "role": .string(key.role.rawValue),
                    "createdAt": .string("\(Moment(milliseconds: key.createdAt))"),
                    "revokedAt": key.revokedAt.map { .string("\(Moment(milliseconds: $0))") } ?? .null,
                ]
            }
            return ["total": .integer(Int64(keys.count)), "list": .array(list)]
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Revoke a key, at once and for good.")
        @Argument(help: ArgumentHelp("The key's id or its name.", valueName: "ID|NAME")) var key: String
        @OptionGroup var location: StoreLocationOptions

        func run() async throws {
            try await self.location.withTokens { store in
                let list = try store.keys()
                let known =
                    list.first { $0.id == self.key } ?? list.first { $0.name == self.key && $0.revokedAt == nil }
                    ?? list.last { $0.name == self.key }
                guard let known, let revoked = try store.revokeKey(known.id) else {
                    throw CommandFailure(
                        .notFound, "there is no key \(DisplayText.escaped(self.key)); `earshot keys list --all` shows all")
                }
                let since = known.revokedAt == nil ? "is revoked" : "was revoked before"
                try Console.print("key \(revoked.id) \(DisplayText.escaped(revoked.name)) \(since)")
            }
        }
    }
}
