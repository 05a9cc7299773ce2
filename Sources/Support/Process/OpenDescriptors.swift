import CFileStatus
import LibC
import Synchronization

/// Estimates how many descriptors the process can still open. Any thread; asks the system, so not for hot paths.
///
/// Work that can wait or fail on its own (a recording, a link) checks this before it begins: the last descriptors are for the store and the runtime,
/// which ends the process when there are none.
package enum OpenDescriptors {
    package static let advice = "the limit of open files is nearly reached; raise it (LimitNOFILE= in the systemd unit, ulimit -n)"

    /// Descriptors left for essential work.
    private static let least = 8
    /// Places that listeners have promised to connections, not yet taken.
    private static let promised = Atomic<Int>(0)

    /// Adds places, or removes them when negative. Process-wide, like the limit.
    package static func promise(_ places: Int) { self.promised.add(places, ordering: .relaxed) }

    /// Recent grants, whose descriptors may not be open yet: time and number.
    private static let granted = Mutex<[(ms: Int64, count: Int)]>([])
    private static let grantMs: Int64 = 1_000

    /// The process's limit; nil when the system does not report one.
    package static var limit: Int? {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return nil }
        return Int(clamping: limit.rlim_cur)
    }

    /// Whether this many may be opened now. For work that can wait or fail on its own.
    package static func mayOpen(_ count: Int) -> Bool {
        guard let most = self.limit else { return true }
        let nowMs = LoopSweeper.nowMs
        return self.granted.withLock { granted in
            granted.removeAll { nowMs - $0.ms > self.grantMs }
            guard let open = self.count(upTo: most) else { return true }
            // Those already open count twice for a moment: it is safer to allow one too few than one too many.
            let coming = granted.reduce(count) { $0 + $1.count }
            guard !self.areScarce(open: open + coming, promised: self.promised.load(ordering: .relaxed), limit: most) else { return false }
            granted.append((nowMs, count))
            return true
        }
    }

    static func areScarce(open: Int, promised: Int, limit: Int) -> Bool {
        // If the promises exceed the limit, nobody planned for it: the server runs inside another program.
        let kept = promised <= limit - limit / 8 ? promised : 0
        return open + kept + self.least > limit
    }

    /// The number open now; nil where counting is impossible or slow.
    package static func count(upTo limit: Int) -> Int? {
        let size = earshot_size_of("/proc/self/fd")
        guard size >= 0 else { return nil }
        // Linux 6.2 and later count them; before, the size is 0.
        if size > 0 { return Int(size) }
        guard limit <= self.longestList, let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        // Excludes this folder's own descriptor, "." and "..".
        return count - 3
    }

    /// Most entries that are counted one by one.
    private static let longestList = 8_192
}
