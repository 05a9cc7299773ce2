import Support

/// Allots HTTP connections their places: a total, a limit per address, and a reserve for API callers. A value; no clock, no channel.
///
/// A connection without a request under way is idle. If no place is left, a connection that has been idle for a second gives up its own.
/// Before that second, a request may be on its way. The newcomer's own address goes first, so an address that opens connection after
/// connection closes its own; otherwise the longest idle connection goes. A newcomer that finds no idle connection is refused; it has a
/// moment to receive that answer, or to ask for the server's health. `nowMs` is any steady clock.
///
/// Refused connections are always few. A new one replaces first those that have their answer and linger, then those of its own address.
struct HTTPPlaceTable {
    typealias ID = UInt64

    enum Refusal: Equatable {
        case tooMany
        case tooManyFromAddress
    }

    struct Limits: Equatable {
        /// Connections served at a time.
        var total: Int
        /// Places of the total kept for addresses that may call the API.
        var reserved: Int
        /// Connections of one address, plus requests that a trusted proxy forwards for it.
        var perAddress: Int
        /// Refused connections that wait for their answer, or have it and are not closed yet.
        var refused: Int
    }

    fileprivate struct Entry {
        var host: HostKey?
        var isRefused: Bool
        /// Sequence number in the idle order; nil while a request is under way.
        var idle: UInt64?
    }

    /// A connection without a place.
    private struct Refused {
        enum Stage { case waiting, working, answered }

        let id: ID
        let host: HostKey?
        var stage = Stage.waiting
    }

    /// A connection idle for less than this keeps its place.
    static let graceMs: Int64 = 1_000

    private var limits: Limits
    private var entries: [ID: Entry] = [:]
    private(set) var served = 0
    /// Oldest first.
    private var refused: [Refused] = []
    private var counts: [HostKey: Int] = [:]
    private var order: UInt64 = 0
    private var idle = IdleOrder()
    private var idleOf: [HostKey: IdleOrder] = [:]

    init(_ limits: Limits) { self.limits = limits }

    /// Connections beyond a lower limit stay.
    mutating func set(_ limits: Limits) { self.limits = limits }

    func has(_ id: ID) -> Bool { self.entries[id] != nil }

    /// Takes a place. `host`: nil if the connection is not counted by address. `shed`: connections that lost their place and must be closed.
    mutating func enter(_ id: ID, _ host: HostKey?, mayUseReserve: Bool, nowMs: Int64) -> (refusal: Refusal?, shed: [ID]) {
        let before = nowMs - Self.graceMs
        var shed: [ID] = []
        if let host, self.counts[host, default: 0] >= self.limits.perAddress {
            guard let own = self.popIdle(of: host, since: before) else { return self.refuse(id, host, .tooManyFromAddress) }
            shed.append(own)
        }
        if self.served >= self.limits.total - (mayUseReserve ? 0 : self.limits.reserved) {
            guard let other = host.flatMap({ self.popIdle(of: $0, since: before) }) ?? self.popIdle(since: before) else {
                let (refusal, refused) = self.refuse(id, host, .tooMany)
                return (refusal, shed + refused)
            }
            shed.append(other)
        }
        self.insert(id, host, nowMs)
        return (nil, shed)
    }

    private mutating func insert(_ id: ID, _ host: HostKey?, _ nowMs: Int64) {
        self.entries[id] = Entry(host: host, isRefused: false, idle: nil)
        self.served += 1
        if let host { self.counts[host, default: 0] += 1 }
        self.rest(id, nowMs: nowMs)
    }

    private mutating func refuse(_ id: ID, _ host: HostKey?, _ refusal: Refusal) -> (Refusal?, [ID]) {
        var shed: [ID] = []
        while self.refused.count >= self.limits.refused, let next = self.refusedToShed(for: host) {
            self.leave(next)
            shed.append(next)
        }
        self.entries[id] = Entry(host: nil, isRefused: true, idle: nil)
        self.refused.append(Refused(id: id, host: host))
        return (refusal, shed)
    }

    /// The refused connection to close in favor of one more from this address.
    private func refusedToShed(for host: HostKey?) -> ID? {
        func first(_ stage: Refused.Stage, ofAddress: Bool) -> ID? {
            self.refused.first { $0.stage == stage && (!ofAddress || $0.host == host) }?.id
        }
        return first(.answered, ofAddress: false) ?? first(.waiting, ofAddress: true) ?? first(.waiting, ofAddress: false)
            ?? first(.working, ofAddress: true) ?? first(.working, ofAddress: false)
    }

    private mutating func setStage(_ stage: Refused.Stage, of id: ID) {
        guard let index = self.refused.firstIndex(where: { $0.id == id }) else { return }
        self.refused[index].stage = stage
    }

    /// Marks a request as under way. A connection that lost its place while the request was arriving gets it back, exceeding the total for
    /// a while.
    mutating func work(_ id: ID, _ host: HostKey?, isRefused: Bool) {
        guard !isRefused else { return self.setStage(.working, of: id) }
        if self.entries[id] == nil { self.insert(id, host, 0) }
        self.entries[id]?.idle = nil
    }

    /// Marks the connection as idle: all requests are answered.
    mutating func rest(_ id: ID, nowMs: Int64) {
        guard let entry = self.entries[id] else { return }
        guard !entry.isRefused else { return self.setStage(.answered, of: id) }
        self.order += 1
        self.entries[id]?.idle = self.order
        self.idle.append(id, self.order, nowMs, live: self.served, of: self.entries)
        guard let host = entry.host else { return }
        self.idleOf[host, default: IdleOrder()].append(id, self.order, nowMs, live: self.counts[host, default: 0], of: self.entries)
    }

    mutating func leave(_ id: ID) {
        guard let entry = self.entries.removeValue(forKey: id) else { return }
        if entry.isRefused {
            self.refused.removeAll { $0.id == id }
        } else {
            self.served -= 1
            if let host = entry.host { self.release(host) }
        }
    }

    // MARK: Requests that a trusted proxy forwards

    /// Counts a request; returns false if the address is at its limit.
    mutating func enterRequest(of host: HostKey) -> Bool {
        guard self.counts[host, default: 0] < self.limits.perAddress else { return false }
        self.counts[host, default: 0] += 1
        return true
    }

    mutating func release(_ host: HostKey) {
        let count = self.counts[host, default: 1] - 1
        self.counts[host] = count > 0 ? count : nil
        if count <= 0 { self.idleOf[host] = nil }
    }

    // MARK: Idle connections

    private mutating func popIdle(since ms: Int64) -> ID? {
        let first = self.idle.popFirst(of: self.entries, since: ms)
        if let first { self.leave(first) }
        return first
    }

    private mutating func popIdle(of host: HostKey, since ms: Int64) -> ID? {
        let first = self.idleOf[host]?.popFirst(of: self.entries, since: ms)
        if let first { self.leave(first) }
        return first
    }
}

/// Connections in the order in which they became idle. Stale entries stay until they are reached or compacted away. A value.
private struct IdleOrder {
    private var list: [(id: HTTPPlaceTable.ID, order: UInt64, sinceMs: Int64)] = []
    private var head = 0

    /// `live`: the most entries that can be current.
    mutating func append(
        _ id: HTTPPlaceTable.ID, _ order: UInt64, _ sinceMs: Int64, live: Int, of entries: [HTTPPlaceTable.ID: HTTPPlaceTable.Entry]
    ) {
        if self.list.count > 2 * live + 64 {
            self.list = self.list[self.head...].filter { entries[$0.id]?.idle == $0.order }
            self.head = 0
        }
        self.list.append((id, order, sinceMs))
    }

    /// Removes and returns the longest idle connection, if idle since `ms` or before.
    mutating func popFirst(of entries: [HTTPPlaceTable.ID: HTTPPlaceTable.Entry], since ms: Int64) -> HTTPPlaceTable.ID? {
        while self.head < self.list.count {
            let first = self.list[self.head]
            if entries[first.id]?.idle == first.order {
                guard first.sinceMs <= ms else { return nil }
                self.head += 1
                return first.id
            }
            self.head += 1
        }
        self.list.removeAll()
        self.head = 0
        return nil
    }
}
