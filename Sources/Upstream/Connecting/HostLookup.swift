#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif
internal import Synchronization

/// The reason why a name has no address. A plain value.
package struct LookupFailure: Error, Equatable {
    package let why: String
    package init(why: String) { self.why = why }
}

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
    ) throws(UpstreamError) -> [[UInt8]] {
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

    /// Resolves by `getaddrinfo`. Blocks. Addresses have 4 or 16 bytes in network order, in RFC 6724's order of preference.
    package static let system: @Sendable (String) -> Result<[[UInt8]], LookupFailure> = { name in
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = System.streamType
        hints.ai_flags = AI_ADDRCONFIG
        var list: UnsafeMutablePointer<addrinfo>?
        var code = getaddrinfo(name, nil, &hints, &list)
        // AI_ADDRCONFIG ignores loopback addresses; try without it on a machine that has no others.
        if code == EAI_NONAME || code == EAI_FAMILY {
            hints.ai_flags = 0
            code = getaddrinfo(name, nil, &hints, &list)
        }
        guard code == 0 else { return .failure(LookupFailure(why: String(cString: gai_strerror(code)))) }
        defer { freeaddrinfo(list) }
        var addresses: [[UInt8]] = []
        var next = list
        while let entry = next, addresses.count < 32 {
            next = entry.pointee.ai_next
            guard let address = entry.pointee.ai_addr else { continue }
            let bytes = UnsafeRawBufferPointer(start: address, count: Int(entry.pointee.ai_addrlen))
            // Family and port take 4 bytes, IPv6's flow label 4 more.
            switch entry.pointee.ai_family {
            case AF_INET where bytes.count >= 8: addresses.append(Array(bytes[4..<8]))
            case AF_INET6 where bytes.count >= 24: addresses.append(Array(bytes[8..<24]))
            default: break
            }
        }
        return addresses.isEmpty ? .failure(LookupFailure(why: "the name has no address")) : .success(addresses)
    }
}
