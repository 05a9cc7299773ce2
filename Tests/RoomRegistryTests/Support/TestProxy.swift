import Foundation
import LibC
import Synchronization

/// Relays bytes between clients and a server on this machine, as long as it is told to. It can lose the answer to a COMMIT, say nothing any
/// more, or be away. Blocking sockets, a thread for each direction.
final class TestProxy: Sendable {
    enum Mode {
        case passing
        /// The next COMMIT reaches the server; its answer is thrown away, and every connection ends. Then nobody is let in.
        case losingCommit
        /// Takes bytes and passes none on.
        case silent
        /// Accepts nobody, and ends every connection.
        case away
    }

    let port: UInt16
    private let target: UInt16
    private let listener: Int32
    private let state = Mutex((mode: Mode.passing, sockets: Set<Int32>()))
    private let commitSeen = Mutex(false)

    init(to target: UInt16) throws {
        self.target = target
        let descriptor = socket(AF_INET, streamSocket, 0)
        var address = Self.address(0)
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
        guard descriptor >= 0, bound == 0, listen(descriptor, 64) == 0 else { throw POSIXError(.EADDRINUSE) }
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        self.port = UInt16(bigEndian: address.sin_port)
        self.listener = descriptor
        Thread.detachNewThread { [self] in self.accept() }
    }

    private static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return address
    }

    var mode: Mode {
        get { self.state.withLock { $0.mode } }
        set {
            self.state.withLock { state in
                state.mode = newValue
                if newValue == .away { for descriptor in state.sockets { shutdown(descriptor, Int32(SHUT_RDWR)) } }
            }
        }
    }

    /// Whether a COMMIT's answer was lost.
    var hasLostCommit: Bool { self.commitSeen.withLock { $0 } }

    func close() {
        self.mode = .away
        shutdown(self.listener, Int32(SHUT_RDWR))
        LibC.close(self.listener)
    }

    private func accept() {
        while true {
            let client = LibC.accept(self.listener, nil, nil)
            guard client >= 0 else { return }
            let server = socket(AF_INET, streamSocket, 0)
            var address = Self.address(self.target)
            let connected = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            let isIn = self.state.withLock { state -> Bool in
                guard state.mode == .passing || state.mode == .silent, connected == 0 else { return false }
                state.sockets.formUnion([client, server])
                return true
            }
            guard isIn else {
                LibC.close(client)
                LibC.close(server)
                continue
            }
            let pair = Pair(client: client, server: server)
            Thread.detachNewThread { [self] in self.relay(pair, isToServer: true) }
            Thread.detachNewThread { [self] in self.relay(pair, isToServer: false) }
        }
    }

    /// Closed when both directions have ended: its numbers are another connection's then.
    private final class Pair: Sendable {
        let client: Int32
        let server: Int32
        let hasCommitted = Mutex(false)
        private let ended = Mutex(0)

        init(client: Int32, server: Int32) { (self.client, self.server) = (client, server) }

        /// Whether the other direction has ended, too.
        func end() -> Bool {
            self.ended.withLock {
                $0 += 1
                return $0 == 2
            }
        }
    }

    private func relay(_ pair: Pair, isToServer: Bool) {
        let (source, target) = isToServer ? (pair.client, pair.server) : (pair.server, pair.client)
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(source, &bytes, bytes.count)
            guard count > 0 else { break }
            let mode = self.mode
            if mode == .silent { continue }
            if mode == .losingCommit, isToServer, bytes[..<count].firstRange(of: Array("COMMIT".utf8)) != nil {
                pair.hasCommitted.withLock { $0 = true }
            } else if mode == .losingCommit, !isToServer, pair.hasCommitted.withLock({ $0 }) {
                // The server has answered: the transaction is committed.
                self.commitSeen.withLock { $0 = true }
                self.mode = .away
                break
            }
            guard send(target, bytes, count, CInt(MSG_NOSIGNAL)) == count else { break }
        }
        shutdown(target, Int32(SHUT_RDWR))
        shutdown(source, Int32(SHUT_RDWR))
        guard pair.end() else { return }
        self.state.withLock { state in
            state.sockets.subtract([source, target])
            LibC.close(source)
            LibC.close(target)
        }
    }
}
