#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif
internal import Synchronization

/// The way into a link from other threads: wake it, ask it to end, cut its sockets. One for each run of a link's thread.
///
/// A socket is shut down here but closed only by who owns it, and only after it was taken off this list under the lock: a descriptor that
/// is shut down is never one that meanwhile belongs to somebody else.
final class LinkControl: Sendable {
    private struct State {
        var isStopping = false
        /// Between connecting and the end: a stop may end the stream in words first.
        var mayEndInWords = false
        /// A deadline passed while the link was in a call that blocks.
        var isOverdue = false
        var descriptors: [Int32] = []
        /// The pipe that wakes the link; closed with this object, which outlives all who wake it.
        var wakeRead: Int32 = -1
        var wakeWrite: Int32 = -1
    }

    private let state: Mutex<State>

    /// nil when the system has no descriptors left.
    init?() {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        for end in ends {
            System.closeOnExec(end)
            System.setBlocking(end, false)
        }
        self.state = Mutex(State(wakeRead: ends[0], wakeWrite: ends[1]))
    }

    deinit {
        self.state.withLock { state in
            System.close(state.wakeRead)
            System.close(state.wakeWrite)
        }
    }

    // MARK: Any thread

    var isStopping: Bool { self.state.withLock { $0.isStopping } }
    var isOverdue: Bool { self.state.withLock { $0.isOverdue } }

    /// Ends a wait of the link's thread.
    func wake() { self.state.withLock { Self.wake($0) } }

    /// Asks the link to end. True when it may still say so to the server: then it is to be cut (``cut()``) if it takes too long.
    func stop() -> Bool {
        self.state.withLock { state in
            state.isStopping = true
            Self.wake(state)
            if !state.mayEndInWords { Self.cut(state) }
            return state.mayEndInWords
        }
    }

    /// Ends every wait on the link's sockets with an error. No more than that: the link's thread closes them.
    func cut() { self.state.withLock { Self.cut($0) } }

    /// Like `cut`, for a call that took longer than it may.
    func expire() {
        self.state.withLock { state in
            state.isOverdue = true
            Self.cut(state)
            Self.wake(state)
        }
    }

    private static func cut(_ state: State) {
        for descriptor in state.descriptors { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }

    private static func wake(_ state: State) {
        var byte: UInt8 = 0
        // A full pipe wakes as well.
        _ = write(state.wakeWrite, &byte, 1)
    }

    // MARK: The link's thread

    /// The descriptor that becomes readable when the link is woken.
    var wakeDescriptor: Int32 { self.state.withLock { $0.wakeRead } }

    /// Takes back the wakes so far.
    func calm() {
        var bytes = (UInt64(0), UInt64(0), UInt64(0), UInt64(0))
        let descriptor = self.wakeDescriptor
        withUnsafeMutableBytes(of: &bytes) { buffer in
            while read(descriptor, buffer.baseAddress, buffer.count) > 0 {}
        }
    }

    func allowEndInWords(_ allowed: Bool) { self.state.withLock { $0.mayEndInWords = allowed } }

    /// From now on `cut` reaches this socket; at once if it is too late already.
    func add(_ descriptor: Int32) {
        self.state.withLock { state in
            state.descriptors.append(descriptor)
            if state.isOverdue || (state.isStopping && !state.mayEndInWords) { Self.cut(state) }
        }
    }

    /// Closes it.
    func close(_ descriptor: Int32) {
        self.state.withLock { state in state.descriptors.removeAll { $0 == descriptor } }
        System.close(descriptor)
    }

    /// A deadline passed earlier does not count for what comes now.
    func forgive() { self.state.withLock { $0.isOverdue = false } }

    /// Waits until the events come, the link is woken, or the time (`System.nowMs`) is reached. Throws when the link is to stop.
    ///
    /// - Returns: whether the descriptor has an event; false for a wake or when the time is over.
    func wait(for descriptor: Int32 = -1, _ events: Int32 = 0, until endMs: Int64) throws(UpstreamError) -> Bool {
        guard !self.isStopping else { throw .cancelled }
        var set = [
            pollfd(fd: self.wakeDescriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: descriptor, events: Int16(events), revents: 0),
        ]
        _ = System.poll(&set, timeoutMs: endMs - System.nowMs())
        if set[0].revents != 0 { self.calm() }
        guard !self.isStopping else { throw .cancelled }
        return set[1].revents != 0
    }

    /// Waits for a time (`System.nowMs`), through wakes; throws when the link is to stop.
    func sleep(until endMs: Int64) throws(UpstreamError) {
        while System.nowMs() < endMs { _ = try self.wait(until: endMs) }
    }
}
