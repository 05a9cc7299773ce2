import Commands
import CommandSupport
import LibC
import Logging
import NIOCore
import ServerConfiguration
import Support

/// The process's limit of address space (RLIMIT_AS, `ulimit -v`), if it has one. On the first thread, and where settings are read.
enum AddressSpace {
    /// Stack of a thread where the space is limited, in bytes. The usual 8 MiB of each of fifty threads would be most of it.
    private static let stackBytes = 2 << 20
    /// Heaps of the C library where the space is limited. It would make eight for each core.
    private static let heaps = 2

    /// Bytes that were mapped before the first thread.
    private static let mappedAtStart = SystemMemory().mapped ?? 0

    /// Makes threads and heaps small where the space is limited, and ends the process if not even a command's threads fit: the runtime would wait for
    /// them for ever. Call before there is a second thread.
    static func prepare() {
        guard let limit = self.limit else { return }
        let attributes = UnsafeMutablePointer<pthread_attr_t>.allocate(capacity: 1)
        pthread_attr_init(attributes)
        pthread_attr_setstacksize(attributes, self.stackBytes)
        _ = setDefaultThreadAttributes?(attributes)
        pthread_attr_destroy(attributes)
        attributes.deallocate()
        _ = mallocOption?(mallocArenas, CInt(self.heaps))
        let least = AddressSpacePlan.least(mapped: self.mappedAtStart, stack: self.stackBytes, heaps: self.heaps, cores: System.coreCount)
        guard limit < least else { return }
        Console.complain("Error: \(AddressSpaceShortage(limit: limit, least: least))")
        exit(1)
    }

    /// Fits `limits.memory` into the limit and logs that. Throws ``AddressSpaceShortage``.
    static func fit(_ limits: inout ServerConfig.Limits, _ log: Logger) throws {
        guard let limit = self.limit else { return }
        let plan = try AddressSpacePlan(
            limit: limit, mapped: self.mappedAtStart, stack: self.stackBytes, heaps: self.heaps, cores: System.coreCount)
        let asked = limits.memoryBytes ?? SystemMemory().usualLimit
        guard plan.memory < asked else { return }
        log.warning(
            "The limit of address space is too low for limits.memory: raise or remove it (LimitAS= in the systemd unit, ulimit -v)",
            metadata: [
                "addressSpace": "\(limit)", "reserved": "\(plan.base)", "limits.memory": "\(plan.memory) instead of \(asked)",
            ])
        limits.memoryBytes = plan.memory
    }

    /// Nil when there is none.
    private static var limit: Int? {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0 else { return nil }
        // "Unlimited" is the largest number.
        return Int(exactly: limit.rlim_cur)
    }
}
