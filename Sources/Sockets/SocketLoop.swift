package import Dispatch
import LibC
import NIOConcurrencyHelpers
package import NIOCore
import Synchronization

/// An event loop for the sockets of ``SocketChannel``: a thread that waits for their readiness, and runs tasks and timers between.
///
/// NIO's own loop costs a relayed message some 7,000 instructions between the kernel and its handler, and an idle connection 4 KiB: selector
/// registrations, a buffer for each channel, locks and deadlines looked at in each turn. This one has what the server's connections use.
///
/// `@unchecked Sendable`: what is not locked or atomic is touched on the loop's thread only.
package final class SocketLoop: EventLoop, @unchecked Sendable {
    /// It runs on the loop's thread alone, and was made there unless it is Sendable.
    private struct LoopTask: @unchecked Sendable { let run: () -> Void }

    private struct Inbox {
        var tasks: [LoopTask] = []
        var hasEnded = false
    }

    /// What other threads ask for. A lock that the thread sanitizer knows, unlike `Mutex`.
    private let inbox = NIOLockedValueBox(Inbox())
    /// Something lies in the inbox; set behind it.
    private let hasMail = Atomic<Bool>(false)
    /// The thread waits for sockets, or is about to look at `hasMail` before it does: what comes must wake it.
    private let isAsleep = Atomic<Bool>(false)
    /// What the loop's own thread asks for, and what it took from the inbox.
    // Unchecked, as methods of these values call nobody: no second access can begin during one.
    @exclusivity(unchecked) private var tasks: [LoopTask] = []
    /// The tasks of the present round; keeps its capacity.
    @exclusivity(unchecked) private var running: [LoopTask] = []
    @exclusivity(unchecked) private var timers = LoopTimers()
    /// For after the next wait.
    @exclusivity(unchecked) private var later: [() -> Void] = []
    private let epoll: Epoll
    /// A pipe whose written byte ends a wait.
    private let alarm: (reader: CInt, writer: CInt)
    private let thread = Atomic<UInt>(0)
    /// The sockets by their place, which is half of their token.
    @exclusivity(unchecked) private var sockets: [SocketChannel?] = []
    private var freePlaces: [Int] = []
    /// Told apart by this: places are used again, and events of the former socket may still come in the same turn.
    @exclusivity(unchecked) private var generation: UInt32 = 0
    @exclusivity(unchecked) private var isEnding = false
    /// What was read last; each reader copies what it needs at once.
    let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: SocketLoop.scratchBytes, alignment: 64)

    /// Holds small pieces for handlers that keep none: then the next is written to the same memory.
    @exclusivity(unchecked) private var lent = ByteBuffer()

    static let scratchBytes = 64 << 10
    /// Larger pieces have memory of their own.
    private static let mostLent = 4 << 10
    private static let alarmToken = UInt64.max
    /// Rounds of tasks that tasks have added before sockets are looked at again.
    private static let mostRounds = 16
    /// Capacity that the list of tasks keeps.
    private static let keptTasks = 4_096

    /// Starts the thread. Throws if the system has no descriptor or thread for it.
    package init(name: String) throws(IOError) {
        self.epoll = try Epoll()
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { throw IOError(errnoCode: errno, reason: "pipe") }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK)
        }
        self.alarm = (ends[0], ends[1])
        try self.epoll.control(.add, self.alarm.reader, token: Self.alarmToken, .read)
        let start = ThreadStart(loop: self, name: name)
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                let start = Unmanaged<ThreadStart>.fromOpaque(argument).takeRetainedValue()
                // Fifteen characters at most.
                _ = nameThread?(pthread_self(), String(start.name.prefix(15)))
                start.loop.run()
                return nil
            }, Unmanaged.passRetained(start).toOpaque())
        guard code == 0 else {
            Unmanaged.passUnretained(start).release()
            throw IOError(errnoCode: code, reason: "pthread_create")
        }
        pthread_detach(thread)
    }

    private final class ThreadStart {
        let loop: SocketLoop
        let name: String

        init(loop: SocketLoop, name: String) {
            self.loop = loop
            self.name = name
        }
    }

    deinit {
        LibC.close(self.alarm.reader)
        LibC.close(self.alarm.writer)
        self.scratch.deallocate()
    }

    // MARK: The thread

    private func run() {
        self.thread.store(Self.thisThread, ordering: .relaxed)
        while !self.isEnding {
            self.wait()
            self.runLater()
            self.runTimers()
            self.runTasks()
        }
        self.finish()
    }

    private static var thisThread: UInt { UInt(pthread_self()) }

    private func wait() {
        let timeout: UInt64?
        if !self.tasks.isEmpty || !self.later.isEmpty {
            timeout = 0
        } else {
            // In this order: who puts something in between finds the thread asleep.
            self.isAsleep.store(true, ordering: .sequentiallyConsistent)
            timeout = self.hasMail.load(ordering: .sequentiallyConsistent) ? 0 : self.untilTimer
        }
        let count: Int
        do throws(IOError) {
            count = try self.epoll.wait(timeoutNs: timeout)
        } catch {
            // Nothing that waiting again would mend: the descriptor is the loop's own.
            preconditionFailure("the event loop cannot wait: \(error)")
        }
        self.isAsleep.store(false, ordering: .relaxed)
        for index in 0..<count {
            let event = self.epoll[index]
            if event.token == Self.alarmToken {
                self.silence()
            } else if let socket = self.socket(event.token) {
                socket.isReady(event.readiness)
            }
        }
    }

    /// Nanoseconds until the first timer is due; nil without any.
    private var untilTimer: UInt64? {
        guard let due = self.timers.nextNs else { return nil }
        let now = NIODeadline.now().uptimeNanoseconds
        return due > now ? due - now : 0
    }

    /// Runs the task once, behind the sockets that are ready by then. On the loop.
    package func next(_ task: @escaping () -> Void) { self.later.append(task) }

    private func runLater() {
        guard !self.later.isEmpty else { return }
        let due = self.later
        self.later = []
        for task in due { task() }
    }

    private func silence() {
        var bytes: (UInt64, UInt64) = (0, 0)
        while read(self.alarm.reader, &bytes, MemoryLayout.size(ofValue: bytes)) == MemoryLayout.size(ofValue: bytes) {}
    }

    private func runTimers() {
        guard self.timers.count > 0 else { return }
        let nowNs = NIODeadline.now().uptimeNanoseconds
        while let timer = self.timers.popDue(nowNs: nowNs) { timer.run() }
    }

    private func runTasks() {
        for _ in 0..<Self.mostRounds {
            if self.hasMail.load(ordering: .acquiring) { self.tasks += self.popMail().tasks }
            if self.tasks.isEmpty { return }
            swap(&self.tasks, &self.running)
            // Most rounds have one.
            if self.running.count == 1 {
                self.running.removeLast().run()
            } else {
                for task in self.running { task.run() }
                self.running.removeAll(keepingCapacity: self.running.capacity <= Self.keptTasks)
            }
        }
    }

    private func popMail() -> Inbox {
        self.inbox.withLockedValue { inbox in
            self.hasMail.store(false, ordering: .relaxed)
            defer { inbox.tasks = [] }
            return inbox
        }
    }

    /// Ends the loop's sockets, and runs what they and others still ask for.
    private func finish() {
        for socket in self.sockets { socket?.close0(error: ChannelError.ioOnClosedChannel, mode: .all, promise: nil) }
        while true {
            self.runLater()
            for timer in self.timers.removeAll() { timer.run(isDue: false) }
            let tasks = self.tasks
            self.tasks = []
            for task in tasks + self.popMail().tasks { task.run() }
            let hasEnded = self.inbox.withLockedValue { inbox in
                inbox.hasEnded = inbox.tasks.isEmpty && self.tasks.isEmpty && self.later.isEmpty && self.timers.count == 0
                return inbox.hasEnded
            }
            guard hasEnded else { continue }
            // Another thread may get this one's number.
            return self.thread.store(0, ordering: .relaxed)
        }
    }

    // MARK: Sockets

    /// The first bytes of the scratch memory in a buffer.
    func buffer(_ count: Int, lends: Bool) -> ByteBuffer {
        let bytes = UnsafeRawBufferPointer(rebasing: self.scratch[..<count])
        guard lends, count <= Self.mostLent else { return ByteBuffer(bytes: bytes) }
        // New memory if somebody has kept the last piece after all.
        self.lent.clear(minimumCapacity: Self.mostLent)
        self.lent.writeBytes(bytes)
        return self.lent
    }

    /// Watches the socket. Returns its token.
    func add(_ socket: SocketChannel, _ descriptor: CInt, _ readiness: Epoll.Readiness) throws(IOError) -> UInt64 {
        self.generation &+= 1
        let place: Int
        if let free = self.freePlaces.popLast() {
            place = free
        } else {
            place = self.sockets.count
            self.sockets.append(nil)
        }
        let token = UInt64(self.generation) << 32 | UInt64(place)
        do throws(IOError) {
            try self.epoll.control(.add, descriptor, token: token, readiness)
        } catch {
            self.freePlaces.append(place)
            throw error
        }
        self.sockets[place] = socket
        return token
    }

    func change(_ token: UInt64, _ descriptor: CInt, _ readiness: Epoll.Readiness) throws(IOError) {
        try self.epoll.control(.modify, descriptor, token: token, readiness)
    }

    func remove(_ token: UInt64, _ descriptor: CInt) {
        let place = Int(token & 0xFFFF_FFFF)
        guard self.sockets.indices.contains(place), self.sockets[place]?.token == token else { return }
        self.sockets[place] = nil
        self.freePlaces.append(place)
        // A copy of the descriptor elsewhere would keep it in the set.
        try? self.epoll.control(.remove, descriptor, token: token, [])
    }

    private func socket(_ token: UInt64) -> SocketChannel? {
        let place = Int(token & 0xFFFF_FFFF)
        guard self.sockets.indices.contains(place), let socket = self.sockets[place], socket.token == token else { return nil }
        return socket
    }

    // MARK: EventLoop

    package var inEventLoop: Bool { self.thread.load(ordering: .relaxed) == Self.thisThread }

    package func execute(_ task: @escaping @Sendable () -> Void) { self.give(task) }

    package func _executeIsolatedUnsafeUnchecked(_ task: @escaping () -> Void) { self.give(task) }

    /// Returns false if the loop has ended: as with NIO's loops, the task is not run then.
    @discardableResult
    private func give(_ task: @escaping () -> Void) -> Bool {
        let task = LoopTask(run: task)
        if self.inEventLoop {
            self.tasks.append(task)
            return true
        }
        let isGiven = self.inbox.withLockedValue { inbox in
            guard !inbox.hasEnded else { return false }
            inbox.tasks.append(task)
            self.hasMail.store(true, ordering: .sequentiallyConsistent)
            return true
        }
        guard isGiven, self.isAsleep.exchange(false, ordering: .sequentiallyConsistent) else { return isGiven }
        var byte: UInt8 = 1
        // A full pipe wakes it as well.
        _ = write(self.alarm.writer, &byte, 1)
        return true
    }

    package func submit<Value>(_ task: @escaping @Sendable () throws -> Value) -> EventLoopFuture<Value> {
        let promise = self.makePromise(of: Value.self)
        let isGiven = self.give { promise.assumeIsolated().completeWith(Result(catching: task)) }
        if !isGiven { promise.fail(EventLoopError.shutdown) }
        return promise.futureResult
    }

    @discardableResult
    package func scheduleTask<Value>(deadline: NIODeadline, _ task: @escaping @Sendable () throws -> Value) -> Scheduled<Value> {
        let promise = self.makePromise(of: Value.self)
        let timer = LoopTimer(dueNs: deadline.uptimeNanoseconds) { isDue in
            guard isDue else { return promise.fail(EventLoopError.shutdown) }
            promise.assumeIsolated().completeWith(Result(catching: task))
        }
        let scheduled = Scheduled(promise: promise) {
            // The flag is read before the timer runs; its memory is given back on the loop.
            timer.cancel()
            if self.inEventLoop { self.forget(timer) } else { self.give { self.forget(timer) } }
        }
        if self.inEventLoop {
            self.timers.add(timer)
        } else if !self.give({ self.timers.add(timer) }) {
            promise.fail(EventLoopError.shutdown)
        }
        return scheduled
    }

    private func forget(_ timer: LoopTimer) {
        timer.drop()
        self.timers.wasCancelled()
    }

    @discardableResult
    package func scheduleTask<Value>(in delay: TimeAmount, _ task: @escaping @Sendable () throws -> Value) -> Scheduled<Value> {
        self.scheduleTask(deadline: self.now + delay, task)
    }

    package func preconditionInEventLoop(file: StaticString, line: UInt) {
        precondition(self.inEventLoop, "not on its event loop", file: file, line: line)
    }

    package func preconditionNotInEventLoop(file: StaticString, line: UInt) {
        precondition(!self.inEventLoop, "on an event loop that this would block", file: file, line: line)
    }

    // MARK: EventLoopGroup

    package func next() -> any EventLoop { self }
    package func any() -> any EventLoop { self }
    package func makeIterator() -> EventLoopIterator { EventLoopIterator([self]) }

    package func shutdownGracefully(queue: DispatchQueue, _ callback: @escaping @Sendable ((any Error)?) -> Void) {
        self.end()
        queue.async { callback(nil) }
    }

    /// Closes the loop's sockets and ends its thread, soon.
    func end() { self.give { self.isEnding = true } }
}
