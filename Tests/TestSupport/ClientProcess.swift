package import Foundation
import LibC

/// A foreign client as a child process: ffmpeg, ffprobe, rtmpdump, gst-launch. Always ended by process id.
package final class ClientProcess: @unchecked Sendable {
    package struct Outcome: Sendable {
        package let status: Int32
        package let output: Data
        package let errors: String
        package var text: String { String(decoding: self.output, as: UTF8.self) }
    }

    private static let spawning = NSLock()
    package let id: pid_t
    private let arguments: [String]
    private let lock = NSLock()
    // Guarded by the lock, as is signalling: a process id is not used after `waitpid`.
    private var output = Data()
    private var errors = Data()
    /// Exit code, or the signal that ended the process; nil while it runs.
    private var status: Int32?
    /// Pipes not yet read to their end.
    private var openPipes = 2

    /// `arguments` holds the program, found by PATH, and its arguments, after any `NAME=value` for the environment.
    ///
    /// Avoids Foundation's Process: with more than about a thousand open descriptors, as here, it reads past the end of a directory buffer.
    package init(_ arguments: [String]) throws {
        self.arguments = arguments
        // One at a time: another child would inherit a pipe that is not yet close-on-exec, and keep it open.
        Self.spawning.lock()
        defer { Self.spawning.unlock() }
        let out = try Self.pipe()
        let err = try Self.pipe()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, out.write, 1)
        posix_spawn_file_actions_adddup2(&actions, err.write, 2)
        // NIO's sockets are not close-on-exec: a child that kept them would hold ports and connections open.
        _ = Self.closeFrom?(&actions, 3)
        // The threads that tests run on block most signals; the child must not.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var words: [UnsafeMutablePointer<CChar>?] = (["/usr/bin/env"] + arguments).map { strdup($0) }
        words.append(nil)
        defer { for word in words { free(word) } }
        var id: pid_t = 0
        let error = posix_spawn(&id, "/usr/bin/env", &actions, &attributes, words, environ)
        close(out.write)
        close(err.write)
        guard error == 0 else {
            close(out.read)
            close(err.read)
            throw TimedOut(description: "cannot run \(arguments): errno \(error)")
        }
        self.id = id
        // Own threads: these must not wait for a turn on the threads that tests run on.
        Thread.detachNewThread { self.collect(out.read) { $0.output.append(contentsOf: $1) } }
        Thread.detachNewThread { self.collect(err.read) { $0.errors.append(contentsOf: $1) } }
        Thread.detachNewThread { self.awaitEnd() }
    }

    /// A function of glibc 2.34 and later, which Swift's Glibc module does not expose.
    private static let closeFrom: CloseFrom? = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np").map {
        unsafeBitCast($0, to: CloseFrom.self)
    }
    private typealias CloseFrom = @convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, CInt) -> CInt

    private static func pipe() throws -> (read: CInt, write: CInt) {
        var ends: [CInt] = [0, 0]
        guard LibC.pipe(&ends) == 0 else { throw TimedOut(description: "no pipe: errno \(errno)") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    private func awaitEnd() {
        var info = siginfo_t()
        // `WNOWAIT` leaves the process unreaped: its id stays valid until the lock is held.
        while waitid(P_PID, id_t(self.id), &info, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        self.lock.withLock {
            var status: CInt = 0
            waitpid(self.id, &status, 0)
            self.status = status & 0x7F == 0 ? status >> 8 & 0xFF : status & 0x7F
        }
    }

    /// Reads a pipe to its end.
    private func collect(_ descriptor: CInt, _ append: (ClientProcess, ArraySlice<UInt8>) -> Void) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            self.lock.withLock {
                if count > 0 { append(self, buffer[..<count]) } else { self.openPipes -= 1 }
            }
            guard count > 0 else { break }
        }
        close(descriptor)
    }

    package var isRunning: Bool { self.lock.withLock { self.status == nil } }
    package var outputSoFar: Data { self.lock.withLock { self.output } }
    package var errorsSoFar: String { self.lock.withLock { String(decoding: self.errors, as: UTF8.self) } }

    package func send(_ signal: Int32) {
        self.lock.withLock {
            if self.status == nil { kill(self.id, signal) }
        }
    }

    /// Stops the process during the body (SIGSTOP), to act in the middle of its work.
    package func halted<Result>(_ body: () async throws -> Result) async throws -> Result {
        self.send(SIGSTOP)
        defer { self.send(SIGCONT) }
        return try await body()
    }

    /// Waits for the end; kills the process when it takes longer than allowed.
    package func outcome(within seconds: Double = 60) async throws -> Outcome {
        let end = ContinuousClock.now + .seconds(seconds * Patience.factor)
        while self.isRunning {
            if ContinuousClock.now > end {
                self.send(SIGKILL)
                throw TimedOut(
                    description:
                        "a client ran longer than \(seconds * Patience.factor) s: \(self.arguments) \(self.errorsSoFar.suffix(2000))")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        // The pipes' last bytes arrive after the exit. Waits at most 10 s for their end: a grandchild may still hold them.
        let patience = ContinuousClock.now + .seconds(10)
        while self.lock.withLock({ self.openPipes > 0 }), ContinuousClock.now < patience {
            try await Task.sleep(for: .milliseconds(10))
        }
        return Outcome(status: self.lock.withLock { self.status } ?? -1, output: self.outputSoFar, errors: self.errorsSoFar)
    }

    /// Runs to the end and returns what it wrote.
    package static func run(_ arguments: [String], within seconds: Double = 60) async throws -> Outcome {
        try await ClientProcess(arguments).outcome(within: seconds)
    }

    /// Runs a process during the body, then kills it.
    package static func during<Result>(_ arguments: [String], _ body: (ClientProcess) async throws -> Result) async throws -> Result {
        let process = try ClientProcess(arguments)
        defer { process.send(SIGKILL) }
        return try await body(process)
    }

    /// Runs a process during the body, then sends SIGTERM, and SIGKILL after 15 s.
    /// A sanitizer's leak check runs only in a process that ends by itself.
    package static func serving<Result>(_ arguments: [String], _ body: (ClientProcess) async throws -> Result) async throws -> Result {
        let process = try ClientProcess(arguments)
        defer { process.send(SIGKILL) }
        let outcome: Swift.Result<Result, any Error>
        do {
            outcome = .success(try await body(process))
        } catch {
            outcome = .failure(error)
        }
        process.send(SIGTERM)
        try? await eventually("its end", within: 15) { !process.isRunning }
        return try outcome.get()
    }
}

/// Memory and descriptors of one of our own processes.
extension ClientProcess {
    /// Resident memory in bytes.
    package func residentBytes() throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(self.id)/status", encoding: .utf8)
        let line = try status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }.orThrow()
        return try Int(line.split(separator: " ").dropLast().last.map(String.init) ?? "").orThrow() << 10
    }

    package func openDescriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(self.id)/fd").count
    }

    /// The inodes of its open sockets, as /proc/net has them.
    package func openSockets() throws -> Set<String> {
        let folder = "/proc/\(self.id)/fd"
        let targets = try FileManager.default.contentsOfDirectory(atPath: folder).compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")
        }
        return Set(targets.filter { $0.hasPrefix("socket:[") }.map { String($0.dropFirst(8).dropLast()) })
    }

    /// Open descriptors by target: a file's name, or a kind ("socket").
    package func openFiles() throws -> [String: Int] {
        let folder = "/proc/\(self.id)/fd"
        return try FileManager.default.contentsOfDirectory(atPath: folder).reduce(into: [:]) { counts, number in
            // A descriptor that was closed meanwhile has no target.
            guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(number)") else { return }
            let name = target.prefix { $0 != ":" }.split(separator: "/").last.map(String.init) ?? target
            counts[name, default: 0] += 1
        }
    }
}
