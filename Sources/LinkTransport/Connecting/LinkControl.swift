import LibC
internal import Synchronization

/// Lets other threads wake a link, stop it or cut its sockets. One for each run of a link's thread.
///
/// This object shuts sockets down, but only their owner closes them, after removing them from the list under the lock. So a shutdown
/// never hits a descriptor that the system has reused.
final class LinkControl: Sendable {
    private struct State {
        var isStopping = false
        /// Set between the server's consent and the end: a stop may then first say goodbye in RTMP.
        var mayEndPolitely = false
        /// A deadline passed while the link was in a blocking call.
        var isOverdue = false
        var descriptors: [Int32] = []
        /// The pipe that wakes the link. Closed with this object, which outlives everyone who wakes it.
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

    /// Ends the current wait of the link's thread.
    func wake() { self.state.withLock { Self.wake($0) } }

    /// Asks the link to end. Returns true when it may say goodbye first; the caller then calls ``cut()`` if that takes too long.
    func stop() -> Bool {
        self.state.withLock { state in
            state.isStopping = true
            Self.wake(state)
            if !state.mayEndPolitely { Self.cut(state) }
            return state.mayEndPolitely
        }
    }

    /// Shuts the link's sockets down, so that every wait on them fails. The link's thread closes them.
    func cut() { self.state.withLock { Self.cut($0) } }

    /// Like ``cut()``, for a call that exceeded its deadline.
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
        // A full pipe wakes the link as well.
        _ = write(state.wakeWrite, &byte, 1)
    }

    // MARK: The link's thread

    /// The descriptor that becomes readable when the link is woken.
    var wakeDescriptor: Int32 { self.state.withLock { $0.wakeRead } }

    /// Discards the wakes so far.
    func calm() {
        var bytes = (UInt64(0), UInt64(0), UInt64(0), UInt64(0))
        let descriptor = self.wakeDescriptor
        withUnsafeMutableBytes(of: &bytes) { buffer in
            while read(descriptor, buffer.baseAddress, buffer.count) > 0 {}
        }
    }

    func allowPoliteEnd(_ allowed: Bool) { self.state.withLock { $0.mayEndPolitely = allowed } }

    /// Makes ``cut()`` reach this socket. Cuts it at once when the link is already stopped or overdue.
    func add(_ descriptor: Int32) {
        self.state.withLock { state in
            state.descriptors.append(descriptor)
            if state.isOverdue || (state.isStopping && !state.mayEndPolitely) { Self.cut(state) }
        }
    }

    /// Removes the socket from the list and closes it.
    func close(_ descriptor: Int32) {
        self.state.withLock { state in state.descriptors.removeAll { $0 == descriptor } }
        System.close(descriptor)
    }

    /// Clears a passed deadline before a new connection.
    func forgive() { self.state.withLock { $0.isOverdue = false } }

    /// Waits for the events, a wake, or the time (`System.nowMs`). Throws when the link is stopped.
    ///
    /// - Returns: whether the descriptor has an event; false after a wake or a timeout.
    func wait(for descriptor: Int32 = -1, _ events: Int32 = 0, until endMs: Int64) throws(LinkError) -> Bool {
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

    /// Sleeps until a time (`System.nowMs`), ignoring wakes; throws when the link is stopped.
    func sleep(until endMs: Int64) throws(LinkError) {
        while System.nowMs() < endMs { _ = try self.wait(until: endMs) }
    }
}
