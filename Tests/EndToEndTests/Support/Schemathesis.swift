import Foundation
import TestSupport

/// PyPI's schemathesis, which calls an API with valid and invalid requests by its OpenAPI document. Installed once, then kept.
enum Schemathesis {
    static let version = "4.32.5"
    private static let package = PythonPackage(requirement: "schemathesis==\(Self.version)")

    /// Runs it against this document to its end. Throws the reason when it cannot be installed.
    static func run(_ document: String, token: String, _ arguments: [String], within seconds: Double) async throws -> ClientProcess.Outcome
    {
        let folder = try await Self.package.folder()
        return try await Fixture.withDirectory { directory in
            // Its database of examples is removed with the test's folder. The token stays off the command line.
            let settings = directory.appendingPathComponent("schemathesis.toml")
            try "headers = { Authorization = \"Bearer \(token)\" }\n".write(to: settings, atomically: true, encoding: .utf8)
            let command = ["--chdir=\(directory.path)", "PYTHONPATH=\(folder)", "NO_COLOR=1", "python3", "\(folder)/bin/st"]
            return try await ClientProcess.run(
                command + ["--config-file", settings.path, "run", document] + arguments, within: seconds)
        }
    }
}
