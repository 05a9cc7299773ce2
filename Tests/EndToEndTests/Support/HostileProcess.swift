import Foundation
import ServerTestSupport
import TestSupport

/// A server as a separate process, so that its memory and descriptors are measured alone.
struct ServerProcess: Sendable {
    let process: ClientProcess
    let port: Int
    let http: Int
    /// The data directory, removed with the server.
    let data: String

    /// Starts the built server with these settings (`EARSHOT_…`), runs the body, then stops it.
    static func run<Result: Sendable>(
        _ settings: [String] = [], _ body: @Sendable (ServerProcess) async throws -> Result
    ) async throws -> Result {
        // The test bundle and the server are built side by side.
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let binary = URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent("earshot").path
        let data = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: data) }
        let arguments = settings + [binary, "serve", "--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", data]
        return try await ClientProcess.serving(arguments) { process in
            try await eventually("the server's banner") {
                process.outputSoFar.contains(Data("Ctrl-C".utf8)) || !process.isRunning
            }
            let banner = String(decoding: process.outputSoFar, as: UTF8.self)
            guard let rtmp = banner.firstMatch(of: /rtmp:\/\/127\.0\.0\.1:(\d+)/),
                let http = banner.firstMatch(of: /http:\/\/127\.0\.0\.1:(\d+)/),
                let port = Int(rtmp.1), let httpPort = Int(http.1)
            else { throw TimedOut(description: "no server at \(binary): \(process.errorsSoFar)") }
            return try await body(ServerProcess(process: process, port: port, http: httpPort, data: data))
        }
    }

    func residentBytes() throws -> Int { try self.process.residentBytes() }
    func loops() throws -> [ThreadWait] { try ThreadWait.loops(of: self.process.id) }

    /// A counter of `GET /counters`.
    func counter(_ name: String) async throws -> Int {
        let answer = try await HTTPAnswer.get("http://127.0.0.1:\(self.http)/api/v1/counters", token: TokenFile.read(self.data))
        return try answer.json()["data"][name].int.orThrow()
    }

    func openDescriptors() throws -> Int { try self.process.openDescriptors() }

    /// Connections closed for this reason so far, counted in the log.
    func closed(_ reason: String) -> Int {
        self.process.errorsSoFar.split(separator: "\n").count { $0.contains("Connection closed") && $0.contains("reason=\(reason)") }
    }
}
