/// Who has the places for HTTP connections: so many in all, so many for one address, and a few that only callers of the API get. A value; no
/// clock, no channel.
///
/// A connection without a request under way is idle. Where there is no place left, one that has been idle for a second makes room: the
/// newcomer's own address gives up one of its own first, so that an address that opens connection after connection ends its own ones;
/// otherwise the connection that has been idle longest goes. Before that second a request may be on its way. Whoever finds nothing to take is
/// refused, and gets a moment to be told so, or to ask for the server's health. `nowMs` is any steady clock.
///
/// Refused connections are few at any time, whatever they do: those that have their answer and linger give way to the next one first, then
/// those of the newcomer's own address.
struct HTTPPlaceTable {
    typealias ID = UInt64

    enum Refusal: Equatable {
        case tooMany
        case tooManyFromAddress
    }

    struct Limits: Equatable {
        /// Connections that are served.
        var total: Int
        /// Of these, for addresses that may call the API.
        var reserved: Int
        /// Connections of one address, and requests that a trusted proxy forwards for it.
        var perAddress: Int
        /// Connections that wait to be told that they are too many, or were told and are not closed yet.
        var refused: Int
    }

    fileprivate struct Entry {
        var address: String?
        var isRefused: Bool
        /// The number of its idleness; nil while a request is under way.
        var idle: UInt64?
    }

    /// One without a place.
    private struct Refused {
        enum Stage { case waiting, working, answered }

        let id: ID
        let address: String?
        var stage = Stage.waiting
    }

    /// Idle for less, nobody loses a place.
    static let graceMs: Int64 = 1_000

    private let limits: Limits
    private var entries: [ID: Entry] = [:]
    private(set) var served = 0
    /// The oldest first.
    private var refused: [Refused] = []
    private var counts: [String: Int] = [:]
    private var order: UInt64 = 0
    private var idle = IdleOrder()
    private var idleOf: [String: IdleOrder] = [:]

    init(_ limits: Limits) { self.limits = limits }

    func has(_ id: ID) -> Bool { self.entries[id] != nil }

    /// Takes a place. `address`: nil for one that is not counted by address. `shed`: connections that lost theirs, to be closed.
    mutating func enter(_ id: ID, _ address: String?, mayUseReserve: Bool, nowMs: Int64) -> (refusal: Refusal?, shed: [ID]) {
        let before = nowMs - Self.graceMs
        var shed: [ID] = []
        if let address, self.counts[address, default: 0] >= self.limits.perAddress {
            guard let own = self.takeIdle(of: address, since: before) else { return self.refuse(id, address, .tooManyFromAddress) }
            shed.append(own)
        }
        if self.served >= self.limits.total - (mayUseReserve ? 0 : self.limits.reserved) {
            guard let other = address.flatMap({ self.takeIdle(of: $0, since: before) }) ?? self.takeIdle(since: before) else {
                let (refusal, refused) = self.refuse(id, address, .tooMany)
                return (refusal, shed + refused)
            }
            shed.append(other)
        }
        self.insert(id, address, nowMs)
        return (nil, shed)
    }

    private mutating func insert(_ id: ID, _ address: String?, _ nowMs: Int64) {
        self.entries[id] = Entry(address: address, isRefused: false, idle: nil)
        self.served += 1
        if let address { self.counts[address, default: 0] += 1 }
        self.rest(id, nowMs: nowMs)
    }

    private mutating func refuse(_ id: ID, _ address: String?, _ refusal: Refusal) -> (Refusal?, [ID]) {
        var shed: [ID] = []
        while self.refused.count >= self.limits.refused, let next = self.refusedToShed(for: address) {
            self.leave(next)
            shed.append(next)
        }
        self.entries[id] = Entry(address: nil, isRefused: true, idle: nil)
        self.refused.append(Refused(id: id, address: address))
        return (refusal, shed)
    }

    /// Which refused connection is closed for one more of this address.
    private func refusedToShed(for address: String?) -> ID? {
        func first(_ stage: Refused.Stage, ofAddress: Bool) -> ID? {
            self.refused.first { $0.stage == stage && (!ofAddress || $0.address == address) }?.id
        }
        return first(.answered, ofAddress: false) ?? first(.waiting, ofAddress: true) ?? first(.waiting, ofAddress: false)
            ?? first(.working, ofAddress: true) ?? first(.working, ofAddress: false)
    }

    private mutating func setStage(_ stage: Refused.Stage, of id: ID) {
        guard let index = self.refused.firstIndex(where: { $0.id == id }) else { return }
        self.refused[index].stage = stage
    }

    /// A request is under way. One that lost its place while the request was coming gets it back: there is one too many for a while.
    mutating func work(_ id: ID, _ address: String?, isRefused: Bool) {
        guard !isRefused else { return self.setStage(.working, of: id) }
        if self.entries[id] == nil { self.insert(id, address, 0) }
        self.entries[id]?.idle = nil
    }

    /// All requests are answered.
    mutating func rest(_ id: ID, nowMs: Int64) {
        guard let entry = self.entries[id] else { return }
        guard !entry.isRefused else { return self.setStage(.answered, of: id) }
        self.order += 1
        self.entries[id]?.idle = self.order
        self.idle.append(id, self.order, nowMs, live: self.served, of: self.entries)
        guard let address = entry.address else { return }
        self.idleOf[address, default: IdleOrder()].append(id, self.order, nowMs, live: self.counts[address, default: 0], of: self.entries)
    }

    mutating func leave(_ id: ID) {
        guard let entry = self.entries.removeValue(forKey: id) else { return }
        if entry.isRefused {
            self.refused.removeAll { $0.id == id }
        } else {
            self.served -= 1
            if let address = entry.address { self.release(address) }
        }
    }

    // MARK: Requests that a trusted proxy forwards

    /// False: the address has as many as it may.
    mutating func enterRequest(of address: String) -> Bool {
        guard self.counts[address, default: 0] < self.limits.perAddress else { return false }
        self.counts[address, default: 0] += 1
        return true
    }

    mutating func release(_ address: String) {
        let count = self.counts[address, default: 1] - 1
        self.counts[address] = count > 0 ? count : nil
        if count <= 0 { self.idleOf[address] = nil }
    }

    // MARK: Idle ones

    private mutating func takeIdle(since ms: Int64) -> ID? {
        let first = self.idle.takeFirst(of: self.entries, since: ms)
        if let first { self.leave(first) }
        return first
    }

    private mutating func takeIdle(of address: String, since ms: Int64) -> ID? {
        let first = self.idleOf[address]?.takeFirst(of: self.entries, since: ms)
        if let first { self.leave(first) }
        return first
    }
}

/// Connections in the order in which they became idle. What is not idle any more stays until it is met or there is too much of it. A value.
private struct IdleOrder {
    private var list: [(id: HTTPPlaceTable.ID, order: UInt64, sinceMs: Int64)] = []
    private var head = 0

    /// `live`: how many there can be.
    mutating func append(
        _ id: HTTPPlaceTable.ID, _ order: UInt64, _ sinceMs: Int64, live: Int, of entries: [HTTPPlaceTable.ID: HTTPPlaceTable.Entry]
    ) {
        if self.list.count > 2 * live + 64 {
            self.list = self.list[self.head...].filter { entries[$0.id]?.idle == $0.order }
            self.head = 0
        }
        self.list.append((id, order, sinceMs))
    }

    /// The one that has been idle longest, if it has been so since then.
    mutating func takeFirst(of entries: [HTTPPlaceTable.ID: HTTPPlaceTable.Entry], since ms: Int64) -> HTTPPlaceTable.ID? {
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
