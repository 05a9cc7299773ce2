import Talk

/// A participant with a valid name.
func participant(_ name: String) -> ParticipantID {
    do { return try ParticipantID(name) } catch { preconditionFailure("\(name): \(error)") }
}

extension FloorEvent {
    /// The event in one line, such as "granted ann free" or "released ann asked 500".
    var line: String {
        var words = ["\(self.kind)", "\(self.participant)", "\(self.reason)"]
        if let by = self.by { words.append("by \(by)") }
        if let held = self.heldMs { words.append("\(held)") }
        if let position = self.position { words.append("#\(position)") }
        return words.joined(separator: " ")
    }
}

/// A floor, a clock, and the floor's invariants.
struct FloorLife {
    var rules: FloorRules
    var nowMs: Int64 = 0
    /// The start of each grant that has not ended.
    var open: [ParticipantID: Int64] = [:]
    var waiting: Set<ParticipantID> = []
    var trail: [FloorEvent] = []
    var seen: Set<String> = []

    private var publishing: Set<ParticipantID> = []

    init(_ settings: FloorSettings = FloorSettings(mode: .ptt)) { self.rules = FloorRules(settings: settings) }

    /// Applies an input at ``nowMs`` and returns the broken invariant, if any.
    mutating func apply(_ input: FloorInput) -> String? {
        let deadline = self.rules.nextDeadlineMs
        // A tick acts at the deadline, but not before it.
        var early = self.rules
        if let deadline {
            if deadline > self.nowMs, !early.apply(.tick, nowMs: deadline - 1).isEmpty { return "a tick acts before its deadline" }
            if early.apply(.tick, nowMs: deadline).isEmpty { return "a tick does nothing at its deadline" }
        } else if !early.apply(.tick, nowMs: self.nowMs + 10_000_000).isEmpty {
            return "a tick acts without a deadline"
        }
        let events = self.rules.apply(input, nowMs: self.nowMs)
        switch input {
        case .published(let id, _): self.publishing.insert(id)
        case .unpublished(let id), .kicked(let id, _): self.publishing.remove(id)
        case .closed: self.publishing = []
        default: break
        }
        for event in events {
            if let wrong = self.follow(event) { return "\(event.line): \(wrong)" }
        }
        self.trail += events
        return self.wrong
    }

    private mutating func follow(_ event: FloorEvent) -> String? {
        let id = event.participant
        self.seen.insert("\(event.kind) \(event.reason)")
        guard event.atMs == self.nowMs else { return "not now" }
        guard ((event.kind == .released || event.kind == .revoked) == (event.heldMs != nil)) else { return "how long it was held" }
        switch event.kind {
        case .granted:
            guard self.open.updateValue(event.atMs, forKey: id) == nil else { return "granted twice" }
            self.waiting.remove(id)
        case .released, .revoked:
            guard let since = self.open.removeValue(forKey: id) else { return "ended without a grant" }
            guard event.heldMs == event.atMs - since else { return "not held for so long" }
        case .queued: self.waiting.insert(id)
        case .withdrawn: guard self.waiting.remove(id) != nil else { return "did not wait" }
        case .denied: break
        }
        return nil
    }

    private var wrong: String? {
        let (rules, settings) = (self.rules, self.rules.settings)
        if Set(rules.holders.map(\.id)) != Set(self.open.keys) { return "the trail tells other holders" }
        if Set(rules.queue) != self.waiting { return "the trail tells of others who wait" }
        if rules.holders.count > settings.capacity { return "too many hold the floor" }
        if Set(rules.queue).count != rules.queue.count || Set(rules.holders.map(\.id)).count != rules.holders.count {
            return "one is there twice"
        }
        if !rules.queue.isEmpty, rules.holders.count < settings.capacity { return "somebody waits for a free floor" }
        if rules.queue.count > settings.maxQueue { return "the queue is too long" }
        if !Set(rules.queue).isDisjoint(with: rules.holders.map(\.id)) { return "a holder waits" }
        if let deadline = rules.nextDeadlineMs, deadline <= self.nowMs { return "a deadline has passed" }
        if !self.publishing.isSuperset(of: rules.holders.map(\.id) + rules.queue) { return "one without a voice holds the floor or waits" }
        if settings.mode == .open, rules.nextDeadlineMs != nil { return "in open mode time counts" }
        if settings.mode == .ptt, rules.nextDeadlineMs == nil, !rules.holders.isEmpty { return "a hold without an end" }
        for id in rules.holders.map(\.id) where rules.status(of: id) != .holding(sinceMs: self.open[id] ?? -1) || !rules.holds(id) {
            return "a holder that does not hold"
        }
        for (index, id) in rules.queue.enumerated() where rules.status(of: id) != .waiting(position: index + 1) { return "another place" }
        return nil
    }
}
