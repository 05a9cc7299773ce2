import LibC

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The system's figures of this process. Values; each read takes some tens of microseconds.
package struct ProcessFigures: Sendable, Equatable {
    /// Seconds of CPU, in user and system mode together (getrusage(2)).
    package let cpuSeconds: Double
    /// Seconds for which the process has run; nil where proc(5) is missing.
    package let runsForSeconds: Double?

    package init() {
        var usage = rusage()
        getrusage(usageOfThisProcess, &usage)
        self.cpuSeconds = Self.seconds(usage.ru_utime) + Self.seconds(usage.ru_stime)
        self.runsForSeconds = Self.runsFor(
            stat: Self.text("/proc/self/stat"), uptime: Self.text("/proc/uptime"), perSecond: Int(sysconf(CInt(_SC_CLK_TCK))))
    }

    /// proc(5): `starttime` is the twenty-second field of stat, in clock ticks since the system's start. The second field, the program's
    /// name, is in parentheses and may hold anything.
    static func startTicks(_ stat: String) -> Substring? {
        guard let end = stat.lastIndex(of: ")") else { return nil }
        let fields = stat[stat.index(after: end)...].split(separator: " ")
        return fields.count > 19 ? fields[19] : nil
    }

    /// From the texts of proc(5).
    static func runsFor(stat: String?, uptime: String?, perSecond: Int) -> Double? {
        guard perSecond > 0, let ticks = stat.flatMap(Self.startTicks).flatMap({ Double($0) }),
            let up = uptime?.split(separator: " ").first.flatMap({ Double($0) })
        else { return nil }
        return max(0, up - ticks / Double(perSecond))
    }

    private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1_000_000 }

    private static func text(_ path: String) -> String? {
        // A missing file has no value.
        try? String(contentsOfFile: path, encoding: .utf8)
    }
}
