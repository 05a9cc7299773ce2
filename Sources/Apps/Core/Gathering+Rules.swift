import Support

extension Gathering {
    /// The role that may act for others.
    package static let host = "host"

    /// Applies an input. `nowMs`: milliseconds since 1970. Throws a refusal, which changes nothing.
    package mutating func apply(_ input: Input, nowMs: Int64) throws(GatheringRefusal) -> [Effect] {
        guard !self.hasEnded else {
            if case .disconnect = input { return [] }
            if case .tick = input { return [] }
            throw .ended
        }
        switch input {
        case .connect(let id, let name, let role, let connection): return try self.connect(id, name, role, connection, nowMs)
        case .enter(let id, let name, let role): return try self.enter(id, name, role, nowMs)
        case .disconnect(let connection): return self.disconnect(connection, nowMs)
        case .leave(let id):
            guard let member = self.member(id) else { throw .notMember }
            return self.remove(member, .left)
        case .kick(let id):
            guard let member = self.member(id) else { throw .noSuchMember(id) }
            return self.remove(member, .kicked)
        case .say(let from, let to, let object, let content):
            let sender = try self.sender(from)
            let receivers = try self.receivers(of: to, from: sender)
            // A message to one member is not kept for later joiners.
            guard to == nil else { return [.send(.notified(from: from, object: object, content: content, atMs: nowMs), to: receivers)] }
            return [.send(.said(from: sender, object: object, content: content, atMs: nowMs), to: receivers)]
        case .command(let from, let to, let content):
            let sender = try self.sender(from)
            return [.send(.commanded(from: sender.id, content: content), to: try self.receivers(of: to, from: sender))]
        case .direct(let from, let to, let name, let data):
            let sender = try self.sender(from)
            return [.send(.directed(from: sender, name: name, data: data), to: try self.receivers(of: to, from: sender))]
        case .offer(let from, let value): return try self.offer(from, value, nowMs)
        case .poll(let from, let key): return try self.poll(from, key)
        case .remove(let key):
            guard let entry = self.queue.first(where: { $0.key == key }) else { throw .notQueued(key) }
            return self.dequeue(entry, .drop)
        case .pause(let isPaused):
            self.isPaused = isPaused
            return []
        case .ask(let from, let to, let kind, let payload, let id): return try self.ask(from, to, kind, payload, id, nowMs)
        case .answer(let from, let ticket, let isApproved): return try self.answer(from, ticket, isApproved, nowMs)
        case .tick: return self.tick(nowMs)
        case .end(let reason): return self.end(reason)
        }
    }

    private func sender(_ id: String) throws(GatheringRefusal) -> Member {
        guard let member = self.member(id) else { throw .notMember }
        return member
    }

    /// The connections of one member, or of all except the sender. Empty if that member is away: nothing is kept for later.
    private func receivers(of id: String?, from sender: Member) throws(GatheringRefusal) -> [ConnectionID] {
        guard let id else { return self.others(than: sender.id) }
        guard let member = self.member(id) else { throw .noSuchMember(id) }
        return member.connection.map { [$0] } ?? []
    }

    func others(than id: String) -> [ConnectionID] { self.members.compactMap { $0.id == id ? nil : $0.connection } }

    var all: [ConnectionID] { self.members.compactMap(\.connection) }

    func connections(of ids: String...) -> [ConnectionID] { ids.compactMap { self.member($0)?.connection } }

    // MARK: - Members

    private mutating func connect(
        _ id: String, _ name: String, _ role: String, _ connection: ConnectionID, _ nowMs: Int64
    ) throws(GatheringRefusal) -> [Effect] {
        guard let index = self.members.firstIndex(where: { $0.id == id }) else {
            let member = try self.add(id, name, role, connection, nowMs)
            return [.joined(member), .send(.arrived(member), to: self.others(than: id)), self.hello(member)]
        }
        let (former, wasAway) = (self.members[index].connection, self.members[index].awaySinceMs != nil)
        self.members[index].connection = connection
        self.members[index].awaySinceMs = nil
        // A new login may have another name or role.
        self.members[index].name = name
        self.members[index].role = role
        let member = self.members[index]
        var effects: [Effect] = []
        if let former, former != connection { effects.append(.close(former, .replaced)) }
        if wasAway { effects.append(.send(.back(member), to: self.others(than: id))) }
        return effects + [self.hello(member)]
    }

    private mutating func enter(_ id: String, _ name: String, _ role: String, _ nowMs: Int64) throws(GatheringRefusal) -> [Effect] {
        guard self.member(id) == nil else { return [] }
        let member = try self.add(id, name, role, nil, nowMs)
        return [.joined(member), .send(.arrived(member), to: self.others(than: id))]
    }

    private mutating func add(
        _ id: String, _ name: String, _ role: String, _ connection: ConnectionID?, _ nowMs: Int64
    ) throws(GatheringRefusal) -> Member {
        guard self.members.count < self.limits.members else { throw .full(limit: self.limits.members) }
        self.joins += 1
        let member = Member(
            id: id, name: name, role: role, joinedAtMs: nowMs, order: self.joins, connection: connection,
            awaySinceMs: connection == nil ? nowMs : nil)
        self.members.append(member)
        return member
    }

    private func hello(_ member: Member) -> Effect {
        let tickets = self.tickets.filter { $0.from == member.id || $0.to == member.id }
        return .send(
            .hello(you: member, others: self.members.filter { $0.id != member.id }, queue: self.queue, tickets: tickets),
            to: member.connection.map { [$0] } ?? [])
    }

    private mutating func disconnect(_ connection: ConnectionID, _ nowMs: Int64) -> [Effect] {
        // The end of a replaced connection does not concern its member.
        guard let index = self.members.firstIndex(where: { $0.connection == connection }) else { return [] }
        self.members[index].connection = nil
        guard self.limits.offlineMs > 0 else { return self.remove(self.members[index], .left) }
        self.members[index].awaySinceMs = nowMs
        let member = self.members[index]
        return [.send(.away(member), to: self.others(than: member.id))]
    }

    mutating func remove(_ member: Member, _ departure: Departure) -> [Effect] {
        var effects: [Effect] = []
        for ticket in self.tickets where ticket.from == member.id || ticket.to == member.id {
            effects += self.close(ticket, .expired)
        }
        if let entry = self.queue.first(where: { $0.key == member.id }) { effects += self.dequeue(entry, .drop) }
        self.members.removeAll { $0.id == member.id }
        effects.append(.send(.departed(member, departure), to: self.all))
        if let connection = member.connection, departure == .kicked { effects.append(.close(connection, .kicked)) }
        return effects + [.left(member, departure)]
    }

    // MARK: - Queue

    private mutating func offer(_ id: String, _ value: String, _ nowMs: Int64) throws(GatheringRefusal) -> [Effect] {
        _ = try self.sender(id)
        guard value.utf8.count <= self.limits.valueBytes else {
            throw .invalid(FieldError("value", "", "expected at most \(self.limits.valueBytes) bytes; these are \(value.utf8.count)"))
        }
        let entry: Entry
        if let index = self.queue.firstIndex(where: { $0.key == id }) {
            self.queue[index].value = value
            entry = self.queue[index]
        } else {
            guard !self.isPaused else { throw .queuePaused }
            guard self.queue.count < self.limits.queue else { throw .queueFull(limit: self.limits.queue) }
            entry = Entry(key: id, value: value, atMs: nowMs)
            self.queue.append(entry)
        }
        return [.queueChanged(.offer, entry), .send(.queue(.offer, entry), to: self.all)]
    }

    private mutating func poll(_ id: String, _ key: String?) throws(GatheringRefusal) -> [Effect] {
        let member = try self.sender(id)
        let isHost = member.role == Self.host
        guard let key = key ?? (isHost ? self.queue.first?.key : id) else { throw .notQueued("") }
        guard isHost || key == id else { throw .notYours }
        guard let entry = self.queue.first(where: { $0.key == key }) else { throw .notQueued(key) }
        return self.dequeue(entry, .poll)
    }

    mutating func dequeue(_ entry: Entry, _ change: QueueChange) -> [Effect] {
        self.queue.removeAll { $0.key == entry.key }
        return [.queueChanged(change, entry), .send(.queue(change, entry), to: self.all)]
    }

    // MARK: - Tickets

    private mutating func ask(
        _ from: String, _ to: String, _ kind: String, _ payload: JSONValue, _ id: String, _ nowMs: Int64
    ) throws(GatheringRefusal) -> [Effect] {
        _ = try self.sender(from)
        guard self.member(to) != nil else { throw .noSuchMember(to) }
        if let pending = self.tickets.first(where: { $0.kind == kind && $0.from == from && $0.to == to }), pending.expiresAtMs > nowMs {
            return [.send(.ticket(.opened, pending), to: self.connections(of: to))]
        }
        guard self.tickets.count < self.limits.tickets else { throw .tooManyTickets(limit: self.limits.tickets) }
        guard self.tickets.count(where: { $0.from == from }) < self.limits.ticketsOfOne else {
            throw .tooManyTickets(limit: self.limits.ticketsOfOne)
        }
        guard payload.text.utf8.count <= self.limits.payloadBytes else {
            throw .invalid(FieldError("payload", "", "expected at most \(self.limits.payloadBytes) bytes of JSON"))
        }
        let expired = self.tickets.filter { $0.kind == kind && $0.from == from && $0.to == to }
        var effects: [Effect] = []
        for ticket in expired { effects += self.close(ticket, .expired) }
        let ticket = Ticket(id: id, kind: kind, from: from, to: to, payload: payload, expiresAtMs: nowMs + self.limits.ticketMs)
        self.tickets.append(ticket)
        return effects + [.ticketChanged(.opened, ticket), .send(.ticket(.opened, ticket), to: self.connections(of: to))]
    }

    private mutating func answer(_ from: String, _ id: String, _ isApproved: Bool, _ nowMs: Int64) throws(GatheringRefusal) -> [Effect] {
        _ = try self.sender(from)
        guard let ticket = self.tickets.first(where: { $0.id == id }), ticket.to == from, ticket.expiresAtMs > nowMs else {
            throw .noSuchTicket
        }
        return self.close(ticket, isApproved ? .approved : .rejected)
    }

    /// Closes a ticket. Notifies both members if it expired, otherwise only the member that asked.
    mutating func close(_ ticket: Ticket, _ change: TicketChange) -> [Effect] {
        self.tickets.removeAll { $0.id == ticket.id }
        let receivers = change == .expired ? self.connections(of: ticket.from, ticket.to) : self.connections(of: ticket.from)
        return [.ticketChanged(change, ticket), .send(.ticket(change, ticket), to: receivers)]
    }

    // MARK: - Time and end

    private mutating func tick(_ nowMs: Int64) -> [Effect] {
        var effects: [Effect] = []
        for ticket in self.tickets where ticket.expiresAtMs <= nowMs { effects += self.close(ticket, .expired) }
        for member in self.members {
            guard let leaves = self.leavesMs(member), leaves <= nowMs else { continue }
            effects += self.remove(member, .offline)
        }
        return effects
    }

    mutating func end(_ reason: String) -> [Effect] {
        self.hasEnded = true
        var effects: [Effect] = [.send(.closed(reason: reason), to: self.all)]
        for member in self.members {
            if let connection = member.connection { effects.append(.close(connection, .ended(reason: reason))) }
            effects.append(.left(member, .ended))
        }
        self.members = []
        self.tickets = []
        self.queue = []
        return effects + [.ended(reason: reason)]
    }

    /// Marks all members as away since this time: no connection survives a restart.
    package mutating func restart(nowMs: Int64) {
        self.restartedMs = nowMs
        for index in self.members.indices where self.members[index].awaySinceMs == nil {
            self.members[index].connection = nil
            self.members[index].awaySinceMs = nowMs
        }
    }
}
