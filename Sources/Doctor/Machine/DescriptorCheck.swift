import LibC
import NIOCore
import ServerConfiguration

/// Compares the limit of open files with the limits of connections. Blocks.
enum DescriptorCheck {
    static func run(_ subject: LocalSubject) -> [DoctorResult] {
        let (limit, whose) = self.limit(subject.serverProcess)
        return [self.judge(limit: limit, whose: whose, subject.config.limits)]
    }

    static func judge(limit: Int?, whose: String, _ limits: ServerConfig.Limits, loops: Int = System.coreCount) -> DoctorResult {
        let name = "open files"
        guard let limit else { return .skip(name, "the limit cannot be read") }
        let advice =
            "raise it: LimitNOFILE=131072 in the systemd unit, --ulimit nofile=131072 for a container, or ulimit -n before the start"
        do throws(DescriptorShortage) {
            let reductions = try DescriptorPlan(limit: limit, limits: limits, loops: loops).reductions(of: limits)
            guard !reductions.isEmpty else {
                return .pass(
                    name, "\(limit) \(whose), enough for \(limits.connections) RTMP and \(limits.httpConnections) HTTP connections")
            }
            let words = reductions.map { "\($0.setting) \($0.kept) instead of \($0.asked)" }.joined(separator: ", ")
            // Below a thousand connections, an ordinary evening's viewers reach the limit; above, that depends on the expected audience.
            let isLow = reductions.contains { $0.kept < 1_000 }
            let measured = "\(limit) \(whose): \(words)"
            return isLow ? .fail(name, measured, advice) : .warn(name, measured, advice + "; or lower the settings")
        } catch {
            return .fail(name, "\(error)", advice)
        }
    }

    /// The running server's limit of open files; without one, the limit that a server started from here would set for itself.
    private static func limit(_ process: Int?) -> (Int?, String) {
        if let process, process > 0, let limits = SmallFile.text("/proc/\(process)/limits"),
            let line = limits.split(separator: "\n").first(where: { $0.hasPrefix("Max open files") })
        {
            // "Max open files            1024                 524288               files"
            let numbers = line.split(separator: " ").compactMap { Int($0) }
            if let soft = numbers.first { return (soft, "for the running server") }
        }
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return (nil, "") }
        return (Int(clamping: min(limit.rlim_max, 1 << 20)), "for a server started from here")
    }
}
