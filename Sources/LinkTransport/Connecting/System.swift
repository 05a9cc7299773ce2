import LibC

/// System calls used by links, with the platforms' differences hidden. All retry after a signal.
enum System {
    /// The text of the last failed call's errno.
    static var lastError: String { errorText(errno) }

    /// Milliseconds on the monotonic clock.
    static func nowMs() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// Waits for any of the events; false on a timeout. Errors count as an event: the next call on the descriptor reports them.
    static func poll(_ descriptors: inout [pollfd], timeoutMs: Int64) -> Bool {
        let end = Self.nowMs() + timeoutMs
        while true {
            let left = min(max(end - Self.nowMs(), 0), Int64(Int32.max))
            let count = LibC.poll(&descriptors, nfds_t(descriptors.count), Int32(left))
            if count > 0 { return true }
            if count == 0 { return false }
            if errno != EINTR { return true }
        }
    }

    /// Bytes read, 0 at the end, nil when nothing is available; -1 for an error.
    static func receive(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int? {
        while true {
            let count = recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            if count >= 0 { return count }
            if errno == EAGAIN || errno == EWOULDBLOCK { return nil }
            if errno != EINTR { return -1 }
        }
    }

    /// Bytes sent, nil when the socket buffer is full; -1 for an error. The thread must have called ``blockBrokenPipeSignal()``.
    static func send(_ descriptor: Int32, _ buffer: UnsafeRawBufferPointer) -> Int? {
        while true {
            let count = LibC.send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            if count >= 0 { return count }
            if errno == EAGAIN || errno == EWOULDBLOCK { return nil }
            if errno != EINTR { return -1 }
        }
    }

    /// librtmp and OpenSSL do not suppress SIGPIPE, which a write raises on its own thread. Blocked, it stays pending there and only
    /// the write's error remains.
    static func blockBrokenPipeSignal() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    static func setBlocking(_ descriptor: Int32, _ blocks: Bool) {
        let flags = fcntl(descriptor, F_GETFL)
        _ = fcntl(descriptor, F_SETFL, blocks ? flags & ~O_NONBLOCK : flags | O_NONBLOCK)
    }

    /// Sends the other end an end of file.
    static func shutdownWriting(_ descriptor: Int32) { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Ends both directions for every holder of the socket; received data can still be read.
    static func shutdownBoth(_ descriptor: Int32) { shutdown(descriptor, Int32(SHUT_RDWR)) }

    static func close(_ descriptor: Int32) { LibC.close(descriptor) }

    static func closeOnExec(_ descriptor: Int32) { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }

    /// Limits how long blocking reads and writes on the socket may wait before failing.
    static func setTimeouts(_ descriptor: Int32, receiveMs: Int, sendMs: Int) {
        for (option, milliseconds) in [(SO_RCVTIMEO, receiveMs), (SO_SNDTIMEO, sendMs)] {
            var time = timeval()
            time.tv_sec = numericCast(milliseconds / 1_000)
            time.tv_usec = numericCast(milliseconds % 1_000 * 1_000)
            setsockopt(descriptor, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    /// A new stream socket of AF_INET or AF_INET6; nil when the system has none left.
    static func streamSocket(_ family: Int32) -> Int32? {
        let descriptor = socket(family, LibC.streamSocket, 0)
        guard descriptor >= 0 else { return nil }
        Self.closeOnExec(descriptor)
        return descriptor
    }

    static func socketPair() -> (Int32, Int32)? {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, LibC.streamSocket, 0, &ends) == 0 else { return nil }
        for end in ends { Self.closeOnExec(end) }
        return (ends[0], ends[1])
    }
}
