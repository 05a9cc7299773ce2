import LibC
import Logging
import NIOCore
import ServerConfiguration

/// Limits the process's file descriptors: one per connection, and some for the rest.
enum OpenFiles {
    /// Raises the limit as far as allowed, fits the settings into it and logs that. Throws ``DescriptorShortage``.
    static func prepare(for limits: inout ServerConfig.Limits, _ log: Logger) throws {
        self.raiseLimit(log)
        guard let limit = try self.fit(&limits, log) else { return }
        self.growTable(to: limits.connections + limits.httpConnections, limit)
    }

    /// Fits the settings into the process's limit and logs that. Returns the limit; nil if it is unknown. Throws ``DescriptorShortage``.
    @discardableResult
    static func fit(_ limits: inout ServerConfig.Limits, _ log: Logger) throws -> rlimit? {
        var limit = rlimit()
        guard getrlimit(self.resource, &limit) == 0 else { return nil }
        let plan = try DescriptorPlan(limit: Int(clamping: limit.rlim_cur), limits: limits, loops: System.coreCount)
        let reductions = plan.reductions(of: limits)
        if !reductions.isEmpty {
            var metadata: Logger.Metadata = ["openFiles": "\(plan.limit)", "reserved": "\(plan.reserve)"]
            for reduction in reductions { metadata[reduction.setting] = "\(reduction.kept) instead of \(reduction.asked)" }
            log.warning(
                "The limit of open files is too low for the settings: raise it (LimitNOFILE= in the systemd unit, ulimit -n) or lower them",
                metadata: metadata)
        }
        plan.apply(to: &limits)
        return limit
    }

    private static var resource: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_NOFILE.rawValue) }

    /// Grows the descriptor table once at the start. If it grew later, in a process with threads, the caller would wait 20 to 40 ms for a grace
    /// period of the kernel, and serve nobody meanwhile.
    private static func growTable(to connections: Int, _ limit: rlimit) {
        let highest = min(UInt64(limit.rlim_cur), UInt64(connections) + 256, 1 << 20)
        let copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, CInt(clamping: highest - 1))
        if copy >= 0 { close(copy) }
    }

    private static func raiseLimit(_ log: Logger) {
        var limit = rlimit()
        guard getrlimit(self.resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
        let wanted = min(limit.rlim_max, 1 << 20)
        limit.rlim_cur = wanted
        if setrlimit(self.resource, &limit) != 0 {
            log.warning("The limit of open files could not be raised", metadata: ["wanted": "\(wanted)"])
        }
    }
}
