package import Access
package import Apps
import HTTPServer
import Listening
import NIOCore
package import Rooms
package import Support
import Synchronization

/// The mesh's rooms, in memory only. Any thread.
package final class MeshService: Sendable {
    private struct Person {
        let id: String
        /// The token's user; nil without a token.
        let user: String?
        /// Equals ``id`` without a token.
        let name: String
        let peer: AppPeer
        let writer: MeshWriter
        var room: String?

        func isIn(_ room: String) -> Bool { self.room?.exact == room.exact }
        func isCalled(_ id: String) -> Bool { self.id.exact == id.exact || self.user?.exact == id.exact }
    }

    private struct State {
        var rooms: NameTable<Gathering> = [:]
        var people: [ConnectionID: Person] = [:]
        /// When a kicked user may enter its room again.
        var keptOut: [KeptOut: Int64] = [:]
    }

    private struct KeptOut: Hashable {
        @ExactText var room: String
        @ExactText var user: String
    }

    /// How long a kicked user is kept out. Users without a token cannot be recognized and may come again.
    private static let keptOutMs: Int64 = 300_000
    private static let mostKeptOut = 10_000

    private let limits: GatheringLimits
    private let hits: LimitHits
    private let roomLimit: Int
    private let counters: AppCounters
    private let state = Mutex(State())

    package init(members: Int, rooms: Int, counters: AppCounters, limits hits: LimitHits) {
        // A lost connection means an immediate leave, because its media has ended too.
        self.limits = GatheringLimits(members: members, offlineMs: 0)
        self.roomLimit = rooms
        self.hits = hits
        self.counters = counters
    }

    /// Rooms and people now.
    package var size: (rooms: Int, people: Int) { self.state.withLock { ($0.rooms.count, $0.people.count) } }

    /// The kind of all of these gatherings.
    package static let kind = "mesh"

    package var snapshots: [Gatherings.Snapshot] { self.state.withLock { state in state.rooms.map { Self.snapshot($0.key, $0.value) } } }

    package func snapshot(_ id: String) -> Gatherings.Snapshot? {
        guard id.hasPrefix("\(Self.kind)-") else { return nil }
        let room = String(id.dropFirst(Self.kind.count + 1))
        return self.state.withLock { state in state.rooms[room].map { Self.snapshot(room, $0) } }
    }

    private static func snapshot(_ room: String, _ gathering: Gathering) -> Gatherings.Snapshot {
        Gatherings.Snapshot(
            id: Gatherings.id(kind: self.kind, room: room), kind: self.kind, room: room, createdAtMs: nil, gathering: gathering)
    }

    /// Closes the connections of everybody in the room.
    package func end(room: String) { self.close(4004, "ended") { $0.isIn(room) } }

    /// Closes a member's connection, or all connections of a token's user, and keeps that user out for a while. False if there is none.
    package func kick(_ id: String, from room: String) -> Bool {
        self.state.withLock { state in
            let users = Set(state.people.values.filter { $0.isIn(room) && $0.isCalled(id) }.compactMap(\.user))
            let nowMs = LoopSweeper.nowMs
            if state.keptOut.count >= Self.mostKeptOut { state.keptOut = state.keptOut.filter { $0.value > nowMs } }
            for user in users where state.keptOut.count < Self.mostKeptOut {
                state.keptOut[KeptOut(room: room, user: user)] = nowMs + Self.keptOutMs
            }
        }
        return self.close(4002, "kicked") { $0.isIn(room) && $0.isCalled(id) }
    }

    /// Closes the connections with a token for a room that has ended. Other connections only share the room's name.
    package func handle(_ events: [EventMark]) {
        for event in events where [.roomClosed, .roomExpired, .roomDeleted].contains(event.kind) {
            guard let room = event.roomID?.rawValue else { continue }
            self.close(4004, event.kind.rawValue) { $0.isIn(room) && $0.user != nil }
        }
    }

    @discardableResult
    private func close(_ code: UInt16, _ reason: String, where matches: (Person) -> Bool) -> Bool {
        let peers = self.state.withLock { state in state.people.values.filter(matches).map(\.peer) }
        for peer in peers { peer.close(code, reason) }
        return !peers.isEmpty
    }

    package func opened(_ peer: AppPeer, id: String, token: ChannelToken?, _ writer: MeshWriter) {
        self.state.withLock {
            $0.people[peer.id] = Person(id: id, user: token?.user, name: token?.name ?? id, peer: peer, writer: writer)
        }
    }

    package func closed(_ connection: ConnectionID) {
        self.state.withLock { state in
            self.leave(connection, &state)
            state.people[connection] = nil
        }
    }

    /// Joins a room, and leaves the former one. `ice`: the ICE servers, for a peer that asks for them.
    package func join(_ connection: ConnectionID, room: String, ice: JSONValue? = nil) throws(GatheringRefusal) {
        try self.state.withLock { (state) throws(GatheringRefusal) in
            guard let person = state.people[connection] else { throw .notMember }
            if let user = person.user, let untilMs = state.keptOut[KeptOut(room: room, user: user)] {
                let leftMs = untilMs - LoopSweeper.nowMs
                if leftMs > 0 {
                    throw .dialect(code: "kept_out", message: "You were kicked and may come back in \((leftMs + 999) / 1_000) s.")
                }
                state.keptOut[KeptOut(room: room, user: user)] = nil
            }
            if !person.isIn(room) {
                if state.rooms[room] == nil, state.rooms.count >= self.roomLimit {
                    self.hits.hit(.gatherings)
                    throw .full(limit: self.roomLimit)
                }
                // Refused before the former room is left.
                if let there = state.rooms[room], there.members.count >= self.limits.members {
                    self.hits.hit(.meshMembers)
                    throw .full(limit: self.limits.members)
                }
                self.leave(connection, &state)
            }
            try self.apply(.connect(id: person.id, name: person.name, role: "", connection), room, &state, ice: ice)
            state.people[connection]?.room = room
        }
    }

    /// Sends a frame to one member of the sender's room. Frames for others are dropped and counted.
    package func direct(_ connection: ConnectionID, to: String, name: String, data: [JSONValue.Member]) throws(GatheringRefusal) {
        try self.state.withLock { (state) throws(GatheringRefusal) in
            guard let person = state.people[connection], let room = person.room else {
                self.counters.update { $0.undelivered += 1 }
                throw .notMember
            }
            do throws(GatheringRefusal) {
                try self.apply(.direct(from: person.id, to: to, name: name, data: data), room, &state)
            } catch {
                self.counters.update { $0.undelivered += 1 }
            }
        }
    }

    private func leave(_ connection: ConnectionID, _ state: inout State) {
        guard let room = state.people[connection]?.room else { return }
        state.people[connection]?.room = nil
        // A disconnect is never refused.
        try? self.apply(.disconnect(connection), room, &state)
        if state.rooms[room]?.isIdle == true { state.rooms[room] = nil }
    }

    private func apply(
        _ input: Gathering.Input, _ room: String, _ state: inout State, ice: JSONValue? = nil
    ) throws(GatheringRefusal) {
        let effects = try state.rooms[room, default: Gathering(limits: self.limits)].apply(input, nowMs: WallClock.ms)
        for effect in effects {
            guard case .send(let signal, let receivers) = effect else { continue }
            // Encoded once for each form in use. Sending only queues the frame on the connection's loop.
            var frames: [Bool: ByteBuffer] = [:]
            for receiver in receivers {
                guard let person = state.people[receiver] else { continue }
                if frames[person.writer.isDouble] == nil {
                    guard let text = person.writer.frame(signal, ice: ice) else { break }
                    frames[person.writer.isDouble] = WebSocketWriter.text(text)
                }
                if let frame = frames[person.writer.isDouble] { person.peer.send(frame) }
            }
        }
    }
}

/// One browser of the mesh. Loop-bound.
final class MeshSession: AppSession {
    private let service: MeshService
    private let writer: MeshWriter
    /// Restricts the session to one room; nil allows any.
    private let token: ChannelToken?
    /// The ICE servers, with credentials made now.
    private let ice: @Sendable () -> JSONValue
    private let id: String
    private var peer: AppPeer?

    init(
        _ service: MeshService, _ writer: MeshWriter, id: String, token: ChannelToken?, ice: @escaping @Sendable () -> JSONValue
    ) {
        self.service = service
        self.writer = writer
        self.id = id
        self.token = token
        self.ice = ice
    }

    func opened(_ peer: AppPeer) {
        self.peer = peer
        self.service.opened(peer, id: self.id, token: self.token, self.writer)
    }

    func closed() { if let peer = self.peer { self.service.closed(peer.id) } }

    func received(_ text: String) -> Bool {
        guard let peer = self.peer else { return true }
        do throws(MeshFrame.Problem) {
            switch try MeshFrame.read(text) {
            case nil: return true
            case .join(let named, let asksICE):
                let room = named ?? self.token?.room ?? MeshFrame.defaultRoom
                guard self.token == nil || self.token?.room.exact == room.exact else {
                    return self.refuse("__join", "forbidden", "This token is for another room.", peer)
                }
                do throws(GatheringRefusal) {
                    try self.service.join(peer.id, room: room, ice: asksICE ? .some(self.ice()) : .none)
                } catch {
                    _ = self.refuse("__join", error.code, "\(error)", peer)
                    if case .full = error { peer.close(4003, "the room is full") }
                    if case .dialect = error { peer.close(4003, error.code) }
                }
            case .direct(let to, let name, let data):
                do throws(GatheringRefusal) {
                    try self.service.direct(peer.id, to: to, name: name, data: data)
                } catch {
                    return self.refuse("__\(name)", error.code, "\(error)", peer)
                }
            }
            return true
        } catch {
            return self.refuse(error.event, "invalid", "\(error.error)", peer)
        }
    }

    /// Always false.
    private func refuse(_ event: String, _ code: String, _ message: String, _ peer: AppPeer) -> Bool {
        peer.send(WebSocketWriter.text(self.writer.error(event, code: code, message)))
        return false
    }
}
