package import NIOCore
package import Support
import Synchronization

/// Tells a connection that its place went to another one. Fired down its pipeline.
package struct LostPlace: Sendable {
    package let reason: CloseReason
}

/// The places of connections, in total and by host (``PlaceTable``), and the count of publishers. Any thread.
package final class ConnectionAdmission: Sendable {
    package typealias ID = PlaceTable.ID

    private struct State {
        var table: PlaceTable
        /// Connections whose place may go to others, until they leave.
        var channels: [ID: any Channel] = [:]
        /// Numbers the steps of all connections: one that has just made a step is shed last.
        var steps: Int64 = 0
        /// The highest count since ``popHighest()``.
        var highest = 0
        var publishers = 0
        /// Hosts whose pushes were accepted, the newest in `known`, those before them in `older`.
        var known: Set<HostKey> = []
        var older: Set<HostKey> = []

        mutating func nextStep() -> PlaceTable.Use {
            self.steps += 1
            return .loose(rank: self.steps)
        }
    }

    private let state: Mutex<State>
    /// Hosts in each of the two sets.
    private static let mostKnown = 4_096

    package init(_ limits: PlaceTable.Limits) {
        self.state = Mutex(State(table: PlaceTable(limits, choice: .busiest)))
    }

    /// Connections beyond a lower limit stay.
    package func set(_ limits: PlaceTable.Limits) { self.state.withLock { $0.table.set(limits) } }

    // MARK: Places

    /// Gives a new connection a place, another's if need be. Returns nil if admitted; pair with `leave`. `mayPush`: its host needs no credential.
    package func enter(_ id: ID, _ host: HostKey, mayPush: Bool, _ channel: any Channel) -> CloseReason? {
        let (refusal, shed) = self.state.withLock { state in
            let isKnown = mayPush || state.known.contains(host) || state.older.contains(host)
            let use = state.nextStep()
            let answer = Self.enter(&state, id, host, as: use, isKnown: isKnown)
            if answer.refusal == nil { state.channels[id] = channel }
            return answer
        }
        self.tell(shed)
        return refusal
    }

    /// Gives a player over HTTP a place, which it holds until `leave`. Returns nil if admitted.
    package func enterPlay(_ id: ID, _ host: HostKey) -> CloseReason? {
        let (refusal, shed) = self.state.withLock { Self.enter(&$0, id, host, as: .play, isKnown: false) }
        self.tell(shed)
        return refusal
    }

    /// A connection whose place went to a newcomer.
    private struct Lost {
        let id: ID
        let reason: CloseReason
        let channel: any Channel
    }

    private static func enter(
        _ state: inout State, _ id: ID, _ host: HostKey, as use: PlaceTable.Use, isKnown: Bool
    ) -> (refusal: CloseReason?, shed: [Lost]) {
        let (refusal, shed) = state.table.enter(id, host, as: use, isKnown: isKnown)
        state.highest = max(state.highest, state.table.count)
        var lost: [Lost] = []
        for one in shed {
            guard let channel = state.channels[one.id] else { continue }
            lost.append(Lost(id: one.id, reason: one.limit.reason, channel: channel))
        }
        return (refusal?.reason, lost)
    }

    private func tell(_ shed: [Lost]) {
        for lost in shed {
            lost.channel.eventLoop.execute {
                // A publish or play may have arrived meanwhile and taken the place back.
                guard !self.state.withLock({ $0.table.has(lost.id) }) else { return }
                lost.channel.pipeline.fireUserInboundEventTriggered(LostPlace(reason: lost.reason))
            }
        }
    }

    /// Records that a connection got further towards its publish or play.
    package func stepped(_ id: ID) {
        self.state.withLock { state in
            guard case .loose(let rank) = state.nextStep() else { return }
            state.table.rank(id, rank)
        }
    }

    /// Lets a connection play; returns false if only pushes may have more places.
    package func play(_ id: ID, _ host: HostKey) -> Bool { self.state.withLock { $0.table.play(id, host) } }

    /// Records that a connection pushes, or plays without a push.
    package func holds(_ id: ID, _ host: HostKey, pushes: Bool) {
        self.state.withLock { $0.table.set(id, host, pushes ? .push : .play) }
    }

    /// Records that a connection neither pushes nor plays any more.
    package func rests(_ id: ID, _ host: HostKey) {
        self.state.withLock { state in
            let use = state.nextStep()
            state.table.set(id, host, use)
        }
    }

    package func leave(_ id: ID) {
        self.state.withLock { state in
            state.table.leave(id)
            state.channels[id] = nil
        }
    }

    // MARK: Hosts that push

    /// Records that a push of this host was accepted, or has ended.
    package func pushed(_ host: HostKey) {
        self.state.withLock { state in
            state.table.know(host)
            guard !state.known.contains(host) else { return }
            if state.known.count >= Self.mostKnown {
                state.older = state.known
                state.known = []
            }
            state.known.insert(host)
        }
    }

    /// Whether a push of this host was accepted lately.
    package func hasPushed(_ host: HostKey) -> Bool { self.state.withLock { $0.known.contains(host) || $0.older.contains(host) } }

    // MARK: Counts

    /// Connections and publishers admitted now.
    package var current: (connections: Int, publishers: Int) { self.state.withLock { ($0.table.count, $0.publishers) } }

    /// The most connections at a time since the last call: a burst may be over before anybody looks.
    package func popHighest() -> Int {
        self.state.withLock { state in
            defer { state.highest = state.table.count }
            return state.highest
        }
    }

    package func enterPublisher(limit: Int) -> Bool {
        self.state.withLock { state in
            guard state.publishers < limit else { return false }
            state.publishers += 1
            return true
        }
    }

    package func leavePublisher() { self.state.withLock { $0.publishers -= 1 } }
}

extension PlaceTable.Refusal {
    fileprivate var reason: CloseReason {
        switch self {
        case .tooMany: .tooManyConnections
        case .tooManyFromHost: .tooManyFromAddress
        }
    }
}
