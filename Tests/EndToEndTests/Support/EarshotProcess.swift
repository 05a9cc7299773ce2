import Foundation
import PostgresTestSupport
import RoomRegistry
import ServerTestSupport
import Store
import TestSupport

/// The built `earshot` binary as a separate process.
struct EarshotProcess: Sendable {
    let process: ClientProcess
    /// "rtmp://127.0.0.1:PORT", from the banner.
    let rtmp: String
    /// Nil without a certificate.
    let rtmps: String?
    let http: String
    /// The port; nil without a certificate.
    let https: Int?
    /// The admin token of its first start.
    let token: String

    /// The binary beside the test bundle. A full path, so that its exit can be distinguished from a shell's.
    static func binary() throws -> String {
        let folder = URL(fileURLWithPath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
            .deletingLastPathComponent()
        for candidate in [folder, folder.deletingLastPathComponent(), Bundle.main.bundleURL] {
            let path = candidate.appendingPathComponent("earshot").path
            if FileManager.default.isExecutableFile(atPath: path) { return path }
        }
        throw TimedOut(description: "no earshot binary beside \(folder.path); build the whole package first")
    }

    /// Runs `earshot` with these arguments to its end.
    static func command(_ arguments: [String], within seconds: Double = 60) async throws -> ClientProcess.Outcome {
        try await ClientProcess.run([Self.binary()] + arguments, within: seconds)
    }

    /// Runs `earshot serve` on free ports: waits for the banner, runs the body, waits for the end. `under` is a launcher's command line.
    static func serve<Result>(
        data: URL, _ arguments: [String] = [], under: [String] = [], _ body: (EarshotProcess) async throws -> Result
    ) async throws -> Result {
        let directory = data.appendingPathComponent("data").path
        let flags = ["--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", directory]
        var environment: [String] = []
        if TestPostgres.isOn {
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            environment = ["/usr/bin/env", "EARSHOT_DATABASE_URL=\(try TestPostgres.location(of: directory)?.url ?? "")"]
        }
        return try await ClientProcess.serving(environment + under + [Self.binary(), "serve"] + flags + arguments) { process in
            func banner() -> String { String(decoding: process.outputSoFar, as: UTF8.self) }
            try await eventually("the banner") {
                guard process.isRunning else { throw TimedOut(description: "earshot ended: \(process.errorsSoFar)") }
                return banner().contains("Stop with Ctrl-C.")
            }
            let words = banner().split { $0 == " " || $0 == "\n" }.map(String.init)
            func address(_ scheme: String) -> String? {
                words.first { $0.hasPrefix("\(scheme)://") }.map { $0.split(separator: "/").prefix(2).joined(separator: "//") }
            }
            return try await body(
                try EarshotProcess(
                    process: process, rtmp: address("rtmp").orThrow(), rtmps: address("rtmps"), http: address("http").orThrow(),
                    https: address("https")?.split(separator: ":").last.flatMap { Int($0) },
                    token: TokenFile.read(directory)))
        }
    }
}
