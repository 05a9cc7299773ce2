import LibC

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Which process this is, for others on the same machine: they see whether it is gone.
package enum ProcessIdentity {
    /// The machine's boot and the container there, the process's number and when it started, in the kernel's ticks.
    package static let current: String = "\(host) \(getpid()) \(started(getpid()) ?? "")"

    /// The kernel's random id for this boot; nil where there is none.
    package static func bootID() -> String? {
        guard let text = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8) else { return nil }
        let id = text.filter { !$0.isWhitespace }
        return id.isEmpty ? nil : id
    }

    private static let host: String = {
        guard let boot = Self.bootID() else { return UUID().uuidString }
        // Numbers of processes count in their namespace.
        let namespace = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/pid")) ?? ""
        return "\(boot)/\(namespace)"
    }()

    /// True only if the process was one of this machine and has ended.
    package static func isGone(_ identity: String) -> Bool {
        let parts = identity.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3, parts[0] == self.host, let id = pid_t(parts[1]) else { return false }
        if kill(id, 0) != 0, errno == ESRCH { return true }
        // Another user's process may be hidden.
        guard let started = self.started(id) else { return false }
        return started != parts[2]
    }

    private static func started(_ id: pid_t) -> String? {
        (try? String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8)).flatMap(ProcessFigures.startTicks).map(String.init)
    }
}
