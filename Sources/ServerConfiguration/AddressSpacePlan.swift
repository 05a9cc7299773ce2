/// Divides a limited address space between the program, its threads, and the memory for streams. A value.
///
/// A Swift program cannot go on without an allocation or a thread that it asked for: it is ended, or waits for ever. So all that the server may need
/// must fit into the limit from the start.
package struct AddressSpacePlan: Sendable, Equatable {
    /// The process's limit (RLIMIT_AS), in bytes.
    package let limit: Int
    /// Bytes for all but streams: the program and its libraries, threads, the C library's heaps, store, recordings.
    package let base: Int
    /// Bytes that `limits.memory` may have.
    package let memory: Int

    /// Threads besides those of the cores: lookups of names, store, log, recordings, timers.
    private static let otherThreads = 40
    /// Threads for each core: an event loop, one for blocking work, one for tasks.
    private static let threadsPerCore = 3
    /// The C library takes address space for a heap in whole pieces of this size.
    package static let heapBytes = 64 << 20
    /// Store, statistics, links, remuxers, and what the runtime reserves.
    private static let rest = 128 << 20
    /// A server with less memory for streams is useless.
    private static let leastMemory = 32 << 20
    /// The part of the remaining space that may be charged. The rest is for what is not charged, and for holes between allocations.
    private static let share = 2

    /// Throws when the limit is too low to serve at all. `mapped`: bytes that the process had mapped before its first thread; `stack`: of one thread;
    /// `heaps`: how many the C library may have.
    package init(limit: Int, mapped: Int, stack: Int, heaps: Int, cores: Int) throws(AddressSpaceShortage) {
        self.limit = limit
        self.base = mapped + (Self.otherThreads + Self.threadsPerCore * cores) * stack + heaps * Self.heapBytes + Self.rest
        let left = limit - self.base
        guard left >= Self.leastMemory * Self.share else {
            throw AddressSpaceShortage(limit: limit, least: self.base + Self.leastMemory * Self.share)
        }
        self.memory = left / Self.share
    }

    /// The least for any command: its program, and a few threads for each core.
    package static func least(mapped: Int, stack: Int, heaps: Int, cores: Int) -> Int {
        mapped + (4 + self.threadsPerCore * cores) * stack + heaps * self.heapBytes
    }
}

/// The process's limit of address space is too low. Sizes in bytes.
package struct AddressSpaceShortage: Error, Equatable, CustomStringConvertible {
    let limit: Int
    let least: Int

    package init(limit: Int, least: Int) {
        self.limit = limit
        self.least = least
    }

    package var description: String {
        "the limit of address space is \(self.limit >> 20) MiB; needed are \((self.least + (1 << 20) - 1) >> 20) MiB or more. Raise or remove it (LimitAS= in "
            + "the systemd unit, ulimit -v); limits.memory, or the memory limit of a control group, bounds the memory that is used"
    }
}
