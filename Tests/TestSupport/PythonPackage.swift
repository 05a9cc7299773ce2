import Foundation

/// A PyPI package in a folder of its own, installed once and then kept.
package struct PythonPackage: Sendable {
    /// The requirement in pip's syntax: "websockets==15.0.1".
    package let requirement: String

    package init(requirement: String) { self.requirement = requirement }

    /// The folder for PYTHONPATH, with the package's programs in `bin`. Throws the reason when there is no pip or no index.
    package func folder() async throws -> String {
        let folder = try Fixture.directory().appendingPathComponent("python-\(self.requirement)")
        if FileManager.default.fileExists(atPath: folder.path) { return folder.path }
        let partial = folder.appendingPathExtension(UUID().uuidString)
        let install = ["python3", "-m", "pip", "install", "--quiet", "--target", partial.path, self.requirement]
        let installed = try await ClientProcess.run(install, within: 240)
        guard installed.status == 0 else { throw TimedOut(description: "pip could not install \(self.requirement): \(installed.errors)") }
        // Another test or process may have been first.
        if rename(partial.path, folder.path) != 0 { try FileManager.default.removeItem(at: partial) }
        return folder.path
    }
}
