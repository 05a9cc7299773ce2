import Logging

#if canImport(Glibc)
import Glibc
#endif

/// One descriptor a viewer: the default limit of 1,024 would be reached first of all.
enum OpenFiles {
    static func prepare(for connections: Int, _ log: Logger) {
        self.raiseLimit(log)
        self.growTable(to: connections)
    }

    /// A descriptor table that grows under a process with threads makes the caller wait for a grace period of the kernel's, 20 to 40 ms in
    /// which nobody is served. Grown once at the start, it never does so again.
    private static func growTable(to connections: Int) {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        let highest = min(UInt64(limit.rlim_cur), UInt64(connections) + 256, 1 << 20)
        let copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, CInt(clamping: highest - 1))
        if copy >= 0 { close(copy) }
    }

    private static func raiseLimit(_ log: Logger) {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
        let wanted = min(limit.rlim_max, 1 << 20)
        limit.rlim_cur = wanted
        if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) != 0 {
            log.warning("The limit of open files could not be raised", metadata: ["wanted": "\(wanted)"])
        }
    }
}
