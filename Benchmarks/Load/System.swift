import LibC

/// An error that stops the whole run. Failures of a single viewer are counted instead.
enum LoadError: Error, Equatable, CustomStringConvertible {
    case system(String, Int32)
    case badURL(String)
    case notLoopback(String)
    /// The server refused or broke off a publisher.
    case publisher(String)
    case timeout(String)

    var description: String {
        switch self {
        case .system(let call, let code): "\(call) failed: \(String(cString: strerror(code)))"
        case .badURL(let url): "cannot read \(url); expected rtmp://127.0.0.1:PORT/APP"
        case .notLoopback(let host): "\(host) is not a loopback address; --allow-remote permits it, on machines of your own"
        case .publisher(let what): "the publisher failed: \(what)"
        case .timeout(let what): "timed out: \(what)"
        }
    }
}

/// CLOCK_MONOTONIC, the only clock for all figures.
enum Clock {
    /// Nanoseconds.
    static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }

    static func sleep(untilNs: UInt64) {
        var time = timespec(tv_sec: Int(untilNs / 1_000_000_000), tv_nsec: Int(untilNs % 1_000_000_000))
        while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nil) == EINTR {}
    }
}

/// A server's address. IPv4 only, since measurements run over loopback.
struct Target {
    var host: String
    var port: UInt16
    var app: String
    var address: sockaddr_in
    let isLoopback: Bool
    /// Viewers play HTTP-FLV from this port.
    var httpPort: UInt16?

    var url: String { "rtmp://\(self.host):\(self.port)/\(self.app)" }

    init(url: String, httpPort: UInt16? = nil, allowRemote: Bool) throws(LoadError) {
        self.httpPort = httpPort
        guard url.hasPrefix("rtmp://") else { throw .badURL(url) }
        let parts = url.dropFirst("rtmp://".count).split(separator: "/", maxSplits: 1)
        guard parts.count == 2, !parts[1].isEmpty else { throw .badURL(url) }
        let authority = parts[0].split(separator: ":", maxSplits: 1)
        let host = authority.first == "localhost" ? "127.0.0.1" : String(authority.first ?? "")
        guard let port = authority.count == 2 ? UInt16(authority[1]) : 1935 else { throw .badURL(url) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else { throw .badURL(url) }
        // 127.0.0.0/8; s_addr is in network order.
        self.isLoopback = UInt32(bigEndian: address.sin_addr.s_addr) >> 24 == 127
        guard self.isLoopback || allowRemote else { throw .notLoopback(host) }
        self.host = host
        self.port = port
        self.app = String(parts[1])
        self.address = address
    }
}

/// TCP sockets as plain descriptors.
enum Socket {
    /// Opens a socket that is connecting (`isBlocking` false) or connected. `port` replaces the target's. `source` selects one of a few
    /// loopback addresses to connect from.
    static func open(
        to target: Target, port: UInt16? = nil, source: Int? = nil, isBlocking: Bool, receiveBufferBytes: Int? = nil
    ) throws(LoadError) -> CInt {
        let kind = CInt(SOCK_STREAM.rawValue) | (isBlocking ? 0 : CInt(SOCK_NONBLOCK.rawValue))
        let descriptor = socket(AF_INET, kind | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .system("socket", errno) }
        self.set(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, 1)
        // Before connect: the window scale is settled in the handshake.
        if let receiveBufferBytes { self.set(descriptor, SOL_SOCKET, SO_RCVBUF, CInt(clamping: receiveBufferBytes)) }
        if let source, target.isLoopback { self.bind(descriptor, to: source) }
        var address = target.address
        if let port { address.sin_port = port.bigEndian }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 || errno == EINPROGRESS else {
            let code = errno
            close(descriptor)
            throw .system("connect to \(target.url)", code)
        }
        return descriptor
    }

    /// Binds to one of a few addresses to share out the ports. Each has 28,000 for connections to one server. With 20,000 in use, connect()
    /// searches so long for a free one that the generator's core does nothing else.
    private static func bind(_ descriptor: CInt, to source: Int) {
        // Binds only the address; connect() picks the port once it knows the destination: ip(7).
        self.set(descriptor, CInt(IPPROTO_IP), Self.bindWithoutPort, 1)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        // 127.0.1.1 and up.
        address.sin_addr.s_addr = (0x7f00_0101 + UInt32(source % Self.sources)).bigEndian
        // If refused: any address, as without it.
        _ = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                LibC.bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    private static let sources = 16
    /// linux/in.h: IP_BIND_ADDRESS_NO_PORT, which Glibc's module does not always have.
    private static let bindWithoutPort: CInt = 24

    private static func set(_ descriptor: CInt, _ level: CInt, _ option: CInt, _ value: CInt) {
        var value = value
        // Advisory options of a measuring tool: a kernel without them is measured as it is.
        _ = setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<CInt>.size))
    }

    /// Limits how long a blocking call on this socket may take.
    static func setTimeout(_ descriptor: CInt, seconds: Int) {
        var time = timeval(tv_sec: seconds, tv_usec: 0)
        _ = setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        _ = setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Sends all of it; `false` when the socket refuses or a non-blocking one is full.
    static func sendAll(_ descriptor: CInt, _ bytes: UnsafeRawBufferPointer) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = send(descriptor, bytes.baseAddress.map { $0 + sent }, bytes.count - sent, CInt(MSG_NOSIGNAL))
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }
}

/// Each viewer needs a descriptor: the usual soft limit of 1,024 would be reached first of all.
enum OpenFiles {
    /// Descriptors for which the table is made at once.
    private static let tableSize: CInt = 32_768

    /// The most viewers possible in this process, and in a server with the same limit.
    static var viewers: Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1_000 }
        return max(1, Int(clamping: limit.rlim_cur) - 500)
    }

    /// Raises the limit. Call before a second thread exists.
    static func raiseLimit() {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        // If refused, socket() fails at the first viewer too many.
        _ = setrlimit(resource, &limit)
        // Linux doubles the table as it fills, and in a process with threads waits for an RCU grace period each time: joins number 256 and
        // 512 were seen to wait 20 ms for it. A high descriptor, closed again, leaves a large table behind.
        let high = fcntl(STDIN_FILENO, F_DUPFD, CInt(clamping: min(limit.rlim_cur, rlim_t(Self.tableSize))) - 1)
        if high >= 0 { close(high) }
    }
}
