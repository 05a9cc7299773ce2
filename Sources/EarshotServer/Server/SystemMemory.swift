import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How much memory the process may have, and how much it has, as Linux says in procfs and the cgroup file systems. A value; reads files.
struct SystemMemory {
    /// Where "proc" and "sys" are; another one for tests.
    var root = "/"

    /// Of what the process may have at all. The rest is for the kernel's socket buffers, code, and what is not charged.
    static let usualShare = 0.6
    /// Where nothing can be read.
    private static let unknown = 4 << 30

    /// Bytes that a process without the setting `limits.memory` keeps to.
    var usualLimit: Int { Int(Double(self.available) * Self.usualShare) }

    /// Bytes: of the machine's memory and the limits of the process's control groups, the least.
    var available: Int {
        let group = self.groupLimit
        guard let machine = self.machine else { return group ?? Self.unknown }
        return min(machine, group ?? machine)
    }

    /// Bytes: MemTotal of proc(5).
    private var machine: Int? {
        let line = self.read("proc/meminfo")?.split(separator: "\n").first { $0.hasPrefix("MemTotal:") }
        return line?.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map { $0 << 10 }
    }

    /// Bytes: the smallest limit of the group and those that it is in, by cgroups(7), version 1 and 2. Nil: there is none.
    private var groupLimit: Int? {
        var limits: [Int] = []
        for line in self.read("proc/self/cgroup")?.split(separator: "\n") ?? [] {
            // "ID:CONTROLLERS:PATH"; version 2 has id 0 and no controllers.
            let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else { continue }
            if parts[1].isEmpty {
                for mount in ["sys/fs/cgroup", "sys/fs/cgroup/unified"] { limits += self.limits(mount, parts[2], "memory.max") }
            } else if parts[1].split(separator: ",").contains("memory") {
                limits += self.limits("sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes")
            }
        }
        return limits.min()
    }

    /// Of the group at `path` and of each above. In a container the path may be the host's, of which only the top is mounted.
    private func limits(_ mount: String, _ path: Substring, _ name: String) -> [Int] {
        var limits: [Int] = []
        var parts = path.split(separator: "/").filter { $0 != ".." }
        while true {
            let file = ([mount] + parts.map(String.init) + [name]).joined(separator: "/")
            // "max" is none. Version 1 has no word for that but a number that no machine has.
            if let text = self.read(file), let limit = Int(text.prefix { $0.isNumber }), limit > 0, limit < 1 << 50 { limits.append(limit) }
            guard !parts.isEmpty else { return limits }
            parts.removeLast()
        }
    }

    /// Bytes that the process has in RAM: proc(5), statm.
    var resident: Int? {
        guard let pages = self.read("proc/self/statm")?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else { return nil }
        return pages * Int(sysconf(CInt(_SC_PAGESIZE)))
    }

    private func read(_ path: String) -> String? {
        // What is not there says nothing.
        try? String(contentsOfFile: self.root + path, encoding: .utf8)
    }
}
