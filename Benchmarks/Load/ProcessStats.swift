import LibC

/// CPU time and resident memory of the server, read from /proc. A plain value.
struct ProcessStats {
    let pid: Int32

    /// User and system time of all threads, in microseconds; the kernel counts in ticks, usually of 10 ms.
    func cpuMicroseconds() -> Int? { self.cpuTimes().map { $0.user + $0.system } }

    /// The same, user and system apart.
    func cpuTimes() -> (user: Int, system: Int)? {
        guard let stat = Self.read("/proc/\(self.pid)/stat"), let end = stat.lastIndex(of: ")") else { return nil }
        // proc(5): the fields after the name start with the third; utime and stime are 14 and 15.
        let fields = stat[stat.index(after: end)...].split(separator: " ")
        guard fields.count > 12, let user = Int(fields[11]), let system = Int(fields[12]) else { return nil }
        let ticksPerSecond = max(1, sysconf(CInt(_SC_CLK_TCK)))
        return (user * 1_000_000 / ticksPerSecond, system * 1_000_000 / ticksPerSecond)
    }

    /// Resident bytes.
    func residentBytes() -> Int? {
        guard let statm = Self.read("/proc/\(self.pid)/statm") else { return nil }
        let fields = statm.split(separator: " ")
        guard fields.count > 1, let pages = Int(fields[1]) else { return nil }
        return pages * sysconf(CInt(_SC_PAGESIZE))
    }

    /// This process's own user and system time, in microseconds.
    static func ownCPUMicroseconds() -> Int {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1_000_000 + Int(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)
    }

    /// CPU time used by all processes of this machine, in microseconds.
    static func machineCPUMicroseconds() -> Int? {
        // proc(5): the first line is user, nice, system, idle, iowait, irq, softirq, in ticks.
        guard let line = Self.read("/proc/stat")?.split(separator: "\n").first else { return nil }
        let ticks = line.split(separator: " ").dropFirst().compactMap { Int($0) }
        guard ticks.count >= 7 else { return nil }
        return (ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]) * 1_000_000 / max(1, sysconf(CInt(_SC_CLK_TCK)))
    }

    private static func read(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = LibC.read(descriptor, &bytes, bytes.count)
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }
}
