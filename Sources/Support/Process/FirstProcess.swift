import CFileStatus
import LibC
import Synchronization

/// The duties of process 1, which this one is when it is a container's only program (pid_namespaces(7)).
package enum FirstProcess {
    /// Children of this process's own, which are waited for where they were started.
    private static let children = Mutex(0)
    private static let pause = Duration.seconds(1)

    private static var isThis: Bool { getpid() == 1 }

    /// The signals that ask for the end.
    static let ending = [SIGTERM, SIGINT, SIGQUIT]

    /// Lets ``ending`` end the process from now on, since signals have no default there, and begins to take the ends of orphans. Does nothing
    /// in other processes. Call before the signals are trapped.
    package static func prepare() {
        guard self.isThis else { return }
        self.endBySignals()
        self.setSignals(SIG_UNBLOCK)
        Task.detached {
            while true {
                self.reapOrphans()
                try? await Task.sleep(for: self.pause)
            }
        }
    }

    /// Lets ``ending`` end the process at once.
    static func endBySignals() {
        guard self.isThis else { return }
        for number in self.ending { signal(number) { _exit(128 + $0) } }
    }

    /// Keeps signals for the next program in this process, which lets them through when it can end by them.
    static func holdSignals() { if self.isThis { self.setSignals(SIG_BLOCK) } }

    private static func setSignals(_ how: CInt) {
        var numbers = sigset_t()
        sigemptyset(&numbers)
        for number in self.ending { sigaddset(&numbers, number) }
        pthread_sigmask(how, &numbers, nil)
    }

    /// Runs a child of this process's own, and keeps its end for `body`.
    static func withChild(_ body: () -> ChildProgram.Outcome) -> ChildProgram.Outcome {
        self.children.withLock { $0 += 1 }
        defer { self.children.withLock { $0 -= 1 } }
        return body()
    }

    private static func reapOrphans() {
        // Waits for no child, so the lock is held for a moment only.
        self.children.withLock { children in
            guard children == 0 else { return }
            while earshot_reap_one() > 0 {}
        }
    }
}
