#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// How many descriptors the process could still open. Any thread; asks the system, so not for hot paths.
///
/// What can wait or fail by itself (a recording, a link) asks before it begins: the last ones are for the store, and for the runtime, which
/// ends the process when it finds none.
enum OpenDescriptors {
    static let advice = "the limit of open files is nearly reached; raise it (LimitNOFILE= in the systemd unit, ulimit -n)"

    /// Left for what cannot do without.
    private static let least = 24

    static var areScarce: Bool {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, let open = self.count else { return false }
        return UInt64(open + self.least) > UInt64(limit.rlim_cur)
    }

    /// Nil where there is no procfs.
    static var count: Int? {
        var status = stat()
        guard stat("/proc/self/fd", &status) == 0 else { return nil }
        // Linux 6.2 and later count them; before, the size is 0.
        if status.st_size > 0 { return Int(status.st_size) }
        guard let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        // Itself, "." and "..".
        return count - 3
    }
}
