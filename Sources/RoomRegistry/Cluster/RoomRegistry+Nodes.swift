package import Rooms
import Store
import Support
import Synchronization

/// What a registry does that shares its store with those of other nodes; nothing of it runs otherwise.
///
/// ```
/// a node's transaction ──> signals in the store ──> every node: tables in memory, cuts, events for its clients
///                                              the keeper: deadlines, webhooks, clearing up after lost nodes
/// ```
extension RoomRegistry {
    /// How long a change of another node may wait before it is seen here, among so many nodes. Each look is one short statement; up to 4,000 nodes
    /// make 4,000 a second together.
    static func pollMs(nodes: Int) -> Int { min(1_000, max(100, nodes / 4)) }
    /// The keeper looks so often for lost nodes, and for deadlines that others have set.
    private static let keepMs: Int64 = 1_000
    private static let signalsPerRead = 256
    private static let pushesPerRead = 10_000
    private static let eventsPerRead = 1_000

    /// The nodes that share the registry, and those that did. Empty if it is not shared.
    package nonisolated func nodes() async throws(RegistryError) -> [ClusterNode] {
        guard self.store.membership != nil else { return [] }
        return try await self.store.read { try $0.nodes() }
    }

    /// The other node that has this; nil if this one has it, or nobody.
    package nonisolated func otherNode(having thing: NodeThing) async throws(RegistryError) -> ClusterNode? {
        guard let own = self.store.membership?.number, thing != .node(own) else { return nil }
        return try await self.store.readSeparately { try $0.node(having: thing) }.flatMap { $0.number == own ? nil : $0 }
    }

    /// Tells the other nodes where they reach this one's API: `http://host:port`.
    package nonisolated func announceAddress(_ address: String?) async throws(RegistryError) {
        guard let node = self.store.membership?.number else { return }
        self.address.withLock { $0 = address }
        try await self.call(isChange: false) { try $0.store.setAddress(address, of: node) }
    }

    /// This node's number among those that share the registry; 0 if it is not shared.
    package nonisolated var nodeNumber: Int64 { self.store.membership?.number ?? 0 }

    /// This node's name among them; nil if the registry is not shared.
    package nonisolated var nodeName: String? { self.store.membership?.name }

    /// How this node keeps up with the others; nil if the registry is not shared. Needs no store.
    package nonisolated var nodeStatus: NodeStatus? {
        guard let lease = self.store.membership?.lease else { return nil }
        let polledAt = self.polledAt.load(ordering: .relaxed)
        return NodeStatus(
            isKeeper: lease.isKeeper, leaseMs: lease.leftMs, signalLagMs: max(0, self.clock.steadyMs - polledAt),
            clockAheadMs: self.clock.aheadOfWallMs ?? 0)
    }

    /// The nodes of pushes that rooms' streams name, by the pushes' numbers. Empty if the registry is not shared.
    package nonisolated func nodeNames(of rooms: [Room]) async throws(RegistryError) -> [Int64: String] {
        let sequences = self.isShared ? rooms.flatMap { $0.slots.compactMap(\.sequence) } : []
        guard !sequences.isEmpty else { return [:] }
        return try await self.store.readSeparately { try $0.nodeNames(of: sequences) }
    }

    /// The same for the room with this id, before a change of it.
    package nonisolated func nodeNames(ofRoom id: String) async throws(RegistryError) -> [Int64: String] {
        guard self.isShared else { return [:] }
        return try await self.store.readSeparately { try $0.nodeNames(ofRoom: id) }
    }

    /// Asks another node to end. It hears of that within a moment, if it runs.
    package nonisolated func order(_ drain: DrainOrder) async throws(RegistryError) {
        try await self.call { $0.notify(.drainAsked(drain)) }
    }

    /// Whether several nodes share the registry.
    package nonisolated var isShared: Bool { self.store.membership != nil }

    /// Whether this node does the work that is done once for all: deadlines, housekeeping, webhooks.
    package nonisolated var isKeeper: Bool { self.store.membership?.lease.isKeeper ?? true }

    /// Whether that work is another node's, as the database said last.
    package nonisolated var isKeptElsewhere: Bool { self.store.membership?.lease.isKeptElsewhere ?? false }

    func followOthers() {
        guard self.store.membership != nil else { return }
        self.polledAt.store(self.clock.steadyMs, ordering: .relaxed)
        self.follower = Task { [weak self] in
            var keepsAt: Int64 = 0
            while !Task.isCancelled {
                let nodes = self?.store.membership?.lease.nodeCount ?? 1
                try? await Task.sleep(for: .milliseconds(Self.pollMs(nodes: nodes)))
                guard let self else { return }
                keepsAt = await self.poll(keepsAt)
            }
        }
    }

    /// Returns when the keeper's work is due next, by the steady clock.
    private func poll(_ keepsAt: Int64) async -> Int64 {
        guard let membership = self.store.membership, self.isRunning else { return keepsAt }
        if let offset = membership.lease.clockMs { self.clock.follow(offsetMs: offset) }
        let began = self.clock.steadyMs
        do {
            if membership.lease.isFenced, self.clock.steadyMs >= self.rejoinsAt { try await self.rejoin() }
            if membership.lease.returns != self.returns { try await self.comeBack(membership.lease.returns) }
            try await self.readSignals()
            self.absence.wasRead(at: self.clock.steadyMs)
        } catch {
            self.noteNodeFailure(error)
            self.absence.readFailed(began: began)
        }
        guard self.clock.steadyMs >= keepsAt, self.isRunning, self.isKeeper else { return keepsAt }
        if membership.lease.mayClearUp { while await self.clearUpLostNode() {} }
        // The clock may have leapt since the timer was set.
        if let armed = self.armedFor, armed != .min, armed <= self.clock.now() { self.rearm() } else { self.armTimer() }
        return self.clock.steadyMs + Self.keepMs
    }

    /// Registers anew after this node's work was ended for it. Where another process has its name by now, what that one does is another's.
    private func rejoin() async throws {
        self.rejoinsAt = self.clock.steadyMs + Self.keepMs
        do {
            try self.store.rejoin()
        } catch let error as CommitForgotten {
            guard !self.isDisplaced else { throw error }
            self.isDisplaced = true
            try await self.readAnew(after: self.lastSignal)
        }
    }

    /// Another process had this node's membership, and has signalled under its number. Done again with the next look unless all of it is done.
    private func comeBack(_ returns: Int) async throws {
        guard try await self.readAnew(after: self.lastSignal) else { return }
        try await self.announceAddress(self.address.withLock { $0 })
        self.returns = returns
        self.isDisplaced = false
    }

    private func noteNodeFailure(_ error: any Error) { self.counted.withLock { $0.lastFailure = RegistryError(of: error).storeProblem } }

    // MARK: - Signals

    private func readSignals() async throws {
        while true {
            let last = self.lastSignal
            let readsEvents = self.settings.readsEvents
            let (page, isBehind) = try await self.store.readSeparately { store in
                let page = try store.signals(after: last, limit: Self.signalsPerRead, readsEvents: readsEvents)
                return (page, try store.isBehind(last, page))
            }
            if isBehind {
                // After an absence of minutes, since signals are not kept for longer; or the database has lost what it had.
                try await self.readAnew(after: last)
                continue
            }
            self.apply(page)
            // One in doubt holds up those behind it.
            guard page.signals.count >= Self.signalsPerRead, self.lastSignal > last else {
                self.polledAt.store(self.clock.steadyMs, ordering: .relaxed)
                return
            }
        }
    }

    /// Carries out what other nodes did before this signal of this node. What cannot be read now is read with the next look, and this node's own
    /// results wait behind it: clients get events in the order of their numbers.
    func catchUp(before signal: Int64) {
        while self.lastSignal < signal - 1 {
            let last = self.lastSignal
            guard
                let page = try? self.store.writerRead({
                    try $0.signals(after: last, before: signal, limit: Self.signalsPerRead, readsEvents: self.settings.readsEvents)
                }),
                page.signals.first?.id == last + 1
            else { return }
            self.apply(page)
        }
    }

    private func apply(_ page: SignalPage) {
        for entry in page.signals where entry.id > self.lastSignal {
            // Nobody knows yet that this one of its own was stored. It is carried out when that is known.
            if self.lost?.work.signal == entry.id { return }
            self.lastSignal = entry.id
            if self.unpublished.first?.signal == entry.id {
                self.apply(self.unpublished.removeFirst())
            } else {
                // Its own others were carried out with their commit, and are passed: these are other processes', perhaps under its number.
                self.apply(entry.signal.results(page.events))
            }
        }
    }

    /// Replaces the tables in memory by those of the store, publishes events that were missed, and cuts pushes that were ended for this node. False:
    /// it did not, since signals were carried out meanwhile.
    @discardableResult
    private func readAnew(after last: Int64) async throws -> Bool {
        guard let node = self.store.membership?.number else { return true }
        let now = self.clock.now()
        let since = now - Self.absenceMs
        let tables = try await self.store.read { try RefusalTables($0, now: now) }
        let ended = try await self.store.read { try $0.pushes(of: node, endedSince: since, limit: Self.pushesPerRead) }
        try await self.publishEvents(upTo: tables.lastEvent)
        guard self.lastSignal == last else { return false }
        self.lastSignal = tables.lastSignal
        // Their events are published already, and passed over; the tables are newer.
        while let done = self.unpublished.first, done.signal ?? 0 <= tables.lastSignal {
            self.unpublished.removeFirst()
            self.apply(done)
        }
        self.playTable.replace(with: tables.plays)
        self.kickTable.replace(with: tables.kicks, now: now)
        var work = WorkResults()
        for push in ended {
            work.add(.cut(push.path, sequence: PushSequence(push.sequence), push.end ?? .nodeLost, endsViewers: false))
        }
        self.apply(work)
        return true
    }

    private func publishEvents(upTo last: Int64) async throws {
        while self.lastEvent < last {
            let after = self.lastEvent
            let events = try await self.store.read { try $0.events(after: after, room: nil, limit: Self.eventsPerRead) }
            guard !events.isEmpty else { return }
            var work = WorkResults()
            for event in events where event.id > self.lastEvent { work.add(.eventElsewhere(event)) }
            self.apply(work)
        }
    }

    private static let absenceMs: Int64 = 24 * 3_600_000

    // MARK: - Lost nodes

    /// Fences a node whose lease has ended, and ends its pushes. Returns whether there may be more to do.
    private func clearUpLostNode() async -> Bool {
        guard let membership = self.store.membership else { return false }
        let own = membership.number
        guard let found = try? await self.store.read({ try $0.staleNode(besides: own) }) else { return false }
        let more = try? await self.result { work -> Bool in
            // It may have registered anew, be about to, or be cleared up by another; and the database may have failed while this waited.
            guard membership.lease.mayClearUp, try work.store.lockRegistrations() else { return false }
            guard let stale = try work.store.staleNode(besides: own), stale.number == found.number else { return true }
            if !stale.isFenced { try work.store.fence(stale.number) }
            if try work.endPushes(ofLost: stale.number, limit: Self.batch) { return true }
            try work.store.markGone(stale.number)
            return true
        }.get()
        return more ?? false
    }
}

extension RoomTransaction {
    /// Ends pushes of a node that has lost its connections. False when none is left.
    func endPushes(ofLost node: Int64, limit: Int) throws -> Bool {
        let pushes = try self.store.openPushes(of: node, limit: limit)
        for push in pushes {
            if var room = try self.store.room(push.roomID.rawValue) { try self.closeFloor(of: &room) }
            try self.pushEnded(push.sequence, .nodeLost, by: .server)
            // The node may only have lost the database, and be back.
            self.notify(.cut(push.path, sequence: PushSequence(push.sequence), .nodeLost, endsViewers: false))
        }
        return !pushes.isEmpty
    }

    /// Takes the stream over from other nodes, by the same rules as within one. Returns the pushes that end with the claim.
    func takeOver(_ path: StreamPath, for claim: PushClaim) throws -> [PushElsewhere] {
        guard let node = self.store.node else { return [] }
        let others = try self.store.pushesElsewhere(of: path, than: node, takeoversSince: self.now - PushClaim.takeoverWindowMs)
        let running = others.filter(\.isOfRunningNode)
        guard let one = running.first else { return others }
        switch claim.takeover {
        case .nobody: throw PushRefusal.nameTaken
        case .anybody: break
        case .sameIdentity:
            guard running.allSatisfy({ $0.isHeld(by: claim) }) else { throw PushRefusal.nameTaken }
        }
        guard one.takeovers < PushClaim.takeoverLimit else { throw PushRefusal.flapping }
        return others
    }
}

extension RoomRegistry {
    /// Whether the pushes of the stream on other nodes are all this claim's; nil when none runs there.
    package nonisolated func isHeldElsewhere(_ path: StreamPath, by claim: PushClaim) async throws(RegistryError) -> Bool? {
        try await self.store.read { store in
            guard let node = store.node else { return nil }
            let running = try store.pushesElsewhere(of: path, than: node, takeoversSince: .max).filter(\.isOfRunningNode)
            return running.isEmpty ? nil : running.allSatisfy { $0.isHeld(by: claim) }
        }
    }
}

extension StoreAccess {
    /// Tells the other nodes of a batch's results, within its transaction.
    func announce(_ done: inout WorkResults) throws {
        guard let node, let signal = NodeSignal(done) else { return }
        done.signal = try self.insert(signal, of: node)
    }
}
