import CoreFoundation

#if canImport(Glibc)
import Glibc
#endif

/// The processor time that a thread or a process has used: what it did, without what it waited for.
struct CPUClock: Sendable {
    private let id: clockid_t

    /// The calling thread's. Any thread may read it while that one lives.
    static var thisThread: CPUClock {
        var id = clockid_t()
        pthread_getcpuclockid(pthread_self(), &id)
        return CPUClock(id: id)
    }

    /// Another process's, of all its threads together. Nil: there is no such process.
    init?(process: Int32) {
        var id = clockid_t()
        guard clock_getcpuclockid(process, &id) == 0 else { return nil }
        self.id = id
    }

    private init(id: clockid_t) { self.id = id }

    /// Zero when thread or process has ended.
    var used: Duration {
        var time = timespec()
        guard clock_gettime(self.id, &time) == 0 else { return .zero }
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
