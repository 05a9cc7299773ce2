import Foundation

/// PyPI's schemathesis, which calls an API with valid and invalid requests by its OpenAPI document. Installed once, then kept.
enum Schemathesis {
    static let version = "4.32.5"

    /// Runs it against this document to its end. Throws the reason when it cannot be installed.
    static func run(_ document: String, token: String, _ arguments: [String], within seconds: Double) async throws -> ClientProcess.Outcome
    {
        let folder = try await Self.installation.value
        return try await Fixture.withDirectory { directory in
            // Its database of examples is removed with the test's folder. The token stays off the command line.
            let settings = directory.appendingPathComponent("schemathesis.toml")
            try "headers = { Authorization = \"Bearer \(token)\" }\n".write(to: settings, atomically: true, encoding: .utf8)
            let command = ["--chdir=\(directory.path)", "PYTHONPATH=\(folder.path)", "NO_COLOR=1", "python3", "\(folder.path)/bin/st"]
            return try await ClientProcess.run(
                command + ["--config-file", settings.path, "run", document] + arguments, within: seconds)
        }
    }

    private static let installation = Task { try await Self.install() }

    private static func install() async throws -> URL {
        let folder = try Fixture.directory().appendingPathComponent("schemathesis-\(Self.version)")
        if FileManager.default.fileExists(atPath: folder.appendingPathComponent("bin/st").path) { return folder }
        let partial = folder.appendingPathExtension(UUID().uuidString)
        let install = ["python3", "-m", "pip", "install", "--quiet", "--target", partial.path, "schemathesis==\(Self.version)"]
        let installed = try await ClientProcess.run(install, within: 240)
        guard installed.status == 0 else { throw TimedOut(description: "pip could not install schemathesis: \(installed.errors)") }
        // Another process may have been first.
        if rename(partial.path, folder.path) != 0 { try FileManager.default.removeItem(at: partial) }
        return folder
    }
}
