import Rooms
import Synchronization

/// A unit of work on the store, with its caller's completion.
struct Operation {
    enum Kind {
        /// A call; rejected when too many are queued.
        case call
        /// A report of something that already happened. Retried until the store accepts it, unless the queue has no room.
        case fact
        /// A fact of an audit trail. Nothing depends on it, so a full queue drops it first.
        case trail

        var isFact: Bool { self != .call }
    }
    let kind: Kind
    /// Approximate memory use while queued.
    var bytes = 512
    /// Of a push's end: this end.
    var end: RunningPushes.End?
    /// When it was submitted, by the registry's clock.
    let now: Int64
    /// Runs inside the batch's transaction; returns a closure to run after the commit.
    let run: @Sendable (RoomTransaction) throws -> @Sendable () -> Void
    let fail: @Sendable (any Error) -> Void
}

/// The registry's queue of operations, in submission order. Any thread.
///
/// Facts stay queued while the store accepts no writes (a full disk). Their count and bytes are limited. Above either limit the queue drops an eighth
/// of the limit at once: the oldest of the trail, then the oldest facts. It counts the dropped facts.
final class SubmissionQueue: Sendable {
    struct Limits: Sendable {
        /// Maximum queued calls.
        var calls = 100_000
        /// Maximum queued facts, and their bytes.
        var facts = 50_000
        var factBytes = 32 << 20
    }

    fileprivate struct State {
        var operations: [Operation] = []
        /// Operations at the front of `operations` that were already taken.
        var head = 0
        /// Operations taken but not done yet.
        var taken = 0
        var facts = 0
        var factBytes = 0
        var dropped = 0
        var isScheduled = false
        var isStopped = false
    }
    private let state = Mutex(State())
    private let limits: Limits

    init(_ limits: Limits = Limits()) { self.limits = limits }

    enum Answer { case accepted(schedule: Bool), full, stopped }

    /// The number of operations queued or running.
    var waiting: Int { self.state.withLock { $0.operations.count - $0.head + $0.taken } }

    /// Queued facts, their bytes, and how many were dropped since the start.
    var facts: (waiting: Int, bytes: Int, dropped: Int) { self.state.withLock { ($0.facts, $0.factBytes, $0.dropped) } }

    /// Queues an operation. Reads the clock under the lock, so that times never decrease from one operation to the next.
    func submit(_ kind: Operation.Kind, clock: RoomClock, _ make: (Int64) -> Operation) -> Answer {
        var surplus: [Operation] = []
        let answer = self.state.withLock { state -> Answer in
            if state.isStopped { return .stopped }
            if kind == .call, state.operations.count - state.head + state.taken >= self.limits.calls { return .full }
            let operation = make(clock.now())
            state.operations.append(operation)
            state.count(operation, 1)
            surplus = self.popSurplus(&state)
            defer { state.isScheduled = true }
            return .accepted(schedule: !state.isScheduled)
        }
        self.drop(surplus)
        return answer
    }

    /// Removes and returns at most `limit` operations, oldest first. The drain stays scheduled. They count as taken until ``done()``.
    func pop(_ limit: Int) -> [Operation] {
        self.state.withLock { state in
            let batch = Array(state.operations[state.head...].prefix(limit))
            state.head += batch.count
            state.taken += batch.count
            for operation in batch { state.count(operation, -1) }
            if state.head > state.operations.count / 2 {
                state.operations.removeFirst(state.head)
                state.head = 0
            }
            return batch
        }
    }

    /// Marks the taken operations as done. True if more are queued; the drain then runs again.
    func done() -> Bool {
        self.state.withLock { state in
            state.taken = 0
            state.isScheduled = state.operations.count > state.head
            return state.isScheduled
        }
    }

    /// Puts facts that the store did not accept back at the front. Returns the queued calls, which the caller fails. The drain counts as scheduled;
    /// the caller runs it again after a while.
    func putBack(_ facts: [Operation]) -> [Operation] {
        var surplus: [Operation] = []
        let calls = self.state.withLock { state -> [Operation] in
            state.taken = 0
            let waiting = state.operations[state.head...]
            state.operations = facts + waiting.filter(\.kind.isFact)
            state.head = 0
            for fact in facts { state.count(fact, 1) }
            surplus = self.popSurplus(&state)
            return waiting.filter { !$0.kind.isFact }
        }
        self.drop(surplus)
        return calls
    }

    /// Stops accepting operations and queues `last` behind all others. `first` is false if already stopped.
    func stop(_ last: Operation) -> (first: Bool, schedule: Bool) {
        self.state.withLock { state in
            guard !state.isStopped else { return (false, false) }
            state.isStopped = true
            state.operations.append(last)
            defer { state.isScheduled = true }
            return (true, !state.isScheduled)
        }
    }

    private func popSurplus(_ state: inout State) -> [Operation] {
        guard state.facts > self.limits.facts || state.factBytes > self.limits.factBytes else { return [] }
        // Drops down to seven eighths of an exceeded limit.
        let facts = state.facts > self.limits.facts ? self.limits.facts / 8 * 7 : self.limits.facts
        let bytes = state.factBytes > self.limits.factBytes ? self.limits.factBytes / 8 * 7 : self.limits.factBytes
        var surplus: [Operation] = []
        for isTrailOnly in [true, false] {
            var kept: [Operation] = []
            kept.reserveCapacity(state.operations.count - state.head)
            for operation in state.operations[state.head...] {
                let isOver = state.facts > facts || state.factBytes > bytes
                if isOver, isTrailOnly ? operation.kind == .trail : operation.kind.isFact {
                    state.count(operation, -1)
                    surplus.append(operation)
                } else {
                    kept.append(operation)
                }
            }
            state.operations = kept
            state.head = 0
        }
        state.dropped += surplus.count
        return surplus
    }

    private func drop(_ surplus: [Operation]) {
        for operation in surplus { operation.fail(RegistryError.tooMany(what: "waiting facts", limit: self.limits.facts)) }
    }
}

extension SubmissionQueue.State {
    fileprivate mutating func count(_ operation: Operation, _ sign: Int) {
        guard operation.kind.isFact else { return }
        self.facts += sign
        self.factBytes += sign * operation.bytes
    }
}
