import Foundation
import ServerTestSupport
import TestSupport

/// `earshot doctor --json` as a process, and what it found.
struct DoctorRun {
    let status: Int32
    let checks: [JSON]
    let whole: JSON
    let errors: String

    /// `under` is a launcher's command line.
    static func run(_ arguments: [String], under: [String] = []) async throws -> DoctorRun {
        let cleared = ["EARSHOT_SERVER", "EARSHOT_TOKEN", "EARSHOT_DATA_DIRECTORY"].flatMap { ["-u", $0] }
        let line = ["env"] + cleared + under + [try EarshotProcess.binary(), "doctor", "--json"] + arguments
        let outcome = try await ClientProcess.run(line, within: 60)
        let whole = JSON(try? JSONSerialization.jsonObject(with: outcome.output, options: .fragmentsAllowed))
        return DoctorRun(status: outcome.status, checks: whole["checks"].list, whole: whole, errors: outcome.errors)
    }

    /// "pass", "warn", "fail" or "skip"; nil when there is no such check.
    func status(of name: String) -> String? { self.checks.first { $0["name"].string == name }?["status"].string }
    func measured(_ name: String) -> String { self.checks.first { $0["name"].string == name }?["measured"].string ?? "" }
    /// Without the disk's speed, on which all tests write.
    var failed: [String] {
        self.checks.filter { $0["status"].string == "fail" }.compactMap { $0["name"].string }.filter { $0 != "disk speed" }
    }
    /// Nothing failed, and the exit code says so.
    var isWell: Bool { self.failed.isEmpty && (self.status == 0 || self.status(of: "disk speed") == "fail") }

    /// For the message of a failed test.
    var words: String {
        self.checks.map { "\($0["status"].string ?? "?") \($0["name"].string ?? "?"): \($0["measured"].string ?? "")" }.joined(
            separator: "\n")
            + self.errors
    }
}

/// A configuration with ports and a data directory of its own.
struct DoctorScene {
    let directory: URL
    let ports: [Int]
    var data: String { self.directory.appendingPathComponent("data").path }
    private var file: URL { self.directory.appendingPathComponent("earshot.yaml") }

    init(in directory: URL) async throws {
        self.directory = directory
        var ports: [Int] = []
        for _ in 0..<4 { ports.append(try await FreePort.reserve()) }
        self.ports = ports
    }

    /// Writes the settings; `lines` may replace those of the scene, by their first word.
    func config(_ lines: String...) throws -> String {
        let own = [
            "rtmp: {listen: \"127.0.0.1:\(self.ports[0])\"}", "http: {listen: \"127.0.0.1:\(self.ports[1])\"}",
            "data: {directory: \"\(self.data)\", minFree: 1MiB}", "recording: {minFree: 1MiB}",
        ]
        func section(_ line: String) -> Substring { line.prefix { $0 != ":" } }
        let replaced = Set(lines.map(section))
        let all = own.filter { !replaced.contains(section($0)) } + lines
        try (all.joined(separator: "\n") + "\n").write(to: self.file, atomically: true, encoding: .utf8)
        return self.file.path
    }

    /// Runs a server with these settings.
    func serve<Result>(_ config: String, _ body: (EarshotProcess) async throws -> Result) async throws -> Result {
        let ports = ["--rtmp", "127.0.0.1:\(self.ports[0])", "--http", "127.0.0.1:\(self.ports[1])"]
        return try await EarshotProcess.serve(data: self.directory, ["--config", config] + ports, body)
    }
}
