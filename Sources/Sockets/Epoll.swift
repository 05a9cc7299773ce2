import LibC
package import NIOCore

/// Readiness of many descriptors in one call, epoll(7). Not Sendable: its owner's thread waits and changes it.
///
/// The Glibc module does not carry sys/epoll.h (Swift 6.3), and NIO's selector is not public. So the functions, which are Linux's stable system
/// interface, are looked up by name.
package final class Epoll {
    /// An event on one descriptor.
    package struct Event {
        package let token: UInt64
        package let readiness: Readiness

        package var isReadable: Bool { self.readiness.contains(.read) }
        package var isWritable: Bool { self.readiness.contains(.write) }
        /// The peer closed or reset the connection.
        package var isHungUp: Bool { !self.readiness.isDisjoint(with: [.error, .closed, .hangUp]) }
    }

    /// What is asked for, and what has happened.
    package struct Readiness: OptionSet, Sendable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }
        // linux/eventpoll.h
        package static let read = Readiness(rawValue: 0x001)
        package static let write = Readiness(rawValue: 0x004)
        /// Reported unasked: an error waits in the socket.
        package static let error = Readiness(rawValue: 0x008)
        /// Reported unasked: both directions are closed.
        package static let closed = Readiness(rawValue: 0x010)
        /// The peer sends no more.
        package static let hangUp = Readiness(rawValue: 0x2000)
    }

    package enum Operation: CInt { case add = 1, remove, modify }

    private typealias Create = @convention(c) (CInt) -> CInt
    private typealias Control = @convention(c) (CInt, CInt, CInt, UnsafeMutableRawPointer?) -> CInt
    private typealias Wait = @convention(c) (CInt, UnsafeMutableRawPointer?, CInt, CInt) -> CInt
    private typealias PreciseWait =
        @convention(c) (CInt, UnsafeMutableRawPointer?, CInt, UnsafePointer<timespec>?, UnsafePointer<sigset_t>?) -> CInt

    package let descriptor: CInt
    private let controlCall: Control
    private let waitCall: Wait
    /// Nil where the kernel is older than 5.11: waits are then rounded up to milliseconds.
    @exclusivity(unchecked) private var preciseWaitCall: PreciseWait?
    private let events: UnsafeMutableRawBufferPointer

    private static let capacity = 256
    /// `EPOLL_CLOEXEC`, the number of O_CLOEXEC.
    private static let closedOnExec = O_CLOEXEC
    /// `struct epoll_event` is packed on x86-64 and naturally aligned elsewhere.
    #if arch(x86_64)
    private static let stride = 12
    private static let tokenOffset = 4
    #else
    private static let stride = 16
    private static let tokenOffset = 8
    #endif

    package init() throws(IOError) {
        // Each cast is to the prototype in epoll_create1(2), epoll_ctl(2) and epoll_wait(2).
        guard let create = dlsym(nil, "epoll_create1"), let control = dlsym(nil, "epoll_ctl"), let wait = dlsym(nil, "epoll_wait") else {
            throw IOError(errnoCode: ENOSYS, reason: "epoll")
        }
        self.controlCall = unsafeBitCast(control, to: Control.self)
        self.waitCall = unsafeBitCast(wait, to: Wait.self)
        self.preciseWaitCall = dlsym(nil, "epoll_pwait2").map { unsafeBitCast($0, to: PreciseWait.self) }
        self.descriptor = unsafeBitCast(create, to: Create.self)(Self.closedOnExec)
        guard self.descriptor >= 0 else { throw IOError(errnoCode: errno, reason: "epoll_create1") }
        self.events = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.capacity * Self.stride, alignment: 8)
    }

    deinit {
        close(self.descriptor)
        self.events.deallocate()
    }

    package func control(_ operation: Operation, _ descriptor: CInt, token: UInt64, _ readiness: Readiness) throws(IOError) {
        var event = (UInt64(0), UInt64(0))
        let result = withUnsafeMutableBytes(of: &event) { bytes in
            bytes.storeBytes(of: readiness.rawValue, as: UInt32.self)
            bytes.storeBytes(of: token, toByteOffset: Self.tokenOffset, as: UInt64.self)
            return self.controlCall(self.descriptor, operation.rawValue, descriptor, bytes.baseAddress)
        }
        guard result == 0 else { throw IOError(errnoCode: errno, reason: "epoll_ctl") }
    }

    /// Waits for events, up to `timeoutNs` or, if it is nil, for ever. Returns their number; 0 too if a signal ended the wait.
    package func wait(timeoutNs: UInt64?) throws(IOError) -> Int {
        let count = self.waitOnce(timeoutNs: timeoutNs)
        if count >= 0 { return Int(count) }
        switch errno {
        case EINTR: return 0
        // Filters of system calls that are older than this one say EPERM.
        case ENOSYS where self.preciseWaitCall != nil, EPERM where self.preciseWaitCall != nil:
            self.preciseWaitCall = nil
            return try self.wait(timeoutNs: timeoutNs)
        case let code: throw IOError(errnoCode: code, reason: "epoll_wait")
        }
    }

    private func waitOnce(timeoutNs: UInt64?) -> CInt {
        guard let timeoutNs else { return self.waitCall(self.descriptor, self.events.baseAddress, CInt(Self.capacity), -1) }
        guard timeoutNs > 0 else { return self.waitCall(self.descriptor, self.events.baseAddress, CInt(Self.capacity), 0) }
        guard let precise = self.preciseWaitCall else {
            let ms = min((timeoutNs + 999_999) / 1_000_000, UInt64(CInt.max))
            return self.waitCall(self.descriptor, self.events.baseAddress, CInt(Self.capacity), CInt(ms))
        }
        var timeout = timespec(tv_sec: Int(timeoutNs / 1_000_000_000), tv_nsec: Int(timeoutNs % 1_000_000_000))
        return precise(self.descriptor, self.events.baseAddress, CInt(Self.capacity), &timeout, nil)
    }

    /// An event of the last wait.
    package subscript(index: Int) -> Event {
        let start = index * Self.stride
        return Event(
            token: self.events.loadUnaligned(fromByteOffset: start + Self.tokenOffset, as: UInt64.self),
            readiness: Readiness(rawValue: self.events.loadUnaligned(fromByteOffset: start, as: UInt32.self)))
    }
}
