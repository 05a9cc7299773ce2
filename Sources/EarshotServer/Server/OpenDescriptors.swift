import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
// Where the compiler has read Foundation before this file, it holds this module, not the C library, to be the one that defines `stat`.
#if canImport(CoreFoundation)
import CoreFoundation
#endif

/// How many descriptors the process could still open. Any thread; asks the system, so not for hot paths.
///
/// What can wait or fail by itself (a recording, a link) asks before it begins: the last ones are for the store, and for the runtime, which
/// ends the process when it finds none.
enum OpenDescriptors {
    static let advice = "the limit of open files is nearly reached; raise it (LimitNOFILE= in the systemd unit, ulimit -n)"

    /// Left for what cannot do without.
    private static let least = 8
    /// Places that listeners have for connections, and that nobody has taken yet.
    private static let promised = Atomic<Int>(0)

    /// More places, or fewer when negative. The limit is the process's, and so are they.
    static func promise(_ places: Int) { self.promised.add(places, ordering: .relaxed) }

    /// What was let in of late, and may not have opened its descriptors yet: when, and how many.
    private static let granted = Mutex<[(ms: Int64, count: Int)]>([])
    private static let grantMs: Int64 = 1_000

    /// Whether so many may be opened now, for something that can wait or fail by itself.
    static func mayOpen(_ count: Int) -> Bool {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return true }
        let most = Int(clamping: limit.rlim_cur)
        let nowMs = LoopSweeper.nowMs
        return self.granted.withLock { granted in
            granted.removeAll { nowMs - $0.ms > self.grantMs }
            guard let open = self.count(upTo: most) else { return true }
            // Those that are open already count twice for a moment: rather one too few than one too many.
            let coming = granted.reduce(count) { $0 + $1.count }
            guard !self.areScarce(open: open + coming, promised: self.promised.load(ordering: .relaxed), limit: most) else { return false }
            granted.append((nowMs, count))
            return true
        }
    }

    static func areScarce(open: Int, promised: Int, limit: Int) -> Bool {
        // Promises that cannot be kept anyway were not fitted to the limit: a server within another program.
        let kept = promised <= limit - limit / 8 ? promised : 0
        return open + kept + self.least > limit
    }

    /// Open now; nil where that cannot be told, or only at length.
    static func count(upTo limit: Int) -> Int? {
        var status = stat()
        guard stat("/proc/self/fd", &status) == 0 else { return nil }
        // Linux 6.2 and later count them; before, the size is 0.
        if status.st_size > 0 { return Int(status.st_size) }
        guard limit <= self.longestList, let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        // Itself, "." and "..".
        return count - 3
    }

    /// Entries that are counted one by one.
    private static let longestList = 8_192
}
