import Synchronization

/// One thing to be done to the store, with whoever waits for it.
struct Operation {
    enum Kind {
        /// A call; refused when too many wait.
        case call
        /// What happened already: never refused, and tried again until the store takes it.
        case fact
    }
    let kind: Kind
    /// When it was submitted, by the registry's clock.
    let now: Int64
    /// Runs inside the batch's transaction; returns what is to be done once it is committed.
    let run: @Sendable (RoomWork) throws -> @Sendable () -> Void
    let fail: @Sendable (any Error) -> Void
}

/// What waits for the registry's queue, in the order of submission. Any thread.
final class Intake: Sendable {
    /// Calls that may wait.
    static let limit = 100_000

    private struct State {
        var operations: [Operation] = []
        /// Taken by the drain, not done yet.
        var backlog = 0
        var isScheduled = false
        var isStopped = false
    }
    private let state = Mutex(State())

    enum Answer { case accepted(schedule: Bool), full, stopped }

    /// The clock is read while the order is fixed, so that times never go back from one operation to the next.
    func submit(_ kind: Operation.Kind, clock: RoomClock, _ make: (Int64) -> Operation) -> Answer {
        self.state.withLock { state in
            if state.isStopped { return .stopped }
            if kind == .call, state.operations.count + state.backlog >= Self.limit { return .full }
            state.operations.append(make(clock.now()))
            defer { state.isScheduled = true }
            return .accepted(schedule: !state.isScheduled)
        }
    }

    /// All that waits. The drain stays scheduled.
    func take() -> [Operation] {
        self.state.withLock { state in
            let operations = state.operations
            state.operations = []
            state.backlog += operations.count
            return operations
        }
    }

    /// `count` of those taken are done. True: there is more to do now, and the drain runs again.
    func done(_ count: Int, isWaiting: Bool) -> Bool {
        self.state.withLock { state in
            state.backlog -= count
            state.isScheduled = !state.operations.isEmpty || (state.backlog > 0 && !isWaiting)
            return state.isScheduled
        }
    }

    /// True: the drain was not scheduled, and the caller schedules it.
    func schedule() -> Bool {
        self.state.withLock { state in
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
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
}
