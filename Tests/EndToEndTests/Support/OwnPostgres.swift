import Foundation
import TestSupport

/// A PostgreSQL of a test's own, which the test may kill: by scripts/postgres.sh.
struct OwnPostgres: Sendable {
    let url: String
    private let folder: String

    private static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../../scripts/postgres.sh").standardizedFileURL.path

    static func run<Result>(_ body: (OwnPostgres) async throws -> Result) async throws -> Result {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-own-postgres-\(UUID().uuidString)").path
        // It ends with the tests, also when they are killed.
        let owner = "EARSHOT_POSTGRES_OWNER=\(ProcessInfo.processInfo.processIdentifier)"
        let url = try await Self.script(["/usr/bin/env", owner, Self.script, "start", folder])
        let database = OwnPostgres(url: url.trimmingCharacters(in: .whitespacesAndNewlines), folder: folder)
        do {
            let result = try await body(database)
            try await database.call("stop")
            return result
        } catch {
            try? await database.call("stop")
            throw error
        }
    }

    /// Ends its processes at once; the data stays.
    func kill() async throws { try await self.call("kill") }

    /// Starts it on its data.
    func again() async throws { try await self.call("again") }

    private func call(_ verb: String) async throws { _ = try await Self.script([Self.script, verb, self.folder]) }

    private static func script(_ command: [String]) async throws -> String {
        let outcome = try await ClientProcess.run(command, within: 120)
        guard outcome.status == 0 else { throw TimedOut(description: "\(command.suffix(2)): \(outcome.errors)") }
        return outcome.text
    }
}
