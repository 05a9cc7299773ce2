import Foundation

/// Media files that tests push, made by ffmpeg once per process and kind.
enum Fixture {
    /// An FLV file with a test pattern and a tone. Nil arguments leave a track out.
    static func flv(video: [String]?, audio: [String]?, seconds: Int, size: String = "320x240", rate: Int = 25) async throws -> String {
        let name = "\(video?.joined() ?? "none")-\(audio?.joined() ?? "none")-\(seconds)-\(size)-\(rate)"
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-\(getpid())-\(Self.digest(name)).flv").path
        if FileManager.default.fileExists(atPath: path) { return path }
        var arguments = ["ffmpeg", "-v", "error", "-y"]
        if video != nil { arguments += ["-f", "lavfi", "-i", "testsrc2=size=\(size):rate=\(rate)"] }
        if audio != nil { arguments += ["-f", "lavfi", "-i", "sine=440"] }
        arguments += ["-t", "\(seconds)"] + (video ?? []) + (audio ?? [])
        // Written beside and moved, so that tests in parallel never read half a file.
        let partial = "\(path).\(UUID().uuidString).flv"
        let made = try await ClientProcess.run(arguments + [partial], within: 60)
        guard made.status == 0 else { throw TimedOut(description: "ffmpeg could not make a test file: \(made.errors)") }
        guard rename(partial, path) == 0 else { throw TimedOut(description: "rename failed") }
        return path
    }

    private static func digest(_ text: String) -> String {
        String(text.utf8.reduce(UInt64(14_695_981_039_346_656_037)) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }, radix: 16)
    }
}

/// ffprobe's view of a file or URL.
enum Probe {
    /// One line a packet: kind, times, hash of the payload.
    static func packets(_ url: String) -> [String] {
        [
            "ffprobe", "-v", "error", "-show_entries", "packet=codec_type,pts,dts,data_hash", "-show_data_hash", "md5", "-of", "csv", url,
        ]
    }
}
