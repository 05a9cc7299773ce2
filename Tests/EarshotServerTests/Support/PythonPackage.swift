import Foundation

/// A PyPI package in a folder of its own, installed once and then kept.
struct PythonPackage: Sendable {
    /// The requirement in pip's syntax: "websockets==15.0.1".
    let requirement: String

    /// The folder for PYTHONPATH. Throws the reason when there is no pip or no index.
    func folder() async throws -> String {
        let folder = try Fixture.directory().appendingPathComponent("python-\(self.requirement)")
        if FileManager.default.fileExists(atPath: folder.path) { return folder.path }
        let partial = folder.appendingPathExtension(UUID().uuidString)
        let install = ["python3", "-m", "pip", "install", "--quiet", "--target", partial.path, self.requirement]
        let installed = try await ClientProcess.run(install, within: 120)
        guard installed.status == 0 else { throw TimedOut(description: "pip could not install \(self.requirement): \(installed.errors)") }
        // Another test or process may have been first.
        if rename(partial.path, folder.path) != 0 { try FileManager.default.removeItem(at: partial) }
        return folder.path
    }
}
