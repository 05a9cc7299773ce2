import NIOCore
import NIOPosix

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The number of a server's event loops.
enum EventLoops {
    /// Sets one loop per core that this process may use. With fewer cores than the machine has (taskset, cpusets), more loops would only
    /// take turns. Call before anything uses the singleton group.
    static func matchAvailableCores() {
        // Without procfs NIO's own number applies.
        guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
            let line = status.split(separator: "\n").first(where: { $0.hasPrefix("Cpus_allowed:") })
        else { return }
        // A mask in hexadecimal digits, grouped by commas.
        let cores = line.dropFirst("Cpus_allowed:".count).reduce(0) { $0 + ($1.hexDigitValue?.nonzeroBitCount ?? 0) }
        guard cores > 0 else { return }
        NIOSingletons.groupLoopCountSuggestion = min(cores, System.coreCount)
    }
}
