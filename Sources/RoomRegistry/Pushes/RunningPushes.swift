import Rooms
import Support
import Synchronization

/// The pushes of this server in memory, so that a device that comes back while the store is away goes on with its push. Any thread.
///
/// A push may go on over several connections, which ``PushGrant/returns`` counts. Only the report of the newest one ends it:
///
/// ```
/// runs ── ended ── its end waits for the store ── stored: forgotten here
///  │ ↑                │
///  │ └── came back ───┘   the end is withdrawn: the store never has it
///  └── came back beside a connection that nobody has missed yet: the claim on the stream ends that one
/// ```
/// A push is here from its admission until its end is stored, or dropped by a full queue: as many as run, and as ends that wait.
final class RunningPushes: Sendable {
    /// An end that waits for the store.
    final class End: Sendable {
        let end: PushEnd
        /// By the steady clock, in milliseconds.
        let atMs: Int64
        private let withdrawn = Atomic<Bool>(false)

        init(_ end: PushEnd, atMs: Int64) {
            self.end = end
            self.atMs = atMs
        }

        /// The push goes on: nothing is to be stored.
        var isWithdrawn: Bool { self.withdrawn.load(ordering: .acquiring) }
        fileprivate func withdraw() { self.withdrawn.store(true, ordering: .releasing) }

        /// Whether the push's device may still come back to it.
        fileprivate func isWithinGrace(_ policy: RoomPolicy, nowMs: Int64) -> Bool {
            switch self.end {
            case .connectionLost, .mediaIdle, .clientStopped: nowMs - self.atMs < policy.waitMs(for: StateReason(after: self.end))
            default: false
            }
        }
    }

    /// What a report of a push's end means.
    enum Report {
        /// The push ends so.
        case ends(End)
        /// The push goes on, or has ended already.
        case outdated
        /// Not a push of this run, or forgotten.
        case unknown
    }

    /// A connection that the newest one is about to replace.
    private struct Former {
        let returns: Int
        /// Nil while it runs.
        var end: End?
    }

    private struct Push {
        var grant: PushGrant
        var request: PushRequest
        var end: End?
        /// Kept until the newest connection has claimed the stream: without a claim the push goes on, or ends, as it would have.
        var former: Former?
        var lastReturn = 0
        /// Ended by an operator, a rule or another node.
        var isCut = false
    }

    private struct State {
        var pushes: [PushSequence: Push] = [:]
        var sequences: [StreamPath: [PushSequence]] = [:]
    }

    private let state = Mutex(State())

    /// Pushes that run here, or whose end waits.
    var count: Int { self.state.withLock { $0.pushes.count } }

    func admitted(_ grant: PushGrant, _ request: PushRequest) {
        // Links have no identity, and come back by themselves.
        guard !request.claim.identity.isEmpty else { return }
        self.state.withLock { state in
            state.pushes[grant.sequence] = Push(grant: grant, request: request)
            state.sequences[request.path, default: []].append(grant.sequence)
        }
    }

    /// A connection of the push has claimed the stream: the former one will not go on. Returns its request if it is the newest.
    func claimed(_ sequence: PushSequence, returns: Int) -> PushRequest? {
        self.state.withLock { state in
            guard var push = state.pushes[sequence], let former = push.former, returns > former.returns else { return nil }
            let isNewest = returns == push.grant.returns
            push.former = isNewest ? nil : Former(returns: returns)
            state.pushes[sequence] = push
            return isNewest ? push.request : nil
        }
    }

    func ended(_ sequence: PushSequence, _ end: PushEnd, returns: Int, nowMs: Int64) -> Report {
        self.state.withLock { state in
            guard var push = state.pushes[sequence] else { return .unknown }
            defer { state.pushes[sequence] = push }
            guard returns == push.grant.returns else {
                if push.former?.returns == returns, push.former?.end == nil { push.former?.end = End(end, atMs: nowMs) }
                return .outdated
            }
            guard push.end == nil else { return .outdated }
            // By a claim of a later connection, which has ended since: the device may try again.
            let isByLater = end == .takenOver && push.lastReturn > returns
            var ended = End(isByLater ? .connectionLost : end, atMs: nowMs)
            if let former = push.former {
                push.former = nil
                guard let before = former.end else {
                    push.grant.returns = former.returns
                    return .outdated
                }
                // By a claim that the connection had no time to report.
                if before.end != .takenOver { ended = End(before.end, atMs: before.atMs) }
            }
            push.end = ended
            return .ends(ended)
        }
    }

    /// The push was ended for its device, which does not go on with it. `sequence`: nil for all of the stream.
    func cut(_ path: StreamPath, _ sequence: PushSequence?) {
        self.state.withLock { state in
            for cut in sequence.map({ [$0] }) ?? state.sequences[path] ?? [] { state.pushes[cut]?.isCut = true }
        }
    }

    /// The end is in the store, or never will be.
    func settled(_ sequence: PushSequence, _ end: End) {
        self.state.withLock { state in
            guard let push = state.pushes[sequence], push.end === end else { return }
            state.pushes[sequence] = nil
            let left = state.sequences[push.request.path]?.filter { $0 != sequence } ?? []
            state.sequences[push.request.path] = left.isEmpty ? nil : left
        }
    }

    /// The grant of the push that a device comes back to, whose end is withdrawn; nil if it may not go on. `isOpen`: whether memory knows nothing
    /// against it, and its end is in no transaction whose fate is unknown.
    func goOn(_ request: PushRequest, nowMs: Int64, isOpen: (PushGrant, End?) -> Bool) -> PushGrant? {
        self.state.withLock { state in
            let sequences = state.sequences[request.path] ?? []
            // One that the stream refused never had it.
            let newest = sequences.filter { state.pushes[$0]?.end?.end != .refused }.max()
            guard let sequence = newest, var push = state.pushes[sequence], !push.isCut, Self.isSame(push.request, request),
                isOpen(push.grant, push.end)
            else { return nil }
            if let end = push.end {
                guard end.isWithinGrace(push.grant.policy, nowMs: nowMs) else { return nil }
                end.withdraw()
            } else if request.claim.takeover == .nobody {
                return nil
            }
            push.former = push.former ?? Former(returns: push.grant.returns, end: push.end)
            push.end = nil
            push.lastReturn += 1
            push.grant.returns = push.lastReturn
            push.request = request
            state.pushes[sequence] = push
            return push.grant
        }
    }

    /// Whether it is the same device, with a credential that is not an older one.
    private static func isSame(_ former: PushRequest, _ request: PushRequest) -> Bool {
        former.claim.identity.exact == request.claim.identity.exact && former.claim.rank <= request.claim.rank
            && former.user?.exact == request.user?.exact && former.room?.exact == request.room?.exact
    }
}
