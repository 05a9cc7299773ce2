import CFileStatus
import LibC

/// A message about this process to the service manager.
package enum ServiceState: Sendable, Equatable {
    /// The start or the reload is complete.
    case ready
    /// A reload began at this time of the steady clock. ``ready`` ends it.
    case reloading(monotonicUs: UInt64)
    /// The shutdown began, and takes at most this long.
    case stopping(withinMs: Int64)
    /// The process still works.
    case alive
    /// From now on ``alive`` is expected this often.
    case watchdog(everyMs: Int64)
    /// One line for people, in `systemctl status`.
    case status(String)

    /// The assignments of sd_notify(3).
    var text: String {
        switch self {
        case .ready: "READY=1"
        case .reloading(let time): "RELOADING=1\nMONOTONIC_USEC=\(time)"
        case .stopping(let limit): "STOPPING=1\nEXTEND_TIMEOUT_USEC=\(max(0, min(limit, Self.longestMs)) * 1_000)"
        case .alive: "WATCHDOG=1"
        case .watchdog(let limit): "WATCHDOG_USEC=\(max(1, min(limit, Self.longestMs)) * 1_000)"
        case .status(let line):
            "STATUS="
                + String(
                    String.UnicodeScalarView(line.unicodeScalars.prefix(Self.statusLength).map { ShownText.isUnsafe($0) ? " " : $0 }))
        }
    }

    /// A reload that begins now.
    package static var reloadingNow: ServiceState {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return .reloading(monotonicUs: UInt64(clamping: now.tv_sec) * 1_000_000 + UInt64(clamping: now.tv_nsec) / 1_000)
    }

    /// Characters.
    private static let statusLength = 200
    /// A year.
    private static let longestMs: Int64 = 31_536_000_000
}

/// The service manager that started this process, such as systemd, and accepts states at a socket (sd_notify(3)). Any thread.
///
/// The socket is opened once, so that a process without free descriptors can still report.
package final class ServiceManager: Sendable {
    /// How long the manager waits for ``ServiceState/alive`` before it ends the process; nil when it does not watch.
    package let watchdogMs: Int?
    private let descriptor: CInt
    /// For `sun_path`: a path with its zero, or a name in the abstract namespace after a zero.
    private let address: [UInt8]

    /// Reads `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`. Nil when there is no manager, or the address is not a Unix socket.
    package init?(environment: (String) -> String?, processID: Int32 = getpid()) {
        guard let name = environment("NOTIFY_SOCKET"), let address = Self.address(name) else { return nil }
        let descriptor = socket(AF_UNIX, datagramSocket, 0)
        guard descriptor >= 0 else { return nil }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        self.descriptor = descriptor
        self.address = address
        // The variables may be a parent's that passed them on; then they do not apply to this process.
        let isForThis = environment("WATCHDOG_PID").map { Int32($0) == processID } ?? true
        let limit = environment("WATCHDOG_USEC").flatMap { UInt64($0) } ?? 0
        self.watchdogMs = isForThis && limit > 0 ? Int(clamping: max(1, limit / 1_000)) : nil
    }

    deinit { close(self.descriptor) }

    /// The manager of this process, from its environment.
    package static func ofThisProcess() -> ServiceManager? {
        ServiceManager(environment: { getenv($0).map { String(cString: $0) } })
    }

    /// "/path" or "@name"; nil for other forms and for a name that is too long.
    static func address(_ name: String) -> [UInt8]? {
        let limit = MemoryLayout.size(ofValue: sockaddr_un().sun_path)
        let bytes = Array(name.utf8)
        guard bytes.count > 1, bytes.count < limit else { return nil }
        switch bytes[0] {
        case UInt8(ascii: "/"): return bytes + [0]
        case UInt8(ascii: "@"): return [0] + bytes.dropFirst()
        default: return nil
        }
    }

    /// Sends the states as one datagram; returns false when it was not accepted. Never blocks.
    @discardableResult
    package func send(_ states: [ServiceState]) -> Bool {
        let text = Array(states.map(\.text).joined(separator: "\n").utf8)
        var to = sockaddr_un()
        to.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &to.sun_path) { $0.copyBytes(from: self.address) }
        let before = MemoryLayout<sockaddr_un>.size - MemoryLayout.size(ofValue: to.sun_path)
        let length = socklen_t(before + self.address.count)
        let sent = withUnsafePointer(to: to) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(self.descriptor, text, text.count, CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT), $0, length)
            }
        }
        return sent == text.count
    }
}
