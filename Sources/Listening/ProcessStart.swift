import LibC
import Support
import Synchronization

/// The first steps of a process that runs one server.
package enum ProcessStart {
    private static let sockets = Mutex<InheritedSockets>(.none)

    /// Signals whose default action ends the process, and that mean nothing here: a tool sends them by mistake, or a library sets a timer.
    private static let meaningless = [SIGUSR1, SIGALRM, SIGVTALRM, SIGPROF]

    /// Claims inherited sockets before other files can reuse their descriptors, remembers the program's path, and ignores SIGHUP and SIGUSR2 until
    /// they are trapped, because their default action ends the process. Process 1 takes up its duties, and a shortage of threads is watched for.
    package static func prepare() {
        for number in [SIGHUP, SIGUSR2] + self.meaningless { signal(number, SIG_IGN) }
        self.sockets.withLock { $0 = .ofThisProcess() }
        FirstProcess.prepare()
        NextProgram.rememberPath()
        ThreadShortage.watch()
    }

    /// Returns the inherited sockets on the first call, none afterwards.
    package static func inheritSockets() -> InheritedSockets {
        self.sockets.withLock { sockets in
            defer { sockets = .none }
            return sockets
        }
    }
}
