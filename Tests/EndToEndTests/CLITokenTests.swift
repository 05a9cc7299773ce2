import Foundation
import PostgresTestSupport
import RoomRegistry
import Rooms
import ServerTestSupport
import TestSupport
import Testing

/// `earshot token`, on a data directory with and without a server.
@Suite struct CLITokenTests {
    private static func run(_ data: URL, _ arguments: String...) async throws -> ClientProcess.Outcome {
        try await EarshotProcess.command(["token"] + arguments + ["--data", data.path])
    }

    @Test(.disabled(if: TestPostgres.isOn, "PostgresServerTests has the commands on a database")) func tokensWithoutAServer() async throws {
        try await Fixture.withDirectory { data in
            let made = try await Self.run(data, "create", "shop", "--role", "backend")
            #expect(made.status == 0, "\(made.errors)")
            let secret = try #require(made.lines.first)
            // Standard output holds the secret alone; standard error does not hold it.
            #expect(made.text == "\(secret)\n" && secret.wholeMatch(of: /earshot_[A-Za-z0-9]{32}/) != nil)
            #expect(made.errors.contains("shop") && !made.errors.contains(secret))
            let again = try await Self.run(data, "create", "shop", "--role", "ops")
            #expect(again.status == 4 && again.text.isEmpty && again.errors.contains("already"), "\(again.errors)")
            let odd = try await Self.run(data, "create", "a\u{1B}[2Jb", "--role", "ops")
            #expect(odd.status == 1 && odd.text.isEmpty && !odd.errors.contains("\u{1B}"), "\(odd.errors)")
            #expect(try await Self.run(data, "create", "x", "--role", "king").status == 64)
            #expect(try await Self.run(data, "create", "second", "--role", "admin").status == 0)

            let list = try await Self.run(data, "list")
            #expect(list.lines.count == 3 && list.lines[0].hasPrefix("ID  NAME    ROLE     MADE"), "\(list.text)")
            #expect(!list.text.contains(secret))
            let json = JSON(try JSONSerialization.jsonObject(with: try await Self.run(data, "list", "--json").output))
            #expect(json["total"].int == 2 && json["list"][0]["name"].string == "shop" && json["list"][0]["role"].string == "backend")

            let tokens = try TokenStore(try TestPostgres.store(in: data.path))
            defer { tokens.close() }
            #expect(try tokens.list().map(\.role) == [.backend, .admin])

            #expect(try await Self.run(data, "revoke", "shop").text == "token 1 shop is revoked\n")
            #expect(try await Self.run(data, "revoke", "2").text == "token 2 second is revoked\n")
            #expect(try await Self.run(data, "revoke", "shop").text == "token 1 shop was revoked before\n")
            let unknown = try await Self.run(data, "revoke", "nobody")
            #expect(unknown.status == 3 && unknown.errors.contains("nobody"))
            let empty = try await Self.run(data, "list")
            #expect(empty.status == 0 && empty.text.isEmpty && empty.errors == "no tokens\n")
            #expect(try await Self.run(data, "list", "--all").lines.count == 3)
            #expect(try tokens.list().allSatisfy { $0.revokedAt != nil })
        }
    }

    /// A typing mistake in the directory's name creates no store there.
    @Test func aMissingDirectoryIsNotMade() async throws {
        try await Fixture.withDirectory { directory in
            let missing = directory.appendingPathComponent("none")
            let outcome = try await Self.run(missing, "create", "x", "--role", "ops")
            #expect(outcome.status == 1 && outcome.text.isEmpty && outcome.errors.contains("--data"), "\(outcome.errors)")
            #expect(!FileManager.default.fileExists(atPath: missing.path))
            let damaged = directory.appendingPathComponent("damaged")
            try FileManager.default.createDirectory(at: damaged, withIntermediateDirectories: true)
            try String(repeating: "no database", count: 1_000)
                .write(to: damaged.appendingPathComponent("earshot.db"), atomically: true, encoding: .utf8)
            let broken = try await Self.run(damaged, "list")
            #expect(broken.status == 1 && broken.errors.contains("earshot.db"), "\(broken.errors)")
        }
    }

    /// A secret that was not printed is useless, and so revoked.
    @Test func aSecretThatIsNotPrintedIsRevoked() async throws {
        try await Fixture.withDirectory { data in
            let command = "\(try EarshotProcess.binary()) token create x --role ops --data \(data.path) > /dev/full"
            let outcome = try await ClientProcess.run(["bash", "-c", command])
            #expect(outcome.status == 1 && outcome.errors.contains("revoked"), "\(outcome.errors)")
            #expect(try await Self.run(data, "list").errors == "no tokens\n")
        }
    }
}
