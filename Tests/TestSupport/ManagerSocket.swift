import LibC

/// A service manager's end of NOTIFY_SOCKET (sd_notify(3)): a datagram socket in the abstract namespace. One test's own.
package final class ManagerSocket: Sendable {
    /// As in NOTIFY_SOCKET: "@name".
    package let name: String
    private let descriptor: CInt
    private let seen = LockedList<String>()

    package init() throws {
        self.name = "@earshot-test-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"
        self.descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        // The abstract namespace: a zero in place of the @.
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: [0] + self.name.utf8.dropFirst()) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + self.name.utf8.count)
        let bound = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(self.descriptor, $0, length) }
        }
        guard bound == 0 else { throw TimedOut(description: "bind: \(errno)") }
    }

    deinit { close(self.descriptor) }

    /// The datagrams that have come so far, oldest first.
    package var datagrams: [String] {
        var buffer = [UInt8](repeating: 0, count: 8_192)
        while true {
            let count = recv(self.descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { return self.seen.all }
            self.seen.append(String(decoding: buffer[..<count], as: UTF8.self))
        }
    }

    /// Their lines.
    package var lines: [String] { self.datagrams.flatMap { $0.split(separator: "\n").map(String.init) } }
}
