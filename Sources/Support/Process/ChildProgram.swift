import LibC

/// Runs a program to its end (posix_spawn(3)), with empty input.
enum ChildProgram {
    struct Outcome {
        /// The exit status; nil if a signal ended it, if it was ended after its time, or if it could not begin.
        let status: CInt?
        /// The program's output, or how it ended, for error messages.
        let words: String
    }

    /// Bytes of its output that are kept.
    private static let mostOutput = 4_096

    /// Blocks. Ends the program after `seconds`.
    static func run(_ path: String, _ arguments: [String], within seconds: Int) -> Outcome {
        FirstProcess.withChild { self.start(path, arguments, within: seconds) }
    }

    private static func start(_ path: String, _ arguments: [String], within seconds: Int) -> Outcome {
        var ends: [CInt] = [0, 0]
        guard pipe(&ends) == 0 else { return Outcome(status: nil, words: "could not be tried: \(errorText(errno))") }
        defer { close(ends[0]) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO)
        let words: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var process: pid_t = 0
        let failure = posix_spawn(&process, path, &actions, nil, words, environ)
        close(ends[1])
        guard failure == 0 else { return Outcome(status: nil, words: "cannot be started: \(errorText(failure))") }
        let (output, isInTime) = self.read(ends[0], within: seconds)
        if !isInTime { kill(process, SIGKILL) }
        var ended: CInt = 0
        while waitpid(process, &ended, 0) < 0 {
            guard errno == EINTR else { return Outcome(status: nil, words: "has ended unseen: \(errorText(errno))") }
        }
        // wait(2): the signal in the lowest seven bits, the status in the next byte.
        let (number, status) = (ended & 0x7F, (ended >> 8) & 0xFF)
        if !isInTime { return Outcome(status: nil, words: "has not answered within \(seconds) s") }
        guard number == 0 else { return Outcome(status: nil, words: "was ended by signal \(number)") }
        return Outcome(status: status, words: "says: \(output.isEmpty ? "nothing, with status \(status)" : output)")
    }

    /// Reads to the end; false when the time is over first.
    private static func read(_ descriptor: CInt, within seconds: Int) -> (String, isInTime: Bool) {
        let end = ContinuousClock.now + .seconds(seconds)
        var output: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 1_024)
        while true {
            let left = (end - .now) / .milliseconds(1)
            guard left > 0 else { return ("", false) }
            var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&wanted, 1, CInt(clamping: Int(left.rounded(.up)))) > 0 else { continue }
            let count = LibC.read(descriptor, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            output += piece.prefix(min(count, self.mostOutput - output.count))
        }
        return (String(decoding: output, as: UTF8.self).split(whereSeparator: \.isNewline).joined(separator: "; "), true)
    }
}
