import NIOCore
import Sockets

/// Epoll with this tool's errors.
extension Epoll {
    static func make() throws(LoadError) -> Epoll { try Self.told { () throws(IOError) in try Epoll() } }

    func add(_ socket: CInt, token: UInt64, _ interest: Readiness) throws(LoadError) { try self.change(.add, socket, token, interest) }

    /// Reports `other`'s readiness here, as that of one descriptor.
    func add(_ other: Epoll, token: UInt64) throws(LoadError) { try self.add(other.descriptor, token: token, .read) }

    func modify(_ socket: CInt, token: UInt64, _ interest: Readiness) throws(LoadError) {
        try self.change(.modify, socket, token, interest)
    }

    func remove(_ socket: CInt) throws(LoadError) { try self.change(.remove, socket, 0, []) }

    /// Waits up to `timeoutNs` and calls `body` for each event.
    func poll(timeoutNs: UInt64, _ body: (Event) throws(LoadError) -> Void) throws(LoadError) {
        let count = try Self.told { () throws(IOError) in try self.wait(timeoutNs: timeoutNs) }
        for index in 0..<count { try body(self[index]) }
    }

    private func change(_ operation: Operation, _ socket: CInt, _ token: UInt64, _ interest: Readiness) throws(LoadError) {
        try Self.told { () throws(IOError) in try self.control(operation, socket, token: token, interest) }
    }

    private static func told<Value>(_ body: () throws(IOError) -> Value) throws(LoadError) -> Value {
        do throws(IOError) { return try body() } catch { throw .system("epoll", error.errnoCode) }
    }
}
