import LibC
import Support
internal import Synchronization

/// Resolves names for links with a time limit. Each lookup runs on a thread of its own, which is abandoned when it hangs.
package enum HostLookup {
    /// Limit for the process's concurrent lookups. It also limits the threads that a dead name server holds.
    static let maxLookups = 16
    private static let running = Mutex(0)

    private final class Answer: Sendable {
        let result = Mutex<Result<[[UInt8]], LookupFailure>?>(nil)
    }

    /// Blocks until the answer arrives, `endMs` (`System.nowMs`) has passed, or the link is stopped.
    static func addresses(
        of host: String, with lookup: @escaping @Sendable (String) -> Result<[[UInt8]], LookupFailure>, control: LinkControl,
        until endMs: Int64
    ) throws(LinkError) -> [[UInt8]] {
        let mayRun = Self.running.withLock { count in
            guard count < Self.maxLookups else { return false }
            count += 1
            return true
        }
        guard mayRun else { throw .resolve(host: host, why: "\(Self.maxLookups) other lookups are waiting for an answer") }
        let answer = Answer()
        let thread = LinkThread(name: "lookup") {
            let result = lookup(host)
            answer.result.withLock { $0 = result }
            Self.running.withLock { $0 -= 1 }
            control.wake()
        }
        guard thread != nil else {
            Self.running.withLock { $0 -= 1 }
            throw .system("no thread for a name lookup")
        }
        while true {
            if let result = answer.result.withLock({ $0 }) {
                switch result {
                case .success(let addresses): return addresses
                case .failure(let failure): throw .resolve(host: host, why: failure.why)
                }
            }
            guard System.nowMs() < endMs else { throw .resolve(host: host, why: "the name servers took too long") }
            _ = try control.wait(until: endMs)
        }
    }
}
