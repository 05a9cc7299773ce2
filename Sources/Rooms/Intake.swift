import Synchronization

/// One thing to be done to the store, with whoever waits for it.
struct Operation {
    enum Kind {
        /// A call; refused when too many wait.
        case call
        /// What happened already: tried again until the store takes it, unless there is no place to wait.
        case fact
        /// The same, of an audit trail, on which nothing else rests: the first to go when too much waits.
        case trail

        var isFact: Bool { self != .call }
    }
    let kind: Kind
    /// Roughly what it takes in memory while it waits.
    var bytes = 512
    /// When it was submitted, by the registry's clock.
    let now: Int64
    /// Runs inside the batch's transaction; returns what is to be done once it is committed.
    let run: @Sendable (RoomWork) throws -> @Sendable () -> Void
    let fail: @Sendable (any Error) -> Void
}

/// What waits for the registry's queue, in the order of submission. Any thread.
///
/// While the store takes nothing (a full disk) facts wait, up to a number and to a size. Past either the oldest of the trail's go, and when
/// there are none the oldest of all, an eighth of the bound at once; they are counted.
final class Intake: Sendable {
    struct Limits: Sendable {
        /// Calls that may wait.
        var calls = 100_000
        /// Facts that may wait, and their bytes.
        var facts = 50_000
        var factBytes = 32 << 20
    }

    fileprivate struct State {
        var operations: [Operation] = []
        /// Of `operations`, in front, that were taken.
        var head = 0
        /// Taken, not done yet.
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

    /// Operations that wait, and those being carried out.
    var waiting: Int { self.state.withLock { $0.operations.count - $0.head + $0.taken } }

    /// Facts that wait, their bytes, and how many were dropped since the start.
    var facts: (waiting: Int, bytes: Int, dropped: Int) { self.state.withLock { ($0.facts, $0.factBytes, $0.dropped) } }

    /// The clock is read while the order is fixed, so that times never go back from one operation to the next.
    func submit(_ kind: Operation.Kind, clock: RoomClock, _ make: (Int64) -> Operation) -> Answer {
        var surplus: [Operation] = []
        let answer = self.state.withLock { state -> Answer in
            if state.isStopped { return .stopped }
            if kind == .call, state.operations.count - state.head + state.taken >= self.limits.calls { return .full }
            let operation = make(clock.now())
            state.operations.append(operation)
            state.count(operation, 1)
            surplus = self.takeSurplus(&state)
            defer { state.isScheduled = true }
            return .accepted(schedule: !state.isScheduled)
        }
        self.drop(surplus)
        return answer
    }

    /// At most so many, oldest first. The drain stays scheduled.
    func take(_ limit: Int) -> [Operation] {
        self.state.withLock { state in
            let batch = Array(state.operations[state.head...].prefix(limit))
            state.head += batch.count
            state.taken = batch.count
            for operation in batch { state.count(operation, -1) }
            if state.head > state.operations.count / 2 {
                state.operations.removeFirst(state.head)
                state.head = 0
            }
            return batch
        }
    }

    /// What was taken is done. True: there is more to do now, and the drain runs again.
    func done() -> Bool {
        self.state.withLock { state in
            state.taken = 0
            state.isScheduled = state.operations.count > state.head
            return state.isScheduled
        }
    }

    /// The store took nothing: these wait again, in front. Returns the calls that wait too, which are to be told. The drain is to run again in
    /// a while, and counts as scheduled.
    func putBack(_ facts: [Operation]) -> [Operation] {
        var surplus: [Operation] = []
        let calls = self.state.withLock { state -> [Operation] in
            state.taken = 0
            let waiting = state.operations[state.head...]
            state.operations = facts + waiting.filter(\.kind.isFact)
            state.head = 0
            for fact in facts { state.count(fact, 1) }
            surplus = self.takeSurplus(&state)
            return waiting.filter { !$0.kind.isFact }
        }
        self.drop(surplus)
        return calls
    }

    /// Nothing is accepted from now on; `last` goes behind everything. False: stopped before.
    func stop(_ last: Operation) -> (first: Bool, schedule: Bool) {
        self.state.withLock { state in
            guard !state.isStopped else { return (false, false) }
            state.isStopped = true
            state.operations.append(last)
            defer { state.isScheduled = true }
            return (true, !state.isScheduled)
        }
    }

    private func takeSurplus(_ state: inout State) -> [Operation] {
        guard state.facts > self.limits.facts || state.factBytes > self.limits.factBytes else { return [] }
        // Of what is too much, an eighth at once.
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

extension Intake.State {
    fileprivate mutating func count(_ operation: Operation, _ sign: Int) {
        guard operation.kind.isFact else { return }
        self.facts += sign
        self.factBytes += sign * operation.bytes
    }
}
