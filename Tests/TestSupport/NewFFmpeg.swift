import Foundation

/// A static ffmpeg with Enhanced RTMP, from PyPI's `imageio-ffmpeg`; Debian's lacks it. Installed once, then kept.
package enum NewFFmpeg {
    /// The binary's path. Throws the reason when it cannot be installed.
    package static func path() async throws -> String { try await Self.installation.value }

    /// A command that prints one line per packet: stream, times, length, hash.
    package static func packets(_ url: String) async throws -> [String] {
        [try await Self.path(), "-v", "error", "-i", url, "-c", "copy", "-copyts", "-f", "framehash", "-hash", "md5", "-"]
    }

    /// Runs once per process, for the first test that asks.
    private static let installation = Task { try await Self.install() }

    private static func install() async throws -> String {
        let folder = try Fixture.directory().appendingPathComponent("imageio-ffmpeg")
        if let found = Self.find(in: folder) { return found }
        let pip = try await ClientProcess.run(["python3", "-m", "pip", "--version"], within: 30)
        guard pip.status == 0 else { throw TimedOut(description: "no pip, so no ffmpeg that speaks Enhanced RTMP: \(pip.errors)") }
        let partial = folder.appendingPathExtension(UUID().uuidString)
        let install = ["python3", "-m", "pip", "install", "--quiet", "--target", partial.path, "imageio-ffmpeg==0.8.1"]
        let installed = try await ClientProcess.run(install, within: 120)
        guard installed.status == 0 else { throw TimedOut(description: "pip could not install imageio-ffmpeg: \(installed.errors)") }
        // Another process may have finished first.
        if rename(partial.path, folder.path) != 0 { try FileManager.default.removeItem(at: partial) }
        return try Self.find(in: folder).orThrow()
    }

    private static func find(in folder: URL) -> String? {
        let binaries = folder.appendingPathComponent("imageio_ffmpeg/binaries")
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: binaries.path) else { return nil }
        return names.first { $0.hasPrefix("ffmpeg-") }.map { binaries.appendingPathComponent($0).path }
    }
}
