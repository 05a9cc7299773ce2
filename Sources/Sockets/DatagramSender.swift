import LibC
package import NIOCore
package import Support
import Synchronization

/// Sends datagrams from a bound UDP socket. Any thread: the kernel takes each call whole, so every loop sends for its own viewers.
package final class DatagramSender: Sendable {
    package enum Outcome: Sendable, Equatable {
        case sent
        /// The socket's buffer is full; what was to be sent is lost.
        case full
        case failed(CInt)
    }

    private let descriptor: CInt
    /// The socket takes IPv6 addresses, IPv4's in their mapped form too.
    private let isIPv6: Bool
    /// Whether the kernel cuts one write into datagrams (`UDP_SEGMENT`, Linux 4.18).
    private let segments = Atomic<Bool>(true)

    /// linux/udp.h, in.h and in6.h.
    private static let udpSegment: CInt = 103
    private static let ipv4Source: (level: CInt, type: CInt) = (0, 8)
    private static let ipv6Source: (level: CInt, type: CInt) = (41, 50)
    /// The kernel's limits for one write that it cuts.
    package static let mostSegments = 64
    package static let longestRun = 65_000

    /// Copies the descriptor, so that a late datagram never goes to another's socket.
    package init(copying descriptor: CInt, isIPv6: Bool) throws(IOError) {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { throw IOError(errnoCode: errno, reason: "dup") }
        self.descriptor = copy
        self.isIPv6 = isIPv6
    }

    deinit { close(self.descriptor) }

    /// Sends one datagram. `local`: the address of this machine that it comes from; nil: the one that the system chooses.
    package func send(_ bytes: UnsafeRawBufferPointer, to address: DatagramAddress, from local: DatagramAddress? = nil) -> Outcome {
        self.send(bytes, to: address, local, segment: nil)
    }

    /// Sends datagrams of `segment` bytes each, of which the last may be shorter, to one address.
    package func sendRun(
        _ bytes: UnsafeRawBufferPointer, segment: Int, to address: DatagramAddress, from local: DatagramAddress? = nil
    ) -> Outcome {
        guard bytes.count > segment else { return self.send(bytes, to: address, local, segment: nil) }
        if self.segments.load(ordering: .relaxed) {
            let outcome = self.send(bytes, to: address, local, segment: UInt16(truncatingIfNeeded: segment))
            switch outcome {
            case .failed(ENOPROTOOPT): self.segments.store(false, ordering: .relaxed)
            // The way to this address cannot, for its MTU or its device; or the kernel is old.
            case .failed(EINVAL), .failed(EIO), .failed(EMSGSIZE): break
            default: return outcome
            }
        }
        var start = 0
        while start < bytes.count {
            let end = min(start + segment, bytes.count)
            let outcome = self.send(UnsafeRawBufferPointer(rebasing: bytes[start..<end]), to: address, local, segment: nil)
            guard outcome == .sent else { return outcome }
            start = end
        }
        return .sent
    }

    private func send(
        _ bytes: UnsafeRawBufferPointer, to address: DatagramAddress, _ local: DatagramAddress?, segment: UInt16?
    ) -> Outcome {
        let outcome = self.sendOnce(bytes, to: address, local, segment: segment)
        // The address may be this machine's no longer; the system chooses then.
        guard local != nil, case .failed = outcome else { return outcome }
        return self.sendOnce(bytes, to: address, nil, segment: segment)
    }

    private func sendOnce(
        _ bytes: UnsafeRawBufferPointer, to address: DatagramAddress, _ local: DatagramAddress?, segment: UInt16?
    ) -> Outcome {
        if self.isIPv6 {
            var target = sockaddr_in6()
            target.sin6_family = sa_family_t(AF_INET6)
            target.sin6_port = address.port.bigEndian
            target.sin6_scope_id = address.scope
            withUnsafeMutableBytes(of: &target.sin6_addr) { raw in
                raw.storeBytes(of: address.high.bigEndian, as: UInt64.self)
                raw.storeBytes(of: address.low.bigEndian, toByteOffset: 8, as: UInt64.self)
            }
            return withUnsafeMutableBytes(of: &target) { self.send(bytes, $0, local, segment) }
        }
        guard address.isIPv4 else { return .failed(EAFNOSUPPORT) }
        var target = sockaddr_in()
        target.sin_family = sa_family_t(AF_INET)
        target.sin_port = address.port.bigEndian
        target.sin_addr.s_addr = address.ipv4.bigEndian
        return withUnsafeMutableBytes(of: &target) { self.send(bytes, $0, local, segment) }
    }

    private func send(
        _ bytes: UnsafeRawBufferPointer, _ target: UnsafeMutableRawBufferPointer, _ local: DatagramAddress?, _ segment: UInt16?
    ) -> Outcome {
        if segment == nil, local == nil {
            // A call with less for the kernel to read: a tenth of what a packet of a voice costs.
            return target.withMemoryRebound(to: sockaddr.self) { address in
                Self.outcome {
                    sendto(
                        self.descriptor, bytes.baseAddress, bytes.count, Self.flags, address.baseAddress, socklen_t(target.count))
                }
            }
        }
        var vector = iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
        // Room for both of the headers below.
        var control: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0, 0, 0)
        return withUnsafeMutablePointer(to: &vector) { vector in
            withUnsafeMutableBytes(of: &control) { control in
                var message = msghdr()
                message.msg_name = target.baseAddress
                message.msg_namelen = socklen_t(target.count)
                message.msg_iov = vector
                message.msg_iovlen = 1
                var length = 0
                if let segment {
                    length = Self.add(to: control, at: 0, CInt(IPPROTO_UDP), Self.udpSegment, bytes: 2) {
                        $0.storeBytes(of: segment, as: UInt16.self)
                    }
                }
                if let local { length = self.add(local, to: control, at: length) }
                if length > 0 {
                    message.msg_control = control.baseAddress
                    message.msg_controllen = length
                }
                return Self.outcome { sendmsg(self.descriptor, &message, Self.flags) }
            }
        }
    }

    private static let flags = CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL)

    private static func outcome(_ call: () -> Int) -> Outcome {
        while call() < 0 {
            switch errno {
            case EINTR: continue
            case EAGAIN, ENOBUFS: return .full
            case let code: return .failed(code)
            }
        }
        return .sent
    }

    /// in_pktinfo and in6_pktinfo: an index of an interface, 0 for any, and the source.
    private func add(_ local: DatagramAddress, to control: UnsafeMutableRawBufferPointer, at start: Int) -> Int {
        if self.isIPv6 {
            let (high, low) = (local.high.bigEndian, local.low.bigEndian)
            return Self.add(to: control, at: start, Self.ipv6Source.level, Self.ipv6Source.type, bytes: 20) {
                $0.storeBytes(of: high, as: UInt64.self)
                $0.storeBytes(of: low, toByteOffset: 8, as: UInt64.self)
            }
        }
        guard local.isIPv4 else { return start }
        return Self.add(to: control, at: start, Self.ipv4Source.level, Self.ipv4Source.type, bytes: 12) {
            $0.storeBytes(of: local.ipv4.bigEndian, toByteOffset: 4, as: UInt32.self)
        }
    }

    /// struct cmsghdr (length 8 | level 4 | type 4), then the data, padded to eight. Returns where the next begins.
    private static func add(
        to control: UnsafeMutableRawBufferPointer, at start: Int, _ level: CInt, _ type: CInt, bytes: Int,
        _ write: (UnsafeMutableRawBufferPointer) -> Void
    ) -> Int {
        control.storeBytes(of: UInt64(16 + bytes), toByteOffset: start, as: UInt64.self)
        control.storeBytes(of: level, toByteOffset: start + 8, as: CInt.self)
        control.storeBytes(of: type, toByteOffset: start + 12, as: CInt.self)
        write(UnsafeMutableRawBufferPointer(rebasing: control[(start + 16)..<(start + 16 + bytes)]))
        return start + 16 + (bytes + 7) / 8 * 8
    }
}

/// A way for datagrams besides a UDP socket. Any thread.
package protocol DatagramStream: AnyObject, Sendable {
    /// Sends datagrams of `segment` bytes each, of which the last may be shorter.
    func sendRun(_ bytes: UnsafeRawBufferPointer, segment: Int) -> DatagramSender.Outcome
}

/// Gathers one viewer's datagrams, so that the kernel gets those of the same size with one call. Used by one thread at a time.
package final class DatagramRun {
    private let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: DatagramRun.capacity, alignment: 64)
    private var used = 0
    private var segment = 0
    private var count = 0
    private var sender: DatagramSender?
    private var stream: (any DatagramStream)?
    private var address: DatagramAddress?
    private var local: DatagramAddress?
    /// Writes that found the socket's buffer full since ``popLost()``.
    private var lost = 0

    private static let longest = 2 << 10
    private static let capacity = DatagramSender.longestRun + DatagramRun.longest

    package init() {}

    deinit { self.bytes.deallocate() }

    /// What follows goes to this address, from `local` if this machine has several.
    package func begin(_ sender: DatagramSender, to address: DatagramAddress, from local: DatagramAddress? = nil) {
        self.flush()
        self.sender = sender
        self.stream = nil
        self.address = address
        self.local = local
    }

    /// What follows goes by this stream.
    package func begin(_ stream: any DatagramStream) {
        self.flush()
        self.stream = stream
        self.address = nil
    }

    /// Room for one datagram of at most 2 KiB.
    package func reserve(_ count: Int) -> UnsafeMutableRawBufferPointer {
        guard count <= Self.longest else { return UnsafeMutableRawBufferPointer(start: nil, count: 0) }
        if self.used + count > DatagramSender.longestRun || self.count == DatagramSender.mostSegments { self.flush() }
        return UnsafeMutableRawBufferPointer(rebasing: self.bytes[self.used..<(self.used + count)])
    }

    /// The datagram is in the first `count` bytes of what ``reserve(_:)`` returned.
    package func commit(_ count: Int) {
        guard count > 0 else { return }
        if self.count > 0, count > self.segment, let base = self.bytes.baseAddress {
            let start = self.used
            self.flush()
            base.copyMemory(from: base + start, byteCount: count)
        }
        if self.count == 0 { self.segment = count }
        self.used += count
        self.count += 1
        // A shorter one is the last.
        if count < self.segment { self.flush() }
    }

    /// Sends what is gathered.
    package func flush() {
        defer { (self.used, self.count) = (0, 0) }
        guard self.count > 0 else { return }
        let run = UnsafeRawBufferPointer(rebasing: self.bytes[..<self.used])
        let outcome: DatagramSender.Outcome
        if let stream = self.stream {
            outcome = stream.sendRun(run, segment: self.segment)
        } else if let sender = self.sender, let address = self.address {
            outcome = sender.sendRun(run, segment: self.segment, to: address, from: self.local)
        } else {
            return
        }
        if outcome != .sent { self.lost += self.count }
    }

    /// Datagrams that the kernel did not take since the last call.
    package func popLost() -> Int {
        defer { self.lost = 0 }
        return self.lost
    }
}

extension DatagramAddress {
    /// Nil for an address that is not IP's.
    package init?(_ address: SocketAddress) {
        switch address {
        case .v4(let v4): self.init(ipv4: UInt32(bigEndian: v4.address.sin_addr.s_addr), port: UInt16(bigEndian: v4.address.sin_port))
        case .v6(let v6):
            let halves = withUnsafeBytes(of: v6.address.sin6_addr) {
                (
                    UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)),
                    UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
                )
            }
            self.init(
                high: halves.0, low: halves.1, port: UInt16(bigEndian: v6.address.sin6_port), scope: v6.address.sin6_scope_id)
        case .unixDomainSocket: return nil
        }
    }
}
