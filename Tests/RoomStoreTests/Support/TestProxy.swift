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
            let ended = self.state.withLock { state -> Set<Int32> in
                state.mode = newValue
                return newValue == .away ? state.sockets : []
            }
            for descriptor in ended { shutdown(descriptor, Int32(SHUT_RDWR)) }
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
            Thread.detachNewThread { [self] in self.relay(client, server, isToServer: true) }
            Thread.detachNewThread { [self] in self.relay(server, client, isToServer: false) }
        }
    }

    private func relay(_ source: Int32, _ target: Int32, isToServer: Bool) {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(source, &bytes, bytes.count)
            guard count > 0 else { break }
            let mode = self.mode
            if mode == .silent { continue }
            if mode == .losingCommit, isToServer, bytes[..<count].firstRange(of: Array("COMMIT".utf8)) != nil {
                self.commitSeen.withLock { $0 = true }
            } else if mode == .losingCommit, !isToServer, self.hasLostCommit {
                // The server has answered: the transaction is committed.
                self.mode = .away
                break
            }
            guard send(target, bytes, count, CInt(MSG_NOSIGNAL)) == count else { break }
        }
        shutdown(target, Int32(SHUT_RDWR))
        shutdown(source, Int32(SHUT_RDWR))
        if isToServer {
            // The other direction ends now too.
            usleep(100_000)
            self.state.withLock { $0.sockets.subtract([source, target]) }
            LibC.close(source)
            LibC.close(target)
        }
    }
}
