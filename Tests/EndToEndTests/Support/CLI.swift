import EarshotServer
import Foundation
import Rooms
import ServerTestSupport
import TestSupport

@testable import RoomRegistry
@testable import Streaming

/// The command line as a process, with its own server and token. Unsets the `cleared` variables of the test's environment.
struct CLI: Sendable {
    let server: String
    /// The file with the token; nil passes none.
    var token: String?
    /// Environment variables for the process.
    var variables: [String: String] = [:]

    private static let cleared = ["EARSHOT_SERVER", "EARSHOT_TOKEN", "EARSHOT_DATA_DIRECTORY", "NO_COLOR"]

    /// Arguments for `env`.
    func line(_ arguments: [String]) throws -> [String] {
        Self.cleared.flatMap { ["-u", $0] } + self.variables.map { "\($0)=\($1)" } + [try EarshotProcess.binary()] + arguments
            + ["--server", self.server] + (self.token.map { ["--token-file", $0] } ?? [])
    }

    func callAsFunction(_ arguments: String..., within seconds: Double = 60) async throws -> ClientProcess.Outcome {
        try await ClientProcess.run(try self.line(arguments), within: seconds)
    }

    /// Runs a command that must succeed; returns its output.
    func text(_ arguments: String...) async throws -> String {
        let outcome = try await ClientProcess.run(try self.line(arguments))
        guard outcome.status == 0 else { throw TimedOut(description: "\(arguments) ended with \(outcome.status): \(outcome.errors)") }
        return outcome.text
    }

    /// Like ``text(_:)``, with `--json`.
    func json(_ arguments: String...) async throws -> JSON {
        let outcome = try await ClientProcess.run(try self.line(arguments + ["--json"]))
        guard outcome.status == 0 else { throw TimedOut(description: "\(arguments) ended with \(outcome.status): \(outcome.errors)") }
        return JSON(try JSONSerialization.jsonObject(with: outcome.output, options: .fragmentsAllowed))
    }

    /// Writes a token file.
    static func tokenFile(_ secret: String, in directory: URL) throws -> String {
        let file = directory.appendingPathComponent("token-\(UUID().uuidString)").path
        try "\(secret)\n".write(toFile: file, atomically: true, encoding: .utf8)
        return file
    }
}

extension ClientProcess.Outcome {
    var lines: [String] { self.text.split(separator: "\n").map(String.init) }
    var errorLines: [String] { self.errors.split(separator: "\n").map(String.init) }
}

extension TestServer {
    /// The command line with a new token of this role; its file is in the directory.
    func cli(_ role: TokenRole = .admin, in directory: URL) async throws -> CLI {
        let made = try await self.server.parts.rooms.createToken(name: "\(role)-\(UUID().uuidString)", role: role)
        return CLI(server: self.http, token: try CLI.tokenFile(made.secret, in: directory))
    }
}
