import LibC

/// The reason why a name has no address. A plain value.
package struct LookupFailure: Error, Equatable {
    package let why: String
    package init(why: String) { self.why = why }
}

/// The system's resolver. Any thread.
package enum SystemResolver {
    /// Resolves by `getaddrinfo`. Blocks. Addresses have 4 or 16 bytes in network order, in RFC 6724's order of preference.
    package static let lookup: @Sendable (String) -> Result<[[UInt8]], LookupFailure> = { name in
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = streamSocket
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
