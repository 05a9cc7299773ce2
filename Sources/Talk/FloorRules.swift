/// Decides who may speak: the state machine of a room's floor.
///
///            published / requested                      granted in turn, when the floor is free
///     none ────────────────────────▶ waiting ─────────────────────────────────────────────▶ holding
///      ▲  ▲                             │                                                      │
///      │  └──── unpublished, released, muted, kicked, revoked (withdrawn) ─┘                   │
///      └─────── unpublished, released, handed over, idle (released); the hold's end, a higher role, a moderator (revoked) ─┘
///
/// One per room, a plain value. No clock: `nowMs` is passed in, of any origin, and may step back, which ends nothing early. Each input
/// first applies the deadlines that have passed, and a freed floor is granted in the same call. First come, first served; higher roles
/// first.
///
/// Only participants that publish hold the floor or wait for it: one that is away, or only listens, must not keep others out.
///
/// In ptt a hold ends after ``FloorSettings/maxHoldMs``, and after ``FloorSettings/idleMs`` without packets. A participant that lost the floor
/// - for want of packets requests it with its next packet: a client without a control channel cannot do so otherwise;
/// - at the end of its time, or to a moderator, has to ask;
/// - to a higher role, another mode or a lower limit waits at the head of its role.
package struct FloorRules: Sendable {
    package private(set) var settings: FloorSettings
    /// In the order of their grants.
    package private(set) var holders: [FloorHolder] = []
    private var waiting: [Waiting] = []
    /// Participants that publish, and whether they ask with their next packet.
    private var publishers: [ParticipantID: Publisher] = [:]
    private var mutedOnes: Set<ParticipantID> = []
    private var nowMs: Int64 = .min
    private var events: [FloorEvent] = []

    private struct Waiting: Sendable, Equatable {
        var id: ParticipantID
        var role: TalkRole
    }

    private struct Publisher: Sendable, Equatable {
        var role: TalkRole
        /// The next packet counts as a request.
        var asksWithPacket = false
    }

    /// Limit of participants kept here. Callers admit far fewer, and keep far fewer mutes.
    private static let maxKnown = 1_024

    package init(settings: FloorSettings = FloorSettings()) { self.settings = settings }

    /// Applies `input` and returns the resulting events, in order.
    package mutating func apply(_ input: FloorInput, nowMs: Int64) -> [FloorEvent] {
        self.nowMs = max(self.nowMs, TalkFormat.bounded(nowMs))
        self.events = []
        self.expire()
        self.apply(input)
        self.grantTurns()
        defer { self.events = [] }
        return self.events
    }

    /// Excludes a stall up to now, in which nobody could be heard, from everybody's silence.
    package mutating func stoodStill(ms: Int64) {
        let ms = min(max(ms, 0), TalkFormat.bounded(.max))
        for index in self.holders.indices { self.holders[index].heardMs += ms }
    }

    /// Participants who may not speak. Callers that forget a mute must unmute here too.
    package var muted: Set<ParticipantID> { self.mutedOnes }

    /// Whether the participant may be heard.
    package func holds(_ id: ParticipantID) -> Bool { self.holders.contains { $0.id == id } }

    /// Waiting participants, the next one first.
    package var queue: [ParticipantID] { self.waiting.map(\.id) }

    package func status(of id: ParticipantID) -> FloorStatus {
        if let holder = self.holders.first(where: { $0.id == id }) { return .holding(sinceMs: holder.sinceMs) }
        if let index = self.waiting.firstIndex(where: { $0.id == id }) { return .waiting(position: index + 1) }
        return .none
    }

    /// The first instant, in milliseconds, at which ``FloorInput/tick`` has an effect. Nil when time alone changes nothing.
    package var nextDeadlineMs: Int64? { self.holders.compactMap { self.end(of: $0)?.atMs }.min() }

    // MARK: Time

    /// The instant at which time ends a hold, and the reason.
    private func end(of holder: FloorHolder) -> (atMs: Int64, reason: FloorReason)? {
        guard self.settings.mode == .ptt else { return nil }
        let (limit, idle) = (holder.countedMs + self.settings.maxHoldMs, holder.heardMs + self.settings.idleMs)
        return idle < limit ? (idle, .idle) : (limit, .maxHold)
    }

    private mutating func expire() {
        for holder in self.holders {
            guard let end = self.end(of: holder), self.nowMs >= end.atMs else { continue }
            self.withdraw(holder.id, end.reason == .idle ? .released : .revoked, end.reason)
            if end.reason == .idle { self.publishers[holder.id]?.asksWithPacket = true }
        }
        self.grantTurns()
    }

    // MARK: Inputs

    private mutating func apply(_ input: FloorInput) {
        switch input {
        case .published(let id, let role):
            guard self.publishers[id] != nil || self.publishers.count < Self.maxKnown else { return }
            self.publishers[id] = Publisher(role: role)
            self.request(id, role)
        case .unpublished(let id):
            self.publishers[id] = nil
            self.leave(id, .released, .unpublished)
        case .requested(let id, let role): self.request(id, role)
        case .released(let id):
            self.publishers[id]?.asksWithPacket = false
            self.leave(id, .released, .asked)
        case .spoke(let id): self.spoke(id)
        case .handedOver(let from, let to, let role): self.handOver(from, to, role)
        case .revoked(let id, let by):
            self.publishers[id]?.asksWithPacket = false
            self.leave(id, .revoked, .moderator, by: by)
        case .muted(let id, let by):
            guard self.mutedOnes.count < Self.maxKnown else { return }
            self.mutedOnes.insert(id)
            self.leave(id, .revoked, .muted, by: by)
        case .unmuted(let id):
            guard self.mutedOnes.remove(id) != nil, let publisher = self.publishers[id] else { return }
            self.request(id, publisher.role)
        case .kicked(let id, let by):
            self.publishers[id] = nil
            self.leave(id, .revoked, .kicked, by: by)
        case .settings(let settings):
            self.change(settings)
            // Shorter times may have passed already.
            self.expire()
        case .refused(let id, let reason, let by): self.notify(.denied, id, reason, by: by)
        case .closed: self.close()
        case .tick: break
        }
    }

    private mutating func request(_ id: ParticipantID, _ role: TalkRole) {
        self.publishers[id]?.asksWithPacket = false
        if let index = self.holders.firstIndex(where: { $0.id == id }) {
            self.holders[index].role = role
            return
        }
        guard !self.mutedOnes.contains(id) else { return self.notify(.denied, id, .muted) }
        guard self.publishers[id] != nil else { return self.notify(.denied, id, .notPublishing) }
        if let index = self.waiting.firstIndex(where: { $0.id == id }) {
            // A changed role changes the place in the queue; a repeated request does not.
            guard self.waiting[index].role != role else { return }
            self.waiting.remove(at: index)
        } else if self.holders.count < self.settings.capacity {
            return self.grant(id, role, .free)
        } else if self.waiting.count >= self.settings.maxQueue, !self.mayPreempt(role) {
            return self.notify(.denied, id, .queueFull)
        }
        guard !self.preempt(for: id, role) else { return }
        let index = self.waiting.firstIndex { $0.role < role } ?? self.waiting.count
        self.waiting.insert(Waiting(id: id, role: role), at: index)
        self.notify(.queued, id, .asked, position: index + 1)
    }

    private mutating func spoke(_ id: ParticipantID) {
        if let index = self.holders.firstIndex(where: { $0.id == id }) {
            self.holders[index].heardMs = max(self.holders[index].heardMs, self.nowMs)
        } else if let publisher = self.publishers[id], publisher.asksWithPacket {
            self.request(id, publisher.role)
        }
    }

    private mutating func handOver(_ from: ParticipantID, _ to: ParticipantID, _ role: TalkRole) {
        guard self.holds(from) else { return self.notify(.denied, to, .notHolding, by: from) }
        guard !self.mutedOnes.contains(to) else { return self.notify(.denied, to, .muted, by: from) }
        guard self.publishers[to] != nil else { return self.notify(.denied, to, .notPublishing, by: from) }
        guard !self.holds(to) else { return }
        self.withdraw(from, .released, .handedOver, by: to)
        self.waiting.removeAll { $0.id == to }
        self.grant(to, role, .handedOver, by: from)
    }

    private mutating func change(_ settings: FloorSettings) {
        let before = self.settings
        self.settings = settings
        if before.mode != settings.mode {
            // Times count from here on, because they did not count in open mode.
            for index in self.holders.indices { (self.holders[index].countedMs, self.holders[index].heardMs) = (self.nowMs, self.nowMs) }
        }
        // The highest roles stay, and among equal roles the earliest holders.
        while self.holders.count > settings.capacity, let last = self.holders.min(by: { $0.isBelow($1) }) {
            self.withdraw(last.id, .revoked, before.mode != settings.mode ? .modeChanged : .limit)
            self.putBack(last)
        }
        while self.waiting.count > settings.maxQueue, let last = self.waiting.popLast() { self.notify(.withdrawn, last.id, .queueFull) }
    }

    private mutating func close() {
        for waiting in self.waiting { self.notify(.withdrawn, waiting.id, .closed) }
        self.waiting = []
        for holder in self.holders { self.withdraw(holder.id, .revoked, .closed) }
        self.publishers = [:]
        self.mutedOnes = []
    }

    // MARK: Steps

    /// Ends the participant's hold, or removes it from the queue.
    private mutating func leave(_ id: ParticipantID, _ kind: FloorEvent.Kind, _ reason: FloorReason, by: ParticipantID? = nil) {
        if self.holds(id) {
            self.withdraw(id, kind, reason, by: by)
        } else if self.waiting.contains(where: { $0.id == id }) {
            self.waiting.removeAll { $0.id == id }
            self.notify(.withdrawn, id, reason, by: by)
        }
    }

    private mutating func withdraw(_ id: ParticipantID, _ kind: FloorEvent.Kind, _ reason: FloorReason, by: ParticipantID? = nil) {
        guard let index = self.holders.firstIndex(where: { $0.id == id }) else { return }
        let holder = self.holders.remove(at: index)
        self.notify(kind, id, reason, by: by, heldMs: self.nowMs - holder.sinceMs)
    }

    private mutating func grant(_ id: ParticipantID, _ role: TalkRole, _ reason: FloorReason, by: ParticipantID? = nil) {
        self.publishers[id]?.asksWithPacket = false
        self.holders.append(FloorHolder(id: id, role: role, sinceMs: self.nowMs, countedMs: self.nowMs, heardMs: self.nowMs))
        self.notify(.granted, id, reason, by: by)
    }

    private mutating func grantTurns() {
        while self.holders.count < self.settings.capacity, !self.waiting.isEmpty {
            let next = self.waiting.removeFirst()
            self.grant(next.id, next.role, .turn)
        }
    }

    private func mayPreempt(_ role: TalkRole) -> Bool {
        self.settings.preempts && self.settings.mode == .ptt && self.holders.contains { $0.role < role }
    }

    private mutating func preempt(for id: ParticipantID, _ role: TalkRole) -> Bool {
        guard self.mayPreempt(role), let holder = self.holders.first(where: { $0.role < role }) else { return false }
        self.withdraw(holder.id, .revoked, .preempted, by: id)
        self.grant(id, role, .preempted, by: holder.id)
        self.putBack(holder)
        return true
    }

    /// Puts a holder that lost the floor through no fault of its own at the head of its role in the queue.
    private mutating func putBack(_ holder: FloorHolder) {
        guard self.waiting.count < self.settings.maxQueue else { return self.notify(.denied, holder.id, .queueFull) }
        let index = self.waiting.firstIndex { $0.role <= holder.role } ?? self.waiting.count
        self.waiting.insert(Waiting(id: holder.id, role: holder.role), at: index)
        self.notify(.queued, holder.id, self.events.last?.reason ?? .asked, position: index + 1)
    }

    private mutating func notify(
        _ kind: FloorEvent.Kind, _ id: ParticipantID, _ reason: FloorReason, by: ParticipantID? = nil, heldMs: Int64? = nil,
        position: Int? = nil
    ) {
        self.events.append(
            FloorEvent(kind: kind, participant: id, reason: reason, by: by, atMs: self.nowMs, heldMs: heldMs, position: position))
    }
}

extension FloorHolder {
    /// Whether this holder loses the floor before `other`.
    fileprivate func isBelow(_ other: FloorHolder) -> Bool {
        (self.role.rawValue, -self.sinceMs) < (other.role.rawValue, -other.sinceMs)
    }
}
