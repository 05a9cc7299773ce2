import Foundation

/// A foreign client as a child process: ffmpeg, ffprobe, rtmpdump, gst-launch. Ended by process id, whatever happens.
final class ClientProcess: @unchecked Sendable {
    struct Outcome: Sendable {
        let status: Int32
        let output: Data
        let errors: String
        var text: String { String(decoding: self.output, as: UTF8.self) }
    }

    // Foundation.Process is used from one test at a time; the threads that read only append under the lock.
    private let process = Process()
    private let lock = NSLock()
    private var output = Data()
    private var errors = Data()
    /// Pipes whose end has not been read yet.
    private var openPipes = 2

    init(_ arguments: [String]) throws {
        self.process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        self.process.arguments = arguments
        let out = Pipe()
        let err = Pipe()
        self.process.standardInput = FileHandle.nullDevice
        self.process.standardOutput = out
        self.process.standardError = err
        try self.process.run()
        // A thread for each: readability handlers may run two at a time, and then their pieces change places.
        Thread.detachNewThread { self.collect(out) { $0.output.append($1) } }
        Thread.detachNewThread { self.collect(err) { $0.errors.append($1) } }
    }

    /// Reads a pipe to its end.
    private func collect(_ pipe: Pipe, _ append: (ClientProcess, Data) -> Void) {
        while true {
            let data = pipe.fileHandleForReading.availableData
            self.lock.withLock {
                append(self, data)
                if data.isEmpty { self.openPipes -= 1 }
            }
            if data.isEmpty { return }
        }
    }

    var id: Int32 { self.process.processIdentifier }
    var isRunning: Bool { self.process.isRunning }
    var outputSoFar: Data { self.lock.withLock { self.output } }
    var errorsSoFar: String { self.lock.withLock { String(decoding: self.errors, as: UTF8.self) } }

    func send(_ signal: Int32) {
        if self.process.isRunning { kill(self.process.processIdentifier, signal) }
    }

    /// Waits for the end; kills the process when it takes longer than allowed.
    func outcome(within seconds: Double) async throws -> Outcome {
        let end = ContinuousClock.now + .seconds(seconds)
        while self.process.isRunning {
            if ContinuousClock.now > end {
                self.send(SIGKILL)
                throw TimedOut(
                    description: "a client ran longer than \(seconds) s: \(self.process.arguments ?? []) \(self.errorsSoFar.suffix(2000))")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        // The pipes' last bytes arrive after the exit: up to their end, unless a child of the child still holds them.
        let patience = ContinuousClock.now + .seconds(3)
        while self.lock.withLock({ self.openPipes > 0 }), ContinuousClock.now < patience {
            try await Task.sleep(for: .milliseconds(10))
        }
        return Outcome(status: self.process.terminationStatus, output: self.outputSoFar, errors: self.errorsSoFar)
    }

    /// Runs to the end and returns what it wrote.
    static func run(_ arguments: [String], within seconds: Double = 30) async throws -> Outcome {
        try await ClientProcess(arguments).outcome(within: seconds)
    }

    /// Runs for the time of the body, then is killed.
    static func during<Result>(_ arguments: [String], _ body: (ClientProcess) async throws -> Result) async throws -> Result {
        let process = try ClientProcess(arguments)
        defer { process.send(SIGKILL) }
        return try await body(process)
    }
}
