package import Support

/// Allots places to connections and players: a total, a limit for each host, and a reserve for pushes. A value; no clock, no channel.
///
/// A place is *loose* until its holder publishes or plays, and *held* while it does. Held places are never taken away. When a newcomer needs a
/// place, a loose one is shed:
///
/// ```
/// its host is at its limit   its host's own first loose one
/// all places are taken       the first loose one of the host that has most of them; known hosts, which have pushed before, come last
/// ```
/// So a host that opens connection after connection sheds its own, and hundreds of hosts with a few silent connections each cannot keep out one that
/// comes to publish. Plays cannot take the last places, the reserve: there is always a loose place to shed, until pushes hold them all.
///
/// Each loose place has a rank, and the lowest is shed first: a connection's turn of progress, or the time of a player's last request.
package struct PlaceTable: Sendable {
    package typealias ID = UInt64

    package enum Refusal: Equatable, Sendable { case tooMany, tooManyFromHost }

    /// A place that a newcomer took.
    package struct Shed: Equatable, Sendable {
        package let id: ID
        /// The limit that the newcomer met.
        package let limit: Refusal
    }

    package enum Use: Equatable, Sendable {
        case loose(rank: Int64)
        case play
        case push

        fileprivate var rank: Int64? { if case .loose(let rank) = self { rank } else { nil } }
    }

    package struct Limits: Equatable, Sendable {
        package var total: Int
        package var perHost: Int
        /// Places besides those of running pushes that plays cannot take.
        package var reserved: Int

        package init(total: Int, perHost: Int, reserved: Int = 0) {
            self.total = total
            self.perHost = perHost
            self.reserved = reserved
        }
    }

    /// The host whose loose place is shed when all places are taken.
    package enum Choice: Sendable {
        /// The one with most loose places.
        case busiest
        /// The one with the lowest rank.
        case lowest
    }

    private struct Entry {
        let host: HostKey
        var use: Use
    }

    private struct Host {
        var count = 0
        /// Has pushed lately, or may push without a credential.
        var isKnown = false
        var loose = IndexedHeap<ID, Int64>()
    }

    private struct Priority: Comparable {
        let isKnown: Bool
        let loose: Int
        let rank: Int64

        static func < (left: Self, right: Self) -> Bool {
            if left.isKnown != right.isKnown { return right.isKnown }
            if left.loose != right.loose { return left.loose > right.loose }
            return left.rank < right.rank
        }
    }

    private var limits: Limits
    private let choice: Choice
    private var entries: [ID: Entry] = [:]
    private var hosts: [HostKey: Host] = [:]
    /// Hosts with loose places.
    private var order = IndexedHeap<HostKey, Priority>()
    private var held = 0

    package init(_ limits: Limits, choice: Choice) {
        self.limits = limits
        self.choice = choice
    }

    /// Places beyond a lower limit stay.
    package mutating func set(_ limits: Limits) { self.limits = limits }

    package var count: Int { self.entries.count }

    package func has(_ id: ID) -> Bool { self.entries[id] != nil }

    /// Takes a place. `shed`: those who lost theirs to the newcomer. `highest`: places with a higher rank are not shed. `isKnown`: the host's loose
    /// places are shed last.
    package mutating func enter(
        _ id: ID, _ host: HostKey, as use: Use, isKnown: Bool = false, sheddingUpTo highest: Int64 = .max
    ) -> (refusal: Refusal?, shed: [Shed]) {
        self.leave(id)
        if use == .play, !self.mayPlay { return (.tooMany, []) }
        var shed: [Shed] = []
        if self.hosts[host]?.count ?? 0 >= self.limits.perHost {
            guard let own = self.firstLoose(of: host, upTo: highest) else { return (.tooManyFromHost, []) }
            shed.append(Shed(id: own, limit: .tooManyFromHost))
            self.leave(own)
        }
        if self.entries.count >= self.limits.total {
            guard let other = self.loose(for: host, isKnown: isKnown, upTo: highest) else { return (.tooMany, shed) }
            shed.append(Shed(id: other, limit: .tooMany))
            self.leave(other)
        }
        self.insert(id, host, use, isKnown: isKnown)
        return (nil, shed)
    }

    /// Whether one more may play.
    private var mayPlay: Bool { self.held < self.limits.total - self.limits.reserved }

    /// Lets a holder play; returns false if plays have all the places that they may have.
    package mutating func play(_ id: ID, _ host: HostKey) -> Bool {
        switch self.entries[id]?.use {
        case .play, .push: return true
        case .loose, nil:
            guard self.mayPlay else { return false }
            self.set(id, host, .play)
            return true
        }
    }

    /// Changes what a holder does. One that lost its place while its request arrived gets it back, exceeding the total for a while.
    package mutating func set(_ id: ID, _ host: HostKey, _ use: Use) {
        guard let entry = self.entries[id] else { return self.insert(id, host, use, isKnown: self.hosts[host]?.isKnown ?? false) }
        guard entry.use != use else { return }
        self.held += (use.rank == nil ? 1 : 0) - (entry.use.rank == nil ? 1 : 0)
        self.entries[id]?.use = use
        self.update(entry.host) { host in
            if let rank = use.rank { host.loose.set(id, rank) } else { host.loose.remove(id) }
        }
    }

    /// Gives a loose place a new rank; changes nothing about a held one.
    package mutating func rank(_ id: ID, _ rank: Int64) {
        guard let entry = self.entries[id], entry.use.rank != nil else { return }
        self.set(id, entry.host, .loose(rank: rank))
    }

    package mutating func leave(_ id: ID) {
        guard let entry = self.entries.removeValue(forKey: id) else { return }
        if entry.use.rank == nil { self.held -= 1 }
        self.update(entry.host) { host in
            host.count -= 1
            host.loose.remove(id)
        }
    }

    /// The host's loose places are shed last from now on.
    package mutating func know(_ host: HostKey) {
        guard self.hosts[host] != nil else { return }
        self.update(host) { $0.isKnown = true }
    }

    private mutating func insert(_ id: ID, _ host: HostKey, _ use: Use, isKnown: Bool) {
        self.entries[id] = Entry(host: host, use: use)
        if use.rank == nil { self.held += 1 }
        self.update(host) { host in
            host.count += 1
            host.isKnown = host.isKnown || isKnown
            if let rank = use.rank { host.loose.set(id, rank) }
        }
    }

    private mutating func update(_ key: HostKey, _ change: (inout Host) -> Void) {
        change(&self.hosts[key, default: Host()])
        guard let host = self.hosts[key], host.count > 0 else {
            self.hosts[key] = nil
            self.order.remove(key)
            return
        }
        guard let rank = host.loose.first?.priority else { return self.order.remove(key) }
        let loose = self.choice == .busiest ? host.loose.count : 0
        self.order.set(key, Priority(isKnown: host.isKnown, loose: loose, rank: rank))
    }

    // MARK: Shedding

    private func firstLoose(of host: HostKey, upTo highest: Int64) -> ID? {
        guard let first = self.hosts[host]?.loose.first, first.priority <= highest else { return nil }
        return first.key
    }

    /// The place that goes for a newcomer of this host.
    private func loose(for host: HostKey, isKnown: Bool, upTo highest: Int64) -> ID? {
        guard let next = self.order.first else { return nil }
        let own = self.firstLoose(of: host, upTo: highest)
        switch self.choice {
        case .lowest: return own ?? self.firstLoose(of: next.key, upTo: highest)
        case .busiest:
            // A stranger never takes a known host's place, which takes any stranger's first.
            guard next.priority.isKnown == isKnown else { return isKnown ? self.firstLoose(of: next.key, upTo: highest) : own }
            // With the newcomer its host would have most of them.
            let hasMost = self.hosts[host]?.loose.count ?? 0 >= next.priority.loose
            return hasMost ? own : self.firstLoose(of: next.key, upTo: highest)
        }
    }
}
