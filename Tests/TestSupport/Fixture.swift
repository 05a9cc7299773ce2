package import Foundation

/// Media files that tests push. ffmpeg makes each kind once; later runs reuse it.
package enum Fixture {
    package static let baseline = ["-c:v", "libx264", "-profile:v", "baseline", "-g", "25"]
    package static let withBFrames = ["-c:v", "libx264", "-profile:v", "main", "-bf", "2", "-g", "25"]
    package static let aac = ["-c:a", "aac", "-ar", "44100"]

    /// An FLV file with a test pattern and a tone. Nil arguments omit a track; another tone makes other packets.
    package static func flv(
        video: [String]?, audio: [String]?, seconds: Int, size: String = "320x240", rate: Int = 25, tone: Int = 440,
        ffmpeg: String = "ffmpeg"
    ) async throws -> String {
        var arguments = [ffmpeg, "-v", "error", "-y"]
        if video != nil { arguments += ["-f", "lavfi", "-i", "testsrc2=size=\(size):rate=\(rate)"] }
        if audio != nil { arguments += ["-f", "lavfi", "-i", "sine=\(tone)"] }
        arguments += ["-t", "\(seconds)"] + (video ?? []) + (audio ?? [])
        let path = try Self.directory().appendingPathComponent("\(Self.digest(arguments.joined(separator: " "))).flv").path
        if FileManager.default.fileExists(atPath: path) { return path }
        // Written beside the final path, then linked: parallel tests never read half a file.
        let partial = "\(path).\(UUID().uuidString).flv"
        let made = try await ClientProcess.run(arguments + [partial], within: 180)
        guard made.status == 0 else { throw TimedOut(description: "ffmpeg could not make a test file: \(made.errors)") }
        // The first file stays: x264 on a busy machine makes a slightly different one each time, and tests compare with the file they
        // pushed.
        let isFirst = link(partial, path) == 0
        let error = errno
        unlink(partial)
        guard isFirst || error == EEXIST else { throw TimedOut(description: "cannot put \(path) in place: errno \(error)") }
        return path
    }

    /// The folder of generated files.
    package static func directory() throws -> URL {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-fixtures-\(getuid())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        return directory
    }

    /// Creates a folder for one test's files and removes it after the body.
    package static func withDirectory<Result>(_ body: (URL) async throws -> Result) async throws -> Result {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-test-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let outcome: Swift.Result<Result, any Error>
        do {
            outcome = .success(try await body(directory))
        } catch {
            outcome = .failure(error)
        }
        try FileManager.default.removeItem(at: directory)
        return try outcome.get()
    }

    private static func digest(_ text: String) -> String {
        String(text.utf8.reduce(UInt64(14_695_981_039_346_656_037)) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }, radix: 16)
    }
}

/// ffprobe's view of a file or URL.
package enum Probe {
    /// A command that prints one line per packet: kind, times, flags, hash of the payload.
    package static func packets(_ url: String) -> [String] {
        [
            "ffprobe", "-v", "error", "-show_entries", "packet=codec_type,pts,dts,flags,data_hash", "-show_data_hash", "md5", "-of", "csv",
            url,
        ]
    }
}

/// ffmpeg's command lines.
package enum FFmpeg {
    /// Pushes at the pace of the timestamps, without re-encoding.
    package static func push(_ file: String, to url: String, ffmpeg: String = "ffmpeg") -> [String] {
        [ffmpeg, "-v", "error", "-re", "-i", file, "-c", "copy", "-f", "flv", url]
    }

    /// Loops the file until killed. For tests that do not need its end, and would be late for it on a slow machine.
    package static func pushForEver(_ file: String, to url: String) -> [String] {
        ["ffmpeg", "-v", "error", "-re", "-stream_loop", "-1", "-i", file, "-c", "copy", "-f", "flv", url]
    }
}
