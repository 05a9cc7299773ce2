import Foundation
import PostgresTestSupport
import RoomRegistry
import Store
import TestSupport
import Testing

/// The program with settings whose database cannot be used, or is used.
@Suite struct PostgresServerTests {
    private static func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-database-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer {
            TestPostgres.remove(folder)
            try? FileManager.default.removeItem(atPath: folder)
        }
        try await body(folder)
    }

    private static func earshot(_ arguments: [String], url: String) async throws -> ClientProcess.Outcome {
        try await ClientProcess.run(
            ["/usr/bin/env", "EARSHOT_DATABASE_URL=\(url)", EarshotProcess.binary()] + arguments, within: 60)
    }

    private static let nobody = "postgresql://u:geheim@127.0.0.1:1/earshot"

    @Test func aServerWithoutItsDatabaseEndsWithOneLine() async throws {
        try await Self.withFolder { folder in
            let flags = ["serve", "--data", folder, "--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0"]
            let outcome = try await Self.earshot(flags, url: Self.nobody)
            let lines = outcome.errors.split(separator: "\n").filter { $0.hasPrefix("Error: ") }
            #expect(outcome.status == 1 && lines.count == 1, "\(outcome.errors)")
            #expect(outcome.errors.contains("postgresql://127.0.0.1:1/earshot: ") && outcome.errors.contains("check host and port"))
            #expect(!outcome.errors.contains("geheim"))
        }
    }

    @Test func commandsOfFilesSayWhatToUse() async throws {
        try await Self.withFolder { folder in
            for command in [["check"], ["backup", folder + "/b"], ["restore", folder + "/b"]] {
                let outcome = try await Self.earshot(["store"] + command + ["--data", folder], url: Self.nobody)
                #expect(outcome.status == 1 && outcome.errors.contains("pg_dump"), "\(command): \(outcome.errors)")
                #expect(!outcome.errors.contains("geheim"))
            }
            StoreMarker.set(.postgres(PostgresLocation(url: Self.nobody)), in: folder)
            let lost = try await EarshotProcess.command(["token", "list", "--data", folder])
            #expect(lost.status == 1 && lost.errors.contains("set EARSHOT_DATABASE_URL") && !lost.errors.contains("geheim"))
        }
    }

    @Test(.enabled(if: TestPostgres.isOn, "on PostgreSQL")) func theCommandLineUsesTheDatabase() async throws {
        try await Self.withFolder { folder in
            let url = try #require(try TestPostgres.location(of: folder)).url
            let made = try await Self.earshot(["token", "create", "shop", "--role", "backend", "--data", folder], url: url)
            #expect(made.status == 0, "\(made.errors)")
            let list = try await Self.earshot(["token", "list", "--data", folder], url: url)
            #expect(list.text.contains("shop"), "\(list.text)")
            #expect(!FileManager.default.fileExists(atPath: folder + "/earshot.db"))
        }
    }
}
