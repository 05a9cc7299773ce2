import LibC
package import Logging
package import NIOCore
import NIOPosix
import Support
import Synchronization

/// Places of a full gate that are reserved for a few important peers.
package struct AcceptReserve: Sendable {
    package let places: Int
    /// How long newcomers wait for an ordinary place.
    package var patience: TimeAmount
    let isFor: @Sendable (SocketAddress) -> Bool

    package init(places: Int, patience: TimeAmount = .seconds(1), isFor: @escaping @Sendable (SocketAddress) -> Bool) {
        self.places = places
        self.patience = patience
        self.isFor = isFor
    }
}

/// Limits the accepted sockets of one kind's listeners, in whatever state they are. Any thread.
///
/// A connection beyond the limit is accepted and refused in its protocol, in one of a few places for that. When these are taken it is closed at once;
/// when even those closes are slow, accepting pauses for a moment. So the number of descriptors in use is bounded from the start.
///
/// A gate with an ``AcceptReserve`` is for kinds whose refused connections soon make room for others: when all places are taken, newcomers wait in
/// the listener's backlog for a free one, for a second at most. After that they are closed at once, except for those with a reserved place.
///
/// When the loops are late, ``AcceptPace`` limits the number of accepted connections. Connections that have waited for two seconds are closed. Only a
/// handful of them get the reason in their protocol: clients that reconnect every second must cost next to nothing.
/// ```
/// 0 … limit: served | … + places for refusals: refused by protocol | … + 1 or more: closed, and accepting pauses until that is done
/// ```
package final class AcceptGate: Sendable {
    private struct State {
        var taken = 0
        /// Reserved places in use.
        var inReserve = 0
        /// Sockets without a place that are being closed.
        var closing = 0
        /// No place became free in time. Newcomers without a reserved place are closed until one does.
        var hasGivenUp = false
        /// Resumes listeners that wait for sockets to close.
        var waiting: [@Sendable () -> Void] = []

        mutating func popWaiting() -> [@Sendable () -> Void] {
            defer { self.waiting = [] }
            return self.waiting
        }
    }

    /// Most sockets accepted in one turn of an event loop.
    package let perTurn: Int
    package let pace: AcceptPace
    /// How long the next accepted connection has waited in the backlog; 0 unless the loops are late. Milliseconds.
    package var waitMs: Int64 { self.wait.load(ordering: .relaxed) }
    private let wait = Atomic<Int64>(0)
    private let most: Atomic<Int>
    private let reserve: AcceptReserve?
    /// Descriptors promised to this gate while nobody is connected.
    private let promised: Atomic<Int>
    private let counters: ServerCounters
    private let log: Logger
    private let flood = LogRateLimiter()
    private let state = Mutex(State())

    /// How long a client waits, in the backlog or for a loop that is overloaded, before it is refused.
    package static let patienceMs: Int64 = 2_000
    /// Delay before the next attempt when no descriptor is free.
    private static let pause = TimeAmount.milliseconds(50)
    /// Most waiting connections closed in one go.
    private static let mostTurnedAway = 256

    /// `limit`: connections that are served.
    package init(limit: Int, pace: AcceptPace = AcceptPace([]), reserve: AcceptReserve? = nil, counters: ServerCounters, log: Logger) {
        self.pace = pace
        self.reserve = reserve
        let places = Self.places(limit)
        self.most = Atomic(places)
        // A turn of a full loop lasts tens of milliseconds. NIO's default of 4 would admit a hundred viewers a second. Sockets accepted
        // beyond the places are held until they close, so a gate with few places accepts few per turn.
        self.perTurn = min(256, max(2, limit / 64))
        // One turn of each of two listeners.
        let promised = places + (reserve?.places ?? 0) + 2 * self.perTurn
        self.promised = Atomic(promised)
        OpenDescriptors.promise(promised)
        self.counters = counters
        self.log = log
    }

    deinit { OpenDescriptors.promise(-self.promised.load(ordering: .relaxed)) }

    /// Places for `limit` connections, and for those that are refused by their protocol.
    private static func places(_ limit: Int) -> Int { limit + min(128, max(4, limit / 32)) }

    private var places: Int { self.most.load(ordering: .relaxed) }

    /// Changes the number of connections that are served. Those beyond a lower limit stay.
    package func set(limit: Int) {
        let new = Self.places(limit)
        let change = new - self.most.exchange(new, ordering: .relaxed)
        guard change != 0 else { return }
        self.promised.add(change, ordering: .relaxed)
        OpenDescriptors.promise(change)
        self.resume { _ in }
    }

    /// Event for a listener: it accepts no more, and stays open.
    struct Stop {}

    /// Add at the very front of a listening channel's pipeline.
    package func handler() -> any ChannelHandler & Sendable { Handler(gate: self) }

    private enum Entry { case place, reserved, none }

    /// Counts a socket until it closes. Returns false if it must be closed now.
    private func enter(_ connection: any Channel) -> Bool {
        let entry = self.state.withLock { state -> Entry in
            // Sockets accepted by the current turn can no longer wait in the backlog.
            if state.taken < (self.isPatient(state) ? self.places + 2 * self.perTurn : self.places) {
                state.taken += 1
                return .place
            }
            if let reserve, state.inReserve < reserve.places, let peer = connection.remoteAddress, reserve.isFor(peer) {
                state.inReserve += 1
                return .reserved
            }
            state.closing += 1
            return .none
        }
        let id = ObjectIdentifier(connection)
        self.pace.opened(id, nowMs: LoopSweeper.nowMs)
        connection.closeFuture.whenComplete { _ in
            self.pace.settled(id)
            self.leave(entry)
        }
        if entry == .none {
            self.counters.update { $0.connectionsTurnedAway += 1 }
        } else {
            OpenDescriptors.promise(-1)
        }
        return entry != .none
    }

    private func leave(_ entry: Entry) {
        if entry != .none { OpenDescriptors.promise(1) }
        self.resume { state in
            switch entry {
            case .place: state.taken -= 1
            case .reserved: state.inReserve -= 1
            case .none: state.closing -= 1
            }
        }
    }

    /// Accepts again if there is a place after the change.
    private func resume(after change: (inout State) -> Void) {
        let waiting = self.state.withLock { state -> [@Sendable () -> Void] in
            change(&state)
            if state.taken < self.places { state.hasGivenUp = false }
            return self.mustWait(state) ? [] : state.popWaiting()
        }
        for resume in waiting { resume() }
    }

    /// A place is expected to become free in a moment.
    private func isPatient(_ state: State) -> Bool { self.reserve != nil && !state.hasGivenUp }

    private func mustWait(_ state: State) -> Bool {
        (state.closing > 0 && state.taken + state.closing > self.places) || (self.isPatient(state) && state.taken >= self.places)
    }

    /// Returns false if more sockets may be accepted now; otherwise `resume` is called once they may.
    private func waits(_ resume: @escaping @Sendable () -> Void) -> Bool {
        self.state.withLock { state in
            guard self.mustWait(state) else { return false }
            state.waiting.append(resume)
            return true
        }
    }

    /// No place became free in time.
    private func giveUp() {
        let waiting = self.state.withLock { state -> [@Sendable () -> Void] in
            guard state.taken >= self.places else { return [] }
            state.hasGivenUp = true
            return self.mustWait(state) ? [] : state.popWaiting()
        }
        for resume in waiting { resume() }
    }

    private func noteShortage(_ error: IOError, turnedAway: Int) {
        self.counters.update { $0.connectionsTurnedAway += UInt64(turnedAway) }
        guard let held = self.flood.pass(nowMs: LoopSweeper.nowMs) else { return }
        let metadata: Logger.Metadata = ["error": "\(error)", "turnedAway": "\(turnedAway)"]
        self.log.write(
            "No file descriptor is free for a new connection; raise the limit of open files (LimitNOFILE=, ulimit -n)", metadata,
            at: .error, heldBack: held)
    }

    /// Handles one listening channel. Loop-bound.
    private final class Handler: ChannelInboundHandler, @unchecked Sendable {
        typealias InboundIn = any Channel

        private let gate: AcceptGate
        /// Accepting is paused.
        private var isHeld = false
        /// Number of pauses so far.
        private var holds = 0
        /// A descriptor to release when none is free.
        private var spare: CInt = -1
        /// While the loops are late: how many may be accepted until the next look.
        private var room: Int?
        private var backlog = BacklogAge()
        private var reads = true
        private var pacing: RepeatedTask?
        private var isWaitingForRoom = false
        private var isStopped = false

        init(gate: AcceptGate) { self.gate = gate }

        func handlerAdded(context: ChannelHandlerContext) {
            self.spare = open("/dev/null", O_RDONLY | O_CLOEXEC)
            let bound = context.loopBound
            let interval = TimeAmount.milliseconds(LoopLoad.sampleMs)
            self.pacing = context.eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in self.keepPace(bound.value)
            }
        }

        func handlerRemoved(context: ChannelHandlerContext) {
            self.pacing?.cancel()
            self.pacing = nil
            if self.spare >= 0 { close(self.spare) }
            self.spare = -1
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let connection = self.unwrapInboundIn(data)
            if self.gate.enter(connection) {
                context.fireChannelRead(data)
            } else {
                connection.close(promise: nil)
            }
            if let room = self.room {
                self.room = room - 1
                self.backlog.accepted(1)
            }
            guard !self.isHeld else { return }
            let bound = context.loopBound
            let loop = context.eventLoop
            guard self.gate.waits({ loop.execute { self.resume(bound.value) } }) else { return }
            self.hold(context)
            guard let reserve = self.gate.reserve else { return }
            self.holds += 1
            let hold = self.holds
            loop.scheduleTask(in: reserve.patience) { if self.isHeld, self.holds == hold { self.gate.giveUp() } }
        }

        func channelReadComplete(context: ChannelHandlerContext) {
            self.settleReading(context)
            context.fireChannelReadComplete()
        }

        /// Adapts accepting to the loops' lateness, ten times a second.
        private func keepPace(_ context: ChannelHandlerContext) {
            guard context.channel.isActive, !self.isStopped else { return }
            let nowMs = LoopSweeper.nowMs
            guard let room = self.gate.pace.room(nowMs: nowMs) else {
                guard self.room != nil else { return }
                self.room = nil
                self.backlog = BacklogAge()
                self.gate.wait.store(0, ordering: .relaxed)
                self.setMost(self.gate.perTurn, context)
                return self.settleReading(context)
            }
            self.backlog.sample(waiting: self.waiting(context), nowMs: nowMs)
            // Closes the oldest connections, but leaves `room` of them to be accepted: these get the reason.
            let late = self.backlog.waiting(for: AcceptGate.patienceMs, nowMs: nowMs) - room
            if late > 0 {
                let count = self.closeWaiting(context, most: min(late, AcceptGate.mostTurnedAway))
                self.backlog.accepted(count)
                self.gate.counters.update { $0.connectionsTurnedAway += UInt64(count) }
            }
            self.gate.wait.store(self.backlog.nextWaitMs(nowMs: nowMs), ordering: .relaxed)
            self.room = room
            if room > 0 { self.setMost(min(room, self.gate.perTurn), context) }
            self.settleReading(context)
        }

        /// Connections that wait in the kernel's backlog.
        private func waiting(_ context: ChannelHandlerContext) -> Int {
            // linux/tcp.h: for a listening socket tcpi_unacked, the seventh word of tcp_info, is the length of its backlog.
            var words: (UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32) = (0, 0, 0, 0, 0, 0, 0)
            var size = socklen_t(MemoryLayout.size(ofValue: words))
            let isKnown = try? context.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { listener in
                getsockopt(listener, CInt(IPPROTO_TCP), LinuxSocket.info, &words, &size) == 0
            }
            return isKnown == true && Int(size) == MemoryLayout.size(ofValue: words) ? Int(words.6) : 0
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            guard event is Stop else { return context.fireUserInboundEventTriggered(event) }
            self.isStopped = true
            self.settleReading(context)
        }

        /// After errors that may pass, NIO retries at once, for ever, and reports each. The listener stays open, but the HTTP handlers
        /// further down the pipeline treat any error as the end.
        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            guard let failure = error as? IOError, [EMFILE, ENFILE, ENOBUFS, ENOMEM, ECONNABORTED].contains(failure.errnoCode) else {
                return context.fireErrorCaught(error)
            }
            // Caused by the peer.
            guard failure.errnoCode != ECONNABORTED else { return }
            let turnedAway = failure.errnoCode == EMFILE ? self.turnAway(context) : 0
            self.gate.noteShortage(failure, turnedAway: turnedAway)
            guard !self.isHeld else { return }
            self.hold(context)
            let bound = context.loopBound
            context.eventLoop.scheduleTask(in: AcceptGate.pause) { self.resume(bound.value) }
        }

        /// Uses the spare descriptor to close waiting connections, which would otherwise wait for ever.
        private func turnAway(_ context: ChannelHandlerContext) -> Int {
            guard self.spare >= 0 else {
                self.spare = open("/dev/null", O_RDONLY | O_CLOEXEC)
                return 0
            }
            close(self.spare)
            defer { self.spare = open("/dev/null", O_RDONLY | O_CLOEXEC) }
            return self.closeWaiting(context, most: AcceptGate.mostTurnedAway)
        }

        /// Closes the longest-waiting connections without NIO, whose channels would cost ten times as much. Returns their number.
        private func closeWaiting(_ context: ChannelHandlerContext, most: Int) -> Int {
            var count = 0
            do {
                try context.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { listener in
                    while count < most {
                        let socket = accept(listener, nil, nil)
                        guard socket >= 0 else { return }
                        close(socket)
                        count += 1
                    }
                }
            } catch {
                // Not a socket: nobody waits.
            }
            return count
        }

        private func hold(_ context: ChannelHandlerContext) {
            self.isHeld = true
            self.settleReading(context)
        }

        private func resume(_ context: ChannelHandlerContext) {
            guard self.isHeld, context.channel.isActive else { return }
            self.isHeld = false
            self.settleReading(context)
        }

        private func settleReading(_ context: ChannelHandlerContext) {
            let reads = !self.isStopped && !self.isHeld && self.room ?? 1 > 0
            guard reads != self.reads else { return }
            self.reads = reads
            do {
                try context.channel.syncOptions?.setOption(.autoRead, value: reads)
            } catch {
                // The listener is closed.
            }
            guard !reads, !self.isStopped, !self.isHeld, !self.isWaitingForRoom else { return }
            let bound = context.loopBound
            let loop = context.eventLoop
            self.isWaitingForRoom = self.gate.pace.whenSettled { loop.execute { self.settled(bound.value) } }
        }

        private func settled(_ context: ChannelHandlerContext) {
            self.isWaitingForRoom = false
            self.keepPace(context)
        }

        /// Sets how many sockets one turn accepts.
        private func setMost(_ count: Int, _ context: ChannelHandlerContext) {
            do {
                try context.channel.syncOptions?.setOption(.maxMessagesPerRead, value: UInt(count))
            } catch {
                // The listener is closed.
            }
        }
    }
}
