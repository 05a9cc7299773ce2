import LibC

/// Readiness of many sockets in one call. Owned by the viewer loop and used on its thread only.
///
/// The Glibc module does not carry sys/epoll.h (Swift 6.3), and NIO's selector is not public. NIO's channels would do, but cost this tool
/// more than its parsing does. So the three functions, which are Linux's stable system interface, are looked up by name.
final class Epoll {
    /// An event on one socket.
    struct Event {
        var token: UInt64
        var isReadable: Bool
        var isWritable: Bool
        /// The peer closed or reset the connection.
        var isHungUp: Bool
    }

    struct Interest: OptionSet {
        let rawValue: UInt32
        // linux/eventpoll.h
        static let read = Interest(rawValue: 0x001)
        static let write = Interest(rawValue: 0x004)
        static let hangUp = Interest(rawValue: 0x2000)
    }

    private typealias Create = @convention(c) (CInt) -> CInt
    private typealias Control = @convention(c) (CInt, CInt, CInt, UnsafeMutableRawPointer?) -> CInt
    private typealias Wait =
        @convention(c) (
            CInt, UnsafeMutableRawPointer?, CInt, UnsafePointer<timespec>?, UnsafePointer<sigset_t>?
        ) -> CInt

    private let descriptor: CInt
    private let control: Control
    private let wait: Wait
    private let events: UnsafeMutableRawBufferPointer

    private static let capacity = 256
    /// `struct epoll_event` is packed on x86-64 and naturally aligned elsewhere.
    #if arch(x86_64)
    private static let stride = 12
    private static let tokenOffset = 4
    #else
    private static let stride = 16
    private static let tokenOffset = 8
    #endif

    init() throws(LoadError) {
        // Each cast is to the prototype in epoll_create1(2), epoll_ctl(2) and epoll_wait(2).
        guard let create = dlsym(nil, "epoll_create1"), let control = dlsym(nil, "epoll_ctl"), let wait = dlsym(nil, "epoll_pwait2")
        else { throw .system("epoll", ENOSYS) }
        self.control = unsafeBitCast(control, to: Control.self)
        self.wait = unsafeBitCast(wait, to: Wait.self)
        self.descriptor = unsafeBitCast(create, to: Create.self)(0)
        guard self.descriptor >= 0 else { throw .system("epoll_create1", errno) }
        self.events = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.capacity * Self.stride, alignment: 8)
    }

    deinit {
        close(self.descriptor)
        self.events.deallocate()
    }

    func add(_ socket: CInt, token: UInt64, _ interest: Interest) throws(LoadError) {
        try self.change(operation: 1, socket, token: token, interest)
    }

    func remove(_ socket: CInt) throws(LoadError) {
        try self.change(operation: 2, socket, token: 0, [])
    }

    /// Reports `other`'s readiness here, as that of one descriptor.
    func add(_ other: Epoll, token: UInt64) throws(LoadError) {
        try self.add(other.descriptor, token: token, .read)
    }

    func modify(_ socket: CInt, token: UInt64, _ interest: Interest) throws(LoadError) {
        try self.change(operation: 3, socket, token: token, interest)
    }

    private func change(operation: CInt, _ socket: CInt, token: UInt64, _ interest: Interest) throws(LoadError) {
        var event = (UInt64(0), UInt64(0))
        let result = withUnsafeMutableBytes(of: &event) { bytes in
            bytes.storeBytes(of: interest.rawValue, as: UInt32.self)
            bytes.storeBytes(of: token, toByteOffset: Self.tokenOffset, as: UInt64.self)
            return self.control(self.descriptor, operation, socket, bytes.baseAddress)
        }
        guard result == 0 else { throw .system("epoll_ctl", errno) }
    }

    /// Waits up to `timeoutNs` and calls `body` for each event.
    func poll(timeoutNs: UInt64, _ body: (Event) throws(LoadError) -> Void) throws(LoadError) {
        var timeout = timespec(tv_sec: Int(timeoutNs / 1_000_000_000), tv_nsec: Int(timeoutNs % 1_000_000_000))
        let count = self.wait(self.descriptor, self.events.baseAddress, CInt(Self.capacity), &timeout, nil)
        guard count >= 0 else {
            if errno == EINTR { return }
            throw .system("epoll_pwait2", errno)
        }
        for index in 0..<Int(count) {
            let start = index * Self.stride
            let flags = self.events.loadUnaligned(fromByteOffset: start, as: UInt32.self)
            let event = Event(
                token: self.events.loadUnaligned(fromByteOffset: start + Self.tokenOffset, as: UInt64.self),
                isReadable: flags & 0x001 != 0, isWritable: flags & 0x004 != 0,
                // EPOLLERR, EPOLLHUP, EPOLLRDHUP
                isHungUp: flags & (0x008 | 0x010 | 0x2000) != 0)
            try body(event)
        }
    }
}
