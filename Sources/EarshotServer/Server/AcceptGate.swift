import Logging
import NIOCore
import NIOPosix
import Relay
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Places of a gate for a few who must get through however full it is.
struct AcceptReserve: Sendable {
    let places: Int
    /// How long newcomers wait for a place of the others.
    var patience = TimeAmount.seconds(1)
    let isFor: @Sendable (SocketAddress) -> Bool
}

/// Bounds how many accepted sockets the listeners of one kind hold, whatever becomes of them. Any thread.
///
/// A connection beyond the kind's limit is accepted and told, as its protocol allows, in one of a few places for that; when these are taken
/// it is closed as it comes; and when even those closes are slow, nothing is accepted for a moment. So the descriptors in use stay below a
/// number that is known from the start.
///
/// A gate with an ``AcceptReserve`` is for a kind whose refused connections give way to the next ones: when all places are taken, newcomers
/// wait in the listener's backlog until one of those has gone, for a second at most. Only then are they closed as they come,
/// and those for whom the reserve is are let in.
///
/// Where the loops are late, no more are accepted than ``AcceptPace`` says; who has waited for two seconds is closed, a handful excepted that
/// learn why by their protocol: clients that come again each second must cost next to nothing.
/// ```
/// 0 … limit: served | … + places for refusals: told and closed | … + 1 or more: closed at once, and nothing is accepted until it is
/// ```
final class AcceptGate: Sendable {
    private struct State {
        var taken = 0
        /// Places of the reserve.
        var inReserve = 0
        /// Sockets without a place, which are being closed.
        var closing = 0
        /// No place has become free in time: who has none in the reserve is closed, until one has.
        var hasGivenUp = false
        /// Listeners that wait for sockets to close.
        var waiting: [@Sendable () -> Void] = []

        mutating func takeWaiting() -> [@Sendable () -> Void] {
            defer { self.waiting = [] }
            return self.waiting
        }
    }

    /// Accepted in one turn of an event loop.
    let perTurn: Int
    let pace: AcceptPace
    /// How long who is accepted now has waited for it; 0 unless the loops are late. Milliseconds.
    var waitMs: Int64 { self.wait.load(ordering: .relaxed) }
    private let wait = Atomic<Int64>(0)
    private let places: Int
    private let reserve: AcceptReserve?
    /// Descriptors that are not for others, while nobody is connected.
    private let promised: Int
    private let counters: Counters
    private let log: Logger
    private let flood = FloodGate()
    private let state = Mutex(State())

    /// Without a descriptor that is free, until the next attempt.
    private static let pause = TimeAmount.milliseconds(50)
    private static let TCP_INFO: CInt = 11
    /// Closed in one go, of those that wait to be accepted.
    private static let mostTurnedAway = 256

    /// `limit`: connections that are served.
    init(limit: Int, pace: AcceptPace = AcceptPace([]), reserve: AcceptReserve? = nil, counters: Counters, log: Logger) {
        self.pace = pace
        self.reserve = reserve
        self.places = limit + min(128, max(4, limit / 32))
        // A full loop takes tens of milliseconds for a turn, and would let in a hundred viewers a second with NIO's number, 4. What a turn
        // accepts beyond the places is held until it is closed, so that few places allow few.
        self.perTurn = min(256, max(2, limit / 64))
        // One turn of each of two listeners.
        self.promised = self.places + (reserve?.places ?? 0) + 2 * self.perTurn
        OpenDescriptors.promise(self.promised)
        self.counters = counters
        self.log = log
    }

    deinit { OpenDescriptors.promise(-self.promised) }

    /// For the very front of a listening channel's pipeline.
    func handler() -> any ChannelHandler & Sendable { Handler(gate: self) }

    private enum Entry { case place, reserved, none }

    /// Counts a socket until it closes. False: it is to be closed now.
    private func enter(_ connection: any Channel) -> Bool {
        let entry = self.state.withLock { state -> Entry in
            // The rest of a turn cannot be left waiting any more.
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
        let waiting = self.state.withLock { state -> [@Sendable () -> Void] in
            switch entry {
            case .place: state.taken -= 1
            case .reserved: state.inReserve -= 1
            case .none: state.closing -= 1
            }
            if state.taken < self.places { state.hasGivenUp = false }
            return self.mustWait(state) ? [] : state.takeWaiting()
        }
        for resume in waiting { resume() }
    }

    /// A place becomes free in a moment, as far as is known.
    private func isPatient(_ state: State) -> Bool { self.reserve != nil && !state.hasGivenUp }

    private func mustWait(_ state: State) -> Bool {
        (state.closing > 0 && state.taken + state.closing > self.places) || (self.isPatient(state) && state.taken >= self.places)
    }

    /// False when more may be accepted now; otherwise `resume` is called when that is so.
    private func waits(_ resume: @escaping @Sendable () -> Void) -> Bool {
        self.state.withLock { state in
            guard self.mustWait(state) else { return false }
            state.waiting.append(resume)
            return true
        }
    }

    /// No place has become free.
    private func giveUp() {
        let waiting = self.state.withLock { state -> [@Sendable () -> Void] in
            guard state.taken >= self.places else { return [] }
            state.hasGivenUp = true
            return self.mustWait(state) ? [] : state.takeWaiting()
        }
        for resume in waiting { resume() }
    }

    private func noteShortage(_ error: IOError, turnedAway: Int) {
        self.counters.update { $0.connectionsTurnedAway += UInt64(turnedAway) }
        guard let held = self.flood.pass(nowMs: LoopSweeper.nowMs) else { return }
        var metadata: Logger.Metadata = ["error": "\(error)", "turnedAway": "\(turnedAway)"]
        if held > 0 { metadata["linesHeldBack"] = "\(held)" }
        self.log.error(
            "No descriptor is free for a connection; raise the limit of open files (LimitNOFILE=, ulimit -n)", metadata: metadata)
    }

    /// Loop-bound, of one listening channel.
    private final class Handler: ChannelInboundHandler, @unchecked Sendable {
        typealias InboundIn = any Channel

        private let gate: AcceptGate
        /// Nothing is accepted now.
        private var isHeld = false
        /// How often it has waited for a place.
        private var holds = 0
        /// A descriptor to let go when there is none.
        private var spare: CInt = -1
        /// While the loops are late: how many may still be accepted until the next look.
        private var room: Int?
        private var backlog = BacklogAge()
        private var reads = true
        private var pacing: RepeatedTask?
        private var isWaitingForRoom = false

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
                self.backlog.took(1)
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

        /// Ten times a second.
        private func keepPace(_ context: ChannelHandlerContext) {
            guard context.channel.isActive else { return }
            let nowMs = LoopSweeper.nowMs
            guard let room = self.gate.pace.room(nowMs: nowMs) else {
                guard self.room != nil else { return }
                self.room = nil
                self.backlog = BacklogAge()
                self.gate.wait.store(0, ordering: .relaxed)
                self.setMost(self.gate.perTurn, context)
                return self.settleReading(context)
            }
            self.backlog.look(waiting: self.waiting(context), nowMs: nowMs)
            // The oldest are accepted next.
            let late = self.backlog.waiting(for: JoinQueue.patienceMs, nowMs: nowMs) - room
            if late > 0 {
                let count = self.closeWaiting(context, most: min(late, AcceptGate.mostTurnedAway))
                self.backlog.took(count)
                self.gate.counters.update { $0.connectionsTurnedAway += UInt64(count) }
            }
            self.gate.wait.store(self.backlog.nextWaitMs(nowMs: nowMs), ordering: .relaxed)
            self.room = room
            if room > 0 { self.setMost(min(room, self.gate.perTurn), context) }
            self.settleReading(context)
        }

        /// Connections that the kernel holds for the listener.
        private func waiting(_ context: ChannelHandlerContext) -> Int {
            // linux/tcp.h: of a listening socket tcpi_unacked, the seventh word of tcp_info, is the length of its backlog.
            var words: (UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32) = (0, 0, 0, 0, 0, 0, 0)
            var size = socklen_t(MemoryLayout.size(ofValue: words))
            let isKnown = try? context.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { listener in
                getsockopt(listener, CInt(IPPROTO_TCP), AcceptGate.TCP_INFO, &words, &size) == 0
            }
            return isKnown == true && Int(size) == MemoryLayout.size(ofValue: words) ? Int(words.6) : 0
        }

        /// NIO leaves the listener open after errors that may pass, tells of them, and tries again at once, for ever. To what stands behind
        /// in the pipeline of HTTP an error is the end.
        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            guard let failure = error as? IOError, [EMFILE, ENFILE, ENOBUFS, ENOMEM, ECONNABORTED].contains(failure.errnoCode) else {
                return context.fireErrorCaught(error)
            }
            // The peer's own doing.
            guard failure.errnoCode != ECONNABORTED else { return }
            let turnedAway = failure.errnoCode == EMFILE ? self.turnAway(context) : 0
            self.gate.noteShortage(failure, turnedAway: turnedAway)
            guard !self.isHeld else { return }
            self.hold(context)
            let bound = context.loopBound
            context.eventLoop.scheduleTask(in: AcceptGate.pause) { self.resume(bound.value) }
        }

        /// Whoever waits learns that there is no place, instead of waiting for ever.
        private func turnAway(_ context: ChannelHandlerContext) -> Int {
            guard self.spare >= 0 else {
                self.spare = open("/dev/null", O_RDONLY | O_CLOEXEC)
                return 0
            }
            close(self.spare)
            defer { self.spare = open("/dev/null", O_RDONLY | O_CLOEXEC) }
            return self.closeWaiting(context, most: AcceptGate.mostTurnedAway)
        }

        /// Closes those that have waited longest, past NIO: a channel for each would cost ten times as much. How many there were.
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
            let reads = !self.isHeld && self.room ?? 1 > 0
            guard reads != self.reads else { return }
            self.reads = reads
            do {
                try context.channel.syncOptions?.setOption(.autoRead, value: reads)
            } catch {
                // The listener is closed.
            }
            guard !reads, !self.isHeld, !self.isWaitingForRoom else { return }
            let bound = context.loopBound
            let loop = context.eventLoop
            self.isWaitingForRoom = self.gate.pace.whenSettled { loop.execute { self.settled(bound.value) } }
        }

        private func settled(_ context: ChannelHandlerContext) {
            self.isWaitingForRoom = false
            self.keepPace(context)
        }

        /// Accepted in one turn.
        private func setMost(_ count: Int, _ context: ChannelHandlerContext) {
            do {
                try context.channel.syncOptions?.setOption(.maxMessagesPerRead, value: UInt(count))
            } catch {
                // The listener is closed.
            }
        }
    }
}
