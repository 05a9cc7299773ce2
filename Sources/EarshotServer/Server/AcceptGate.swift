import Logging
import NIOCore
import NIOPosix
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Bounds how many accepted sockets the listeners of one kind hold, whatever becomes of them. Any thread.
///
/// A connection beyond the kind's limit is accepted and told, as its protocol allows, in one of a few places for that; when these are taken
/// it is closed as it comes; and when even those closes are slow, nothing is accepted for a moment. So the descriptors in use stay below a
/// number that is known from the start.
/// ```
/// 0 … limit: served | … + places for refusals: told and closed | … + 1 or more: closed at once, and nothing is accepted until it is
/// ```
final class AcceptGate: Sendable {
    private struct State {
        var open = 0
        /// Listeners that wait for sockets to close.
        var waiting: [@Sendable () -> Void] = []
    }

    /// Accepted in one turn of an event loop.
    let perTurn: Int
    private let places: Int
    /// Descriptors that are not for others, while nobody is connected.
    private let promised: Int
    private let counters: Counters
    private let log: Logger
    private let flood = FloodGate()
    private let state = Mutex(State())

    /// Without a descriptor that is free, until the next attempt.
    private static let pause = TimeAmount.milliseconds(50)
    /// Closed in one go when there is no descriptor left.
    private static let mostTurnedAway = 256

    /// `limit`: connections that are served.
    init(limit: Int, counters: Counters, log: Logger) {
        self.places = limit + min(128, max(4, limit / 32))
        // A full loop takes tens of milliseconds for a turn, and would let in a hundred viewers a second with NIO's number, 4. What a turn
        // accepts beyond the places is held until it is closed, so that few places allow few.
        self.perTurn = min(256, max(2, limit / 64))
        // One turn of each of two listeners.
        self.promised = self.places + 2 * self.perTurn
        OpenDescriptors.promise(self.promised)
        self.counters = counters
        self.log = log
    }

    deinit { OpenDescriptors.promise(-self.promised) }

    /// For the very front of a listening channel's pipeline.
    func handler() -> any ChannelHandler & Sendable { Handler(gate: self) }

    /// Counts a socket until it closes. False: it is to be closed now.
    private func enter(_ connection: any Channel) -> Bool {
        let isPlace = self.state.withLock { state in
            state.open += 1
            return state.open <= self.places
        }
        connection.closeFuture.whenComplete { _ in self.leave() }
        if isPlace {
            OpenDescriptors.promise(-1)
        } else {
            self.counters.update { $0.connectionsTurnedAway += 1 }
        }
        return isPlace
    }

    private func leave() {
        let waiting = self.state.withLock { state -> [@Sendable () -> Void] in
            if state.open <= self.places { OpenDescriptors.promise(1) }
            state.open -= 1
            guard state.open <= self.places, !state.waiting.isEmpty else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for resume in waiting { resume() }
    }

    /// Nil when more may be accepted now; otherwise `resume` is called when that is so.
    private func waits(_ resume: @escaping @Sendable () -> Void) -> Bool {
        self.state.withLock { state in
            guard state.open > self.places else { return false }
            state.waiting.append(resume)
            return true
        }
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
        /// A descriptor to let go when there is none.
        private var spare: CInt = -1

        init(gate: AcceptGate) { self.gate = gate }

        func handlerAdded(context: ChannelHandlerContext) { self.spare = open("/dev/null", O_RDONLY | O_CLOEXEC) }

        func handlerRemoved(context: ChannelHandlerContext) {
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
            guard !self.isHeld else { return }
            let bound = context.loopBound
            let loop = context.eventLoop
            if self.gate.waits({ loop.execute { self.resume(bound.value) } }) { self.hold(context) }
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
            var count = 0
            do {
                try context.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { listener in
                    while count < AcceptGate.mostTurnedAway {
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
            self.setAutoRead(false, context)
        }

        private func resume(_ context: ChannelHandlerContext) {
            guard self.isHeld, context.channel.isActive else { return }
            self.isHeld = false
            self.setAutoRead(true, context)
        }

        private func setAutoRead(_ isOn: Bool, _ context: ChannelHandlerContext) {
            do {
                try context.channel.syncOptions?.setOption(.autoRead, value: isOn)
            } catch {
                // The listener is closed.
            }
        }
    }
}
