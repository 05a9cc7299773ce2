import Rooms

extension Machine {
    package mutating func apply(_ input: Gathering.Input, nowMs: Int64) throws(GatheringRefusal) -> [Gathering.Effect] {
        guard !self.gathering.hasEnded else { return try self.gathering.apply(input, nowMs: nowMs) }
        // Applied to a copy: a refusal half-way changes nothing.
        var next = self
        var effects = next.interruption()
        effects += try next.handle(input, nowMs)
        next.noteReadiness(nowMs)
        if next.gathering.members.count < self.gathering.members.count {
            let gathering = next.gathering
            next.rates = next.rates.filter { gathering.member($0.key) != nil }
        }
        self = next
        return effects
    }

    private mutating func handle(_ input: Gathering.Input, _ nowMs: Int64) throws(GatheringRefusal) -> [Gathering.Effect] {
        switch input {
        case .connect(let id, _, let role, let connection):
            try self.check(role, of: id)
            let effects = try self.gathering.apply(input, nowMs: nowMs)
            guard let turn = self.turn, turn.phase == .offered, turn.player == id else { return effects }
            // Repeats the invitation, which went to the former connection or to none.
            return effects + [self.command(.invite(uuid: turn.uuid), to: [connection])]
        case .enter(let id, _, let role):
            try self.check(role, of: id)
            return try self.gathering.apply(input, nowMs: nowMs)
        case .disconnect(let connection):
            let leaves = self.limits.gathering.offlineMs <= 0 ? self.gathering.member(at: connection) : nil
            return self.departure(of: leaves?.id, nowMs) + (try self.gathering.apply(input, nowMs: nowMs))
        case .leave(let id), .kick(let id): return self.departure(of: id, nowMs) + (try self.gathering.apply(input, nowMs: nowMs))
        case .command(let from, let to, let content): return try self.command(from, to, content, nowMs)
        case .offer(let from, _):
            guard let member = self.gathering.member(from) else { throw .notMember }
            guard member.role == Self.player else { throw .notYours }
            return try self.gathering.apply(input, nowMs: nowMs)
        case .poll(let from, _): return try self.dequeue(input, from: from, nowMs)
        case .remove: return try self.dequeue(input, from: nil, nowMs)
        case .tick: return try self.tick(nowMs)
        case .end:
            let ending = self.turn == nil ? [] : self.conclude(.ended)
            return ending + (try self.gathering.apply(input, nowMs: nowMs))
        case .pause: return try self.gathering.apply(input, nowMs: nowMs) + self.shown(nowMs)
        case .say, .direct, .ask, .answer: return try self.gathering.apply(input, nowMs: nowMs)
        }
    }

    /// Only the device is host, by its id, and roles do not change: everybody in the queue is a player.
    private func check(_ role: String, of id: String) throws(GatheringRefusal) {
        guard (role == Gathering.host) == (id == self.info.device), self.gathering.member(id).map({ $0.role == role }) ?? true else {
            throw .dialect(code: "role", message: "\"\(id.prefix(80))\" has another role here.")
        }
    }

    /// Ends a game that a restart has interrupted. A player who was only invited keeps the place and is invited again.
    private mutating func interruption() -> [Gathering.Effect] {
        guard let turn = self.turn, turn.isInterrupted else { return [] }
        return self.conclude(.serverRestart)
    }

    /// Updates the game for a member that is about to leave.
    private mutating func departure(of id: String?, _ nowMs: Int64) -> [Gathering.Effect] {
        guard let turn = self.turn, let id, self.gathering.member(id) != nil else { return [] }
        if id == self.info.device { return self.conclude(.deviceGone) }
        guard id == turn.player else { return [] }
        return turn.phase == .offered ? self.decline(.turnDeclined) : self.abandon(nowMs)
    }

    /// Applies a poll or an operator's removal, and its effect on the game.
    private mutating func dequeue(_ input: Gathering.Input, from id: String?, _ nowMs: Int64) throws(GatheringRefusal) -> [Gathering.Effect]
    {
        let effects = try self.gathering.apply(input, nowMs: nowMs)
        guard let turn = self.turn, !turn.isLeft, !self.gathering.queue.contains(where: { $0.key == turn.player }) else { return effects }
        if turn.phase == .offered { return effects + self.decline(.turnDeclined) }
        // A device that gives up its player's place considers the game over.
        return effects + (id == self.info.device ? self.conclude(.noResult) : self.abandon(nowMs))
    }

    private mutating func tick(_ nowMs: Int64) throws(GatheringRefusal) -> [Gathering.Effect] {
        var effects: [Gathering.Effect] = []
        if let turn = self.turn, turn.deadlineMs <= nowMs { effects += self.timeOut(turn, nowMs) }
        for member in self.gathering.members {
            guard let leaves = self.gathering.leavesMs(member), leaves <= nowMs else { continue }
            effects += self.departure(of: member.id, nowMs)
        }
        effects += try self.gathering.apply(.tick, nowMs: nowMs)
        self.noteReadiness(nowMs)
        if self.info.mode == .server, let since = self.readySinceMs, since + self.limits.idleMs <= nowMs,
            let head = self.gathering.queue.first
        {
            self.turns &+= 1
            effects += self.offer(to: head.key, uuid: self.uuid(of: self.turns), nowMs)
        }
        return effects
    }

    private mutating func timeOut(_ turn: Turn, _ nowMs: Int64) -> [Gathering.Effect] {
        switch turn.phase {
        case .offered: return self.decline(.turnExpired)
        case .playing, .settling:
            guard self.device?.connection != nil else { return self.conclude(.deviceGone) }
            if turn.phase == .playing { return self.drop(byClock: true, nowMs) }
            return self.conclude(turn.isLeft ? .playerLeft : .noResult)
        }
    }

    /// Notes since when there is somebody to invite.
    mutating func noteReadiness(_ nowMs: Int64) {
        guard self.turn == nil, self.mayInvite else { return self.readySinceMs = nil }
        if self.readySinceMs == nil, self.info.mode == .server { self.readySinceMs = nowMs }
    }

    var mayInvite: Bool {
        self.info.isOpen && !self.gathering.isPaused && !self.gathering.queue.isEmpty && self.device?.connection != nil
    }
}
