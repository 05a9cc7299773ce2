import LibC
import Support

/// Connects to a URL's host by TCP, to allowed addresses only, within a time limit. IPv6 and IPv4. On the link's thread.
///
/// librtmp's own connect knows only IPv4, waits as long as the system does, and cannot check addresses.
enum Dialer {
    struct Connection {
        /// Blocking; registered with the link's control, whose `close` closes it.
        let descriptor: Int32
        /// "192.0.2.1:1935"
        let remote: String
    }

    /// The most addresses of one name that are tried, one after another.
    private static let maxAttempts = 6

    static func connect(_ url: LinkURL, _ options: LinkOptions, control: LinkControl, until endMs: Int64) throws(LinkError)
        -> Connection
    {
        // TLS needs a pair of sockets in addition.
        if let shortage = options.shortage(url.isSecure ? 3 : 1) { throw .system("no socket (\(shortage))") }
        let found: [[UInt8]]
        switch url.host {
        case .address(let bytes): found = [bytes]
        case .name(let name): found = try HostLookup.addresses(of: name, with: options.lookup, control: control, until: endMs)
        }
        let allowed = found.filter { options.objection($0) == nil }
        guard let first = allowed.first else {
            let address = found.first ?? []
            throw .forbidden(
                host: url.hostText, address: found.first.map(IPText.text) ?? "none", why: options.objection(address) ?? "without an address"
            )
        }
        let candidates = Self.alternating(allowed, beginningWith: first.count).prefix(Self.maxAttempts)
        var failure = LinkError.connect(origin: url.origin, why: "no address")
        for (index, address) in candidates.enumerated() {
            // Shares the remaining time: an address that swallows packets leaves time for the next.
            let left = endMs - System.nowMs()
            guard left > 0 else { break }
            let share = System.nowMs() + max(left / Int64(candidates.count - index), min(left, 1_000))
            do throws(LinkError) {
                return try Self.connect(address, url, control: control, until: share)
            } catch {
                if error == .cancelled { throw error }
                failure = error
            }
        }
        throw failure
    }

    /// Alternates the two families, `size` first; keeps the resolver's order within each.
    private static func alternating(_ addresses: [[UInt8]], beginningWith size: Int) -> [[UInt8]] {
        let some = addresses.filter { $0.count == size }
        let others = addresses.filter { $0.count != size }
        var mixed: [[UInt8]] = []
        for index in 0..<max(some.count, others.count) {
            if index < some.count { mixed.append(some[index]) }
            if index < others.count { mixed.append(others[index]) }
        }
        return mixed
    }

    private static func connect(
        _ address: [UInt8], _ url: LinkURL, control: LinkControl, until endMs: Int64
    ) throws(LinkError) -> Connection {
        guard let descriptor = System.streamSocket(address.count == 4 ? AF_INET : AF_INET6) else {
            throw .system("no socket (\(System.lastError))")
        }
        do throws(LinkError) {
            System.setBlocking(descriptor, false)
            control.add(descriptor)
            if let code = Self.begin(descriptor, address, port: url.port) {
                guard code == EINPROGRESS else { throw .connect(origin: url.origin, why: errorText(code)) }
                while try !control.wait(for: descriptor, Int32(POLLOUT), until: endMs) {
                    guard System.nowMs() < endMs else { throw .connect(origin: url.origin, why: "it took too long") }
                }
                let error = Self.pendingError(descriptor)
                guard error == 0 else { throw .connect(origin: url.origin, why: errorText(error)) }
            }
        } catch {
            control.close(descriptor)
            throw error
        }
        System.setBlocking(descriptor, true)
        Self.tune(descriptor)
        let text = IPText.text(address)
        return Connection(descriptor: descriptor, remote: "\(address.count == 16 ? "[\(text)]" : text):\(url.port)")
    }

    /// Returns nil when connected at once; otherwise the error, which may be EINPROGRESS.
    private static func begin(_ descriptor: Int32, _ address: [UInt8], port: Int) -> Int32? {
        let result: Int32
        if address.count == 4 {
            var target = sockaddr_in()
            target.sin_family = sa_family_t(AF_INET)
            target.sin_port = UInt16(port).bigEndian
            withUnsafeMutableBytes(of: &target.sin_addr) { $0.copyBytes(from: address) }
            result = Self.connect(descriptor, &target)
        } else {
            var target = sockaddr_in6()
            target.sin6_family = sa_family_t(AF_INET6)
            target.sin6_port = UInt16(port).bigEndian
            withUnsafeMutableBytes(of: &target.sin6_addr) { $0.copyBytes(from: address) }
            result = Self.connect(descriptor, &target)
        }
        return result == 0 ? nil : errno
    }

    private static func connect<Address>(_ descriptor: Int32, _ target: inout Address) -> Int32 {
        withUnsafeBytes(of: &target) { bytes in
            LibC.connect(descriptor, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
    }

    private static func pendingError(_ descriptor: Int32) -> Int32 {
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length) == 0 ? code : errno
    }

    private static func tune(_ descriptor: Int32) {
        setSocketOption(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, 1)
        setSocketOption(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1)
        // Data should wait in the link's queue, where it can be dropped, not in the kernel.
        setSocketOption(descriptor, CInt(IPPROTO_TCP), LinuxSocket.notSentLowWater, 128 << 10)
    }
}
