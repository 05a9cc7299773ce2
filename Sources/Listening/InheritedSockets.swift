import LibC
import NIOCore
import Support

/// The listening TCP sockets and the UDP ports that this process inherited from systemd (sd_listen_fds(3)) or from the program that it replaced. A plain value.
package struct InheritedSockets: Sendable {
    struct Socket: Sendable, Equatable {
        let descriptor: CInt
        /// The scheme that it was opened for; nil from systemd.
        let scheme: String?
        let address: SocketAddress
        /// A port of UDP; otherwise a listening socket of TCP.
        let isDatagram: Bool
    }

    private(set) var sockets: [Socket] = []
    private var unusable: [String] = []
    private var closed: [CInt] = []

    /// Inherited descriptors that cannot be used: closed ones, and those that are neither listening TCP sockets nor UDP ports.
    var problems: [String] {
        let numbers = self.closed.map(String.init).joined(separator: ", ")
        return self.unusable + (self.closed.isEmpty ? [] : ["not open: \(numbers)"])
    }

    package static let none = InheritedSockets()

    /// For ``kept(_:processID:)``: "PROCESS:SCHEME=DESCRIPTOR,…".
    package static let keptVariable = "LISTEN_KEPT"
    /// systemd's first descriptor.
    private static let firstDescriptor: CInt = 3
    private static let mostSockets = 64

    /// The variables that pass these sockets on to this process's next program.
    package static func kept(_ sockets: [(scheme: String, descriptor: CInt)], processID: Int32 = getpid()) -> [String: String] {
        [Self.keptVariable: "\(processID):" + sockets.map { "\($0.scheme)=\($0.descriptor)" }.joined(separator: ",")]
    }

    /// Reads the inherited sockets and removes their variables from the environment, so that child processes do not see them. Call once, at the start.
    package static func ofThisProcess() -> InheritedSockets {
        let names = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", Self.keptVariable]
        let values = names.map { getenv($0).map { String(cString: $0) } }
        for name in names { unsetenv(name) }
        return InheritedSockets(environment: { name in names.firstIndex(of: name).flatMap { values[$0] } })
    }

    private init() {}

    init(environment: (String) -> String?, processID: Int32 = getpid()) {
        // A parent process may have left the variables in the environment; LISTEN_PID says which process they are for.
        if let count = environment("LISTEN_FDS").flatMap({ CInt($0) }), environment("LISTEN_PID") == "\(processID)" {
            for descriptor in Self.firstDescriptor..<(Self.firstDescriptor + max(0, min(count, CInt(Self.mostSockets)))) {
                self.add(descriptor, scheme: nil)
            }
        }
        let kept = environment(Self.keptVariable)?.split(separator: ":", maxSplits: 1) ?? []
        guard kept.count == 2, kept[0] == "\(processID)" else { return }
        for entry in kept[1].split(separator: ",").prefix(Self.mostSockets) {
            let parts = entry.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, let descriptor = CInt(parts[1]), descriptor > STDERR_FILENO else { continue }
            self.add(descriptor, scheme: String(parts[0]))
        }
    }

    private mutating func add(_ descriptor: CInt, scheme: String?) {
        guard fcntl(descriptor, F_GETFD) >= 0 else { return self.closed.append(descriptor) }
        let type = Self.option(SO_TYPE, of: descriptor)
        guard type == datagramSocket || type == streamSocket && Self.option(SO_ACCEPTCONN, of: descriptor) == 1,
            let address = Self.address(of: descriptor)
        else {
            close(descriptor)
            return self.unusable.append(
                "descriptor \(descriptor) is neither a listening TCP socket nor a UDP port; expected one, as ListenStream= and ListenDatagram= of a"
                    + " socket unit with address and port make them")
        }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        self.sockets.append(Socket(descriptor: descriptor, scheme: scheme, address: address, isDatagram: type == datagramSocket))
    }

    private static func option(_ name: CInt, of descriptor: CInt) -> CInt? {
        var value: CInt = 0
        var size = socklen_t(MemoryLayout<CInt>.size)
        return getsockopt(descriptor, SOL_SOCKET, name, &value, &size) == 0 ? value : nil
    }

    /// Nil for families other than IPv4 and IPv6.
    private static func address(of descriptor: CInt) -> SocketAddress? {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let isKnown = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) == 0 }
        }
        guard isKnown else { return nil }
        let family = CInt(storage.ss_family)
        return withUnsafePointer(to: &storage) { pointer in
            switch family {
            case AF_INET: pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { SocketAddress($0.pointee) }
            case AF_INET6: pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { SocketAddress($0.pointee) }
            default: nil
            }
        }
    }

    /// Removes and returns the socket that listens at the setting's address, or is its port of UDP; for port 0, the one that was opened for the same
    /// scheme. Blocks to resolve a name.
    mutating func remove(_ scheme: String, _ setting: HostPort, isDatagram: Bool = false) -> Socket? {
        guard !self.sockets.isEmpty, let wanted = try? SocketAddress.makeAddressResolvingHost(setting.host, port: setting.port) else {
            return nil
        }
        let index = self.sockets.firstIndex { socket in
            let hasPort = setting.port == 0 ? socket.scheme == scheme : socket.address.port == setting.port
            return hasPort && socket.isDatagram == isDatagram && Self.serves(socket, wanted)
        }
        return index.map { self.sockets.remove(at: $0) }
    }

    /// Removes and returns the sockets that would prevent a new one from binding this port.
    mutating func removeOthers(of port: Int, isDatagram: Bool = false) -> [Socket] {
        let others = self.sockets.filter { port != 0 && $0.address.port == port && $0.isDatagram == isDatagram }
        self.sockets.removeAll { others.contains($0) }
        return others
    }

    /// For a `ListenStream=` without an address systemd binds `[::]`, which accepts IPv4 too; so that socket also serves a setting of 0.0.0.0.
    private static func serves(_ socket: Socket, _ wanted: SocketAddress) -> Bool {
        let (given, asked) = (socket.address.ipAddress, wanted.ipAddress)
        return given == asked || (socket.scheme == nil && given == "::" && asked == "0.0.0.0")
    }
}
