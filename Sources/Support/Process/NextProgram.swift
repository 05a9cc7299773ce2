import LibC

/// The program that takes this process over: the one that has the path of this one's program when it is started, such as a newer version.
/// Process id, arguments, environment, folder and standard streams stay (execve(2)). A plain value.
package struct NextProgram: Sendable, Equatable {
    /// An absolute path.
    package let path: String
    private let arguments: [String]

    /// Throws what is wrong when no program has that path.
    ///
    /// - Parameters:
    ///   - arguments: As this process was started.
    ///   - file: The running program's file, as the kernel names it.
    package init(arguments: [String] = CommandLine.arguments, file: String? = NextProgram.runningFile) throws(ValueProblem) {
        self.arguments = arguments
        let path = Self.path(of: arguments.first ?? "", file: file)
        guard let path, Self.isProgram(path) else {
            throw ValueProblem("there is no program at \(path ?? "the path of this one"); expected an executable file")
        }
        self.path = path
    }

    /// As it was called, so that a link leads to the newer version; the kernel's name for one that was found by `PATH`.
    private static func path(of name: String, file: String?) -> String? {
        if name.hasPrefix("/") { return name }
        if name.contains("/"), let folder = Self.atStart { return "\(folder)/\(name)" }
        let replaced = " (deleted)"
        return file.map { $0.hasSuffix(replaced) ? String($0.dropLast(replaced.count)) : $0 }
    }

    private static func isProgram(_ path: String) -> Bool {
        guard access(path, X_OK) == 0 else { return false }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        // A program may be one that nobody may read.
        guard descriptor >= 0 else { return errno == EACCES }
        defer { close(descriptor) }
        return FileStatus(descriptor: descriptor)?.isRegular == true
    }

    /// The folder in which the process was started; nothing changes it.
    private static let atStart: String? = {
        guard let text = getcwd(nil, 0) else { return nil }
        defer { free(text) }
        return String(cString: text)
    }()

    package static var runningFile: String? {
        var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &bytes, bytes.count)
        return count > 0 && count < bytes.count ? String(decoding: bytes.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
    }

    /// Replaces this program. Of its descriptors the standard streams and `descriptors` stay open. Returns only when that is impossible, with errno.
    package func start(passing descriptors: [CInt], environment: [String: String]) -> CInt {
        for (name, value) in environment { setenv(name, value, 1) }
        Self.closeAtStart(but: Set(descriptors))
        // These are trapped here, which ignores them: the next program would not hear them before it traps them, too. SIGHUP and SIGUSR2 stay
        // ignored, since by default they end a program.
        for number in [SIGTERM, SIGINT] { signal(number, SIG_DFL) }
        var none = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, nil)
        let words: [UnsafeMutablePointer<CChar>?] = self.arguments.map { strdup($0) } + [nil]
        execv(self.path, words)
        let failure = errno
        for word in words { free(word) }
        return failure
    }

    private static func closeAtStart(but kept: Set<CInt>) {
        guard let folder = opendir("/proc/self/fd") else { return }
        defer { closedir(folder) }
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            guard let descriptor = CInt(name), descriptor > STDERR_FILENO else { continue }
            _ = fcntl(descriptor, F_SETFD, kept.contains(descriptor) ? 0 : FD_CLOEXEC)
        }
    }
}
