import Foundation
import Mutation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The test binary of the copy.
struct TestBinary {
    let path: String
    let work: WorkFolder

    enum Outcome {
        case passed(tests: Int)
        case failed(by: String)
        case timedOut
    }

    /// Runs a floor's tests with one mutant switched on (0: none), and stops at the first failure.
    func run(_ floor: Floor, mutant: Int, within limit: Duration) async throws -> (outcome: Outcome, took: Duration) {
        let folder = self.work.root.appending(path: "run-\(floor.name)-\(mutant)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // Also removes the files of tests that were stopped.
        defer { try? FileManager.default.removeItem(at: folder) }
        let log = folder.appending(path: "log")
        try Data().write(to: log)
        let output = try FileHandle(forWritingTo: log)
        defer { try? output.close() }

        let process = Process()
        process.executableURL = URL(filePath: self.path)
        process.arguments = [
            "--testing-library", "swift-testing", "--experimental-maximum-parallelization-width", "2", "--filter", floor.tests,
        ]
        process.currentDirectoryURL = self.work.copy
        process.environment = ProcessInfo.processInfo.environment.merging([
            "EARSHOT_MUTANT": "\(mutant)", "TMPDIR": folder.path, "SWIFT_BACKTRACE": "enable=no",
        ]) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        let clock = ContinuousClock()
        let start = clock.now
        try process.run()
        // Polls a log file: processes started by the tests would hold a pipe open.
        while process.isRunning {
            let tooLate = clock.now - start > limit
            if tooLate || TestLog.firstFailure(in: Self.text(log)) != nil {
                kill(process.processIdentifier, SIGKILL)
                process.waitUntilExit()
                let failed = TestLog.firstFailure(in: Self.text(log))
                return (failed.map(Outcome.failed) ?? .timedOut, clock.now - start)
            }
            try await Task.sleep(for: .milliseconds(50))
        }
        let took = clock.now - start
        let text = Self.text(log)
        if let failed = TestLog.firstFailure(in: text) { return (.failed(by: failed), took) }
        guard process.terminationReason == .exit, process.terminationStatus == 0, let tests = TestLog.passed(in: text) else {
            let how = process.terminationReason == .exit ? "exit code" : "signal"
            return (.failed(by: "\(how) \(process.terminationStatus)"), took)
        }
        return (.passed(tests: tests), took)
    }

    private static func text(_ log: URL) -> String { (try? Data(contentsOf: log)).map { String(decoding: $0, as: UTF8.self) } ?? "" }
}
