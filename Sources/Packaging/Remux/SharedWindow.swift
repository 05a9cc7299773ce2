package import HLS
package import NIOCore
import Support
import Synchronization

/// A remuxer's window, as its players see it. The remuxer changes it on its own thread; players look on their connections' loops. Any thread.
package final class SharedWindow: Sendable {
    /// What a player waits for. Those that wait for the same are told together.
    enum Wanted: Sendable, Hashable {
        case playlist(WaitPoint)
        case resource(String)

        func isSettled(in window: MediaWindow) -> Bool {
            switch self {
            case .playlist(let point): window.isSatisfied(point)
            case .resource(let name): window.resource(named: name) != .pending
            }
        }
    }

    private struct Waiter: Sendable {
        let untilMs: Int64
        /// Succeeds with whether it is there.
        let answer: EventLoopPromise<Bool>
    }

    private struct State {
        var window: MediaWindow
        /// In the order of their arrival, which is about that of their deadlines.
        var waiters: [Wanted: [Waiter]] = [:]
        var count = 0

        mutating func remove(_ wanted: Wanted) -> [Waiter] {
            let removed = self.waiters.removeValue(forKey: wanted) ?? []
            self.count -= removed.count
            return removed
        }
    }

    private let state: Mutex<State>
    /// Most players that wait at a time.
    static let waiterLimit = 20_000

    init(_ window: MediaWindow) { self.state = Mutex(State(window: window)) }

    /// Reads the window without a copy of it.
    func read<Value: Sendable>(_ body: (borrowing MediaWindow) -> Value) -> Value { self.state.withLock { body($0.window) } }

    /// Changes the window; who waits learns of it by ``wake()``.
    func change<Value: Sendable, Problem: Error>(_ body: (inout MediaWindow) throws(Problem) -> Value) throws(Problem) -> Value {
        // The lock's own closure cannot carry a second type of error.
        try self.state.withLock { state in
            Result { () throws(Problem) -> Value in try body(&state.window) }
        }.get()
    }

    /// Players that wait.
    var waiting: Int { self.state.withLock { $0.count } }

    /// Joins those that wait for this, `ms` at most. `isFirst`: nobody waited for anything. The answer is whether it is there, and comes on `loop`. Nil:
    /// too many wait already.
    func wait(for wanted: Wanted, ms: Int, on loop: any EventLoop) -> (isFirst: Bool, answer: EventLoopFuture<Bool>)? {
        self.state.withLock { state in
            // It may have come since the player looked.
            guard !wanted.isSettled(in: state.window) else { return (false, loop.makeSucceededFuture(true)) }
            guard state.count < Self.waiterLimit else { return nil }
            let answer = loop.makePromise(of: Bool.self)
            state.waiters[wanted, default: []].append(Waiter(untilMs: LoopSweeper.nowMs + Int64(ms), answer: answer))
            state.count += 1
            return (state.count == 1, answer.futureResult)
        }
    }

    /// Tells those whose wish is settled, each loop once.
    func wake() {
        Self.tell(
            true,
            self.state.withLock { state in
                state.waiters.keys.filter { $0.isSettled(in: state.window) }.flatMap { state.remove($0) }
            })
    }

    /// Tells those whose time is over.
    func expire(nowMs: Int64) {
        Self.tell(
            false,
            self.state.withLock { state in
                state.waiters.keys.flatMap { wanted -> [Waiter] in
                    let waiters = state.remove(wanted)
                    let left = waiters.filter { nowMs < $0.untilMs }
                    if !left.isEmpty { state.waiters[wanted] = left }
                    state.count += left.count
                    return waiters.filter { nowMs >= $0.untilMs }
                }
            })
    }

    /// The remuxer has stopped: tells all that wait.
    func stop() { self.expire(nowMs: .max) }

    /// Many wait on few loops, so one task for each loop is far cheaper than one for each promise.
    private static func tell(_ isThere: Bool, _ waiters: [Waiter]) {
        let loops = Dictionary(grouping: waiters) { ObjectIdentifier($0.answer.futureResult.eventLoop) }
        for waiters in loops.values {
            guard let loop = waiters.first?.answer.futureResult.eventLoop else { continue }
            loop.execute { for waiter in waiters { waiter.answer.succeed(isThere) } }
        }
    }
}

/// Answers on a player's loop, out of what the window holds.
extension StreamRemuxer {
    package enum LoopAnswer<Value: Sendable>: Sendable {
        case now(Value)
        /// Ask again then: true, it is there; false, it did not come in time.
        case later(EventLoopFuture<Bool>)
        /// Not an answer out of memory, or an error: ask on the remuxer's thread.
        case elsewhere
    }

    /// The playlist that a request with directives asks for.
    package nonisolated func playlist(
        _ request: PlaylistRequest, hasStart: Bool?, on loop: any EventLoop
    ) -> LoopAnswer<PlaylistReply> {
        self.touch()
        guard request.isBlocking, !self.isStopped else { return .elsewhere }
        let answer = self.shared.change { window -> InWindow<PlaylistReply> in
            guard window.isReady else { return .elsewhere }
            switch window.answer(request) {
            case .now: return self.reply(to: request, hasStart: hasStart, &window).map { .now($0) } ?? .elsewhere
            case .wait(let point): return .wait(.playlist(point), ms: window.longestWaitMs)
            case .badRequest, .unavailable: return .elsewhere
            }
        }
        return self.settle(answer, on: loop)
    }

    /// A segment, part or initialization section.
    package nonisolated func resource(_ name: String, on loop: any EventLoop) -> LoopAnswer<Resource> {
        self.touch()
        guard !self.isStopped else { return .elsewhere }
        let answer = self.shared.read { window -> InWindow<Resource> in
            switch window.resource(named: name) {
            case .found(let resource): .now(resource)
            case .pending: .wait(.resource(name), ms: window.longestWaitMs)
            case .gone, .unknown: .elsewhere
            }
        }
        return self.settle(answer, on: loop)
    }

    private enum InWindow<Value: Sendable>: Sendable {
        case now(Value)
        case wait(SharedWindow.Wanted, ms: Int)
        case elsewhere
    }

    private nonisolated func settle<Value: Sendable>(_ found: InWindow<Value>, on loop: any EventLoop) -> LoopAnswer<Value> {
        switch found {
        case .now(let value): return .now(value)
        case .elsewhere: return .elsewhere
        case .wait(let wanted, let ms):
            guard let (isFirst, answer) = self.shared.wait(for: wanted, ms: ms, on: loop) else { return .elsewhere }
            // Frames that were not worth a wake-up may be now.
            if isFirst { self.playerWaits() }
            return .later(answer)
        }
    }
}
