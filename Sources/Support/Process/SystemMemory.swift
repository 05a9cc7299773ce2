import LibC
import NIOCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The process's available and used memory, from Linux's procfs and cgroup file systems. A value; reads files.
package struct SystemMemory {
    /// The folder that contains "proc" and "sys"; tests use another one.
    package var root = "/"

    package init(root: String = "/") { self.root = root }

    /// Share of the available memory. The rest is for the kernel's socket buffers, code, and uncharged memory.
    static let usualShare = 0.6
    /// Assumed where nothing can be read.
    private static let unknown = 4 << 30

    /// The limit in bytes if `limits.memory` is not set.
    package var usualLimit: Int { Int(Double(self.available) * Self.usualShare) }

    /// The lesser of the machine's memory and the process's control group limits, in bytes.
    package var available: Int {
        let group = self.groupLimit
        guard let machine = self.machine else { return group ?? Self.unknown }
        return min(machine, group ?? machine)
    }

    /// MemTotal of proc(5), in bytes.
    private var machine: Int? {
        let line = self.read("proc/meminfo")?.split(separator: "\n").first { $0.hasPrefix("MemTotal:") }
        return line?.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map { $0 << 10 }
    }

    /// The smallest memory limit of the process's control group and its parents. Bytes; by cgroups(7), version 1 or 2. Nil: there is none.
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

    /// Limits of the group at `path` and of each parent. In a container the path may be the host's, of which only the top is mounted.
    private func limits(_ mount: String, _ path: Substring, _ name: String) -> [Int] {
        var limits: [Int] = []
        var parts = path.split(separator: "/").filter { $0 != ".." }
        while true {
            let file = ([mount] + parts.map(String.init) + [name]).joined(separator: "/")
            // "max" means none. Version 1 has no such word; it has a number larger than any machine's memory.
            if let text = self.read(file), let limit = Int(text.prefix { $0.isNumber }), limit > 0, limit < 1 << 50 { limits.append(limit) }
            guard !parts.isEmpty else { return limits }
            parts.removeLast()
        }
    }

    /// The process's bytes in RAM.
    package var resident: Int? { self.pages(1) }

    /// The process's mapped bytes, which RLIMIT_AS limits.
    package var mapped: Int? { self.pages(0) }

    /// A field of proc(5)'s statm, in bytes.
    private func pages(_ field: Int) -> Int? {
        let fields = self.read("proc/self/statm")?.split(separator: " ") ?? []
        return fields.dropFirst(field).first.flatMap { Int($0) }.map { $0 * Int(sysconf(CInt(_SC_PAGESIZE))) }
    }

    private func read(_ path: String) -> String? {
        // A missing file has no value.
        try? String(contentsOfFile: self.root + path, encoding: .utf8)
    }
}
