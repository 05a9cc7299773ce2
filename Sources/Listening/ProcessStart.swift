import LibC
import Support
import Synchronization

/// What the server's own process does before anything else.
package enum ProcessStart {
    private static let sockets = Mutex<InheritedSockets>(.none)

    /// Takes the sockets that it was given, before other files get their numbers; remembers its program's path; and ignores the signals that it
    /// will trap, for by default they end a process.
    package static func prepare() {
        for number in [SIGHUP, SIGUSR2] { signal(number, SIG_IGN) }
        self.sockets.withLock { $0 = .ofThisProcess() }
        NextProgram.rememberPath()
    }

    /// The sockets that this process was given, once.
    package static func takeSockets() -> InheritedSockets {
        self.sockets.withLock { sockets in
            defer { sockets = .none }
            return sockets
        }
    }
}
