import Foundation

/// Runs ffmpeg and ffprobe as child processes. They share only files for their output with this process.
enum Tool {
    struct Failed: Error, CustomStringConvertible {
        var description: String
    }

    struct Outcome: Sendable {
        var status: Int32
        var output: Data
        var errors: String
        var text: String { String(decoding: self.output, as: UTF8.self) }
        var lines: [String] { self.text.split(separator: "\n").map(String.init) }
    }

    /// Runs a command to its end, and kills it after `seconds`.
    static func run(_ arguments: [String], seconds: Double = 180) async throws -> Outcome {
        let files = try Scratch()
        let (out, err) = (files.path("out"), files.path("err"))
        for path in [out, err] { _ = FileManager.default.createFile(atPath: path, contents: nil) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle(forWritingAtPath: out)
        process.standardError = FileHandle(forWritingAtPath: err)
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        process.terminationHandler = { _ in end.finish() }
        try process.run()
        let watchdog = Task { [id = process.processIdentifier] in
            try await Task.sleep(for: .seconds(seconds))
            kill(id, SIGKILL)
        }
        for await _ in ends {}
        watchdog.cancel()
        let read = { try Data(contentsOf: URL(fileURLWithPath: $0)) }
        return Outcome(
            status: process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus, output: try read(out),
            errors: String(decoding: try read(err), as: UTF8.self))
    }

    /// Runs a command, and throws ``Failed`` unless it succeeds.
    @discardableResult
    static func must(_ arguments: [String]) async throws -> Outcome {
        let outcome = try await Self.run(arguments)
        guard outcome.status == 0 else { throw Failed(description: "\(arguments): \(outcome.status) \(outcome.errors.suffix(2000))") }
        return outcome
    }

    static func ffmpeg(_ arguments: [String]) async throws -> Outcome {
        try await Self.must(["ffmpeg", "-v", "error", "-nostdin", "-y"] + arguments)
    }

    /// Returns the hash of each decoded frame, in presentation order. `kind`: takes the first stream of "v" or "a".
    static func decodedHashes(_ path: String, _ kind: String = "v") async throws -> [String] {
        let lines = try await Self.ffmpeg([
            "-i", path, "-map", "0:\(kind):0", "-fps_mode", "passthrough", "-f", "framehash", "-hash", "md5", "-",
        ]).lines
        return lines.filter { !$0.hasPrefix("#") }.compactMap {
            $0.split(separator: ",").last.map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }
}

/// A temporary directory, removed with its owner or with this process.
final class Scratch: Sendable {
    let directory: String

    /// The root of all directories. Clips live as long as the process, so the rest is removed when it ends.
    private static let root: String = {
        atexit { try? FileManager.default.removeItem(atPath: Scratch.path(of: getpid())) }
        return Scratch.path(of: getpid())
    }()

    private static func path(of process: pid_t) -> String { NSTemporaryDirectory() + "earshot-ffmpeg-\(process)" }

    init() throws {
        self.directory = Self.root + "/" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: self.directory, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: self.directory)
    }

    func path(_ name: String) -> String { self.directory + "/" + name }
}
