import CFileStatus
import LibC

/// The program that replaces this one in the same process (execve(2)): the file at this program's path at that time, such as a newer version.
/// Process id, arguments, environment, working directory and standard streams stay. A plain value.
package struct NextProgram: Sendable, Equatable {
    /// An absolute path.
    package let path: String
    private let arguments: [String]

    /// Throws if there is no executable file at that path.
    ///
    /// - Parameters:
    ///   - arguments: Those that this process was started with.
    ///   - file: The running program's file; by default as ``rememberPath()`` found it.
    package init(arguments: [String] = ProcessArguments.atStart, file: String? = NextProgram.pathAtStart) throws(ValueProblem) {
        self.arguments = arguments
        let path = Self.path(of: arguments.first ?? "", file: file)
        guard let path, Self.isProgram(path) else {
            throw ValueProblem("there is no program at \(path ?? "the path of this one"); expected an executable file")
        }
        self.path = path
    }

    // MARK: Its path

    /// Remembers where this process's program was found, before links lead elsewhere. Call at the start.
    package static func rememberPath() { _ = (self.folder, self.pathAtStart) }

    /// Remembers the signal for the parent's end, which each thread has of its own. Call on the process's first thread, which does not live long.
    package static func rememberParentDeathSignal() { _ = self.parentDeathSignal }

    private static let parentDeathSignal = earshot_parent_death_signal()

    /// The path by which the program was called, not resolved: after an upgrade a symbolic link leads to the newer version.
    private static func path(of name: String, file: String?) -> String? {
        if name.hasPrefix("/") { return name }
        if name.contains("/"), let folder = Self.folder { return "\(folder)/\(name)" }
        let replaced = " (deleted)"
        return file.map { $0.hasSuffix(replaced) ? String($0.dropLast(replaced.count)) : $0 }
    }

    /// The entry of `PATH` that led to the running file, else the file itself as the kernel names it.
    package static let pathAtStart: String? = {
        guard let file = Self.link("/proc/self/exe") else { return nil }
        let name = ProcessArguments.atStart.first ?? ""
        let folders = getenv("PATH").map { String(cString: $0) }?.split(separator: ":") ?? []
        return folders.lazy.map { "\($0)/\(name)" }.first { $0.hasPrefix("/") && Self.real($0) == file } ?? file
    }()

    private static let folder: String? = Self.text { getcwd(nil, 0) }

    private static func real(_ path: String) -> String? { self.text { realpath(path, nil) } }

    private static func text(_ made: () -> UnsafeMutablePointer<CChar>?) -> String? {
        guard let text = made() else { return nil }
        defer { free(text) }
        return String(cString: text)
    }

    private static func link(_ path: String) -> String? {
        var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(path, &bytes, bytes.count)
        return count > 0 && count < bytes.count ? String(decoding: bytes.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
    }

    private static func isProgram(_ path: String) -> Bool {
        guard access(path, X_OK) == 0 else { return false }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        // An executable file may lack read permission.
        guard descriptor >= 0 else { return errno == EACCES }
        defer { close(descriptor) }
        return FileStatus(descriptor: descriptor)?.isRegular == true
    }

    // MARK: Its start

    /// Runs the program's own check of its settings, `config check` with this process's options, as a child. Throws its output if it
    /// fails, or if it cannot start at all. Blocks, for `seconds` at most.
    package func check(within seconds: Int) throws(ValueProblem) {
        var options = self.arguments.dropFirst()
        if options.first == "serve" { options = options.dropFirst() }
        let outcome = ChildProgram.run(self.path, ["config", "check"] + options, within: seconds)
        guard outcome.status != 0 else { return }
        throw ValueProblem("\(self.path) \(outcome.words)")
    }

    /// Replaces this program. Only the standard streams and `descriptors` stay open. Returns only if that fails, with errno.
    package func start(passing descriptors: [CInt], environment: [String: String]) -> CInt {
        for (name, value) in environment { setenv(name, value, 1) }
        for descriptor in descriptors { _ = fcntl(descriptor, F_SETFD, 0) }
        Self.closeAtStart(but: Set(descriptors))
        // SIGHUP and SIGUSR2 would end the next program before it traps them, so it starts with them ignored. Those that ask for the end must be
        // able to end it, so they get their default action.
        for number in [SIGHUP, SIGUSR2] { signal(number, SIG_IGN) }
        for number in FirstProcess.ending { signal(number, SIG_DFL) }
        FirstProcess.endBySignals()
        var none = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, nil)
        FirstProcess.holdSignals()
        // The thread that starts the program becomes its main one.
        earshot_set_parent_death_signal(Self.parentDeathSignal)
        let words: [UnsafeMutablePointer<CChar>?] = self.arguments.map { strdup($0) } + [nil]
        execv(self.path, words)
        let failure = errno
        for word in words { free(word) }
        return failure
    }

    private static func closeAtStart(but kept: Set<CInt>) {
        func mark(_ descriptor: CInt) {
            if descriptor > STDERR_FILENO, !kept.contains(descriptor) { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        }
        guard let folder = opendir("/proc/self/fd") else {
            // No descriptor is free to open the folder.
            for descriptor in 0..<CInt(clamping: OpenDescriptors.limit ?? 1 << 16) { mark(descriptor) }
            return
        }
        defer { closedir(folder) }
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            if let descriptor = CInt(name) { mark(descriptor) }
        }
    }
}
