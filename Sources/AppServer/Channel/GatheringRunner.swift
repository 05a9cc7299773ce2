import Apps
import HTTPServer
import NIOCore
import RoomRegistry
import Rooms
import Support
import Synchronization

/// Runs one gathering: applies inputs one after another, stores each change that must not be lost, then notifies the members. Any thread.
///
/// A change that the store rejects has no effect: only its sender gets an error.
final class GatheringRunner: Sendable {
    let id: String
    let kind: String
    let room: RoomID

    /// Applies an input to a gathering and returns the effects. Throws a refusal, which changes nothing.
    typealias Change = @Sendable (inout any GatheringDialect, _ nowMs: Int64) throws(GatheringRefusal) -> [Gathering.Effect]
    typealias Outcome = Result<any GatheringDialect, GatheringFailure>

    /// A change, and the callback for its outcome.
    struct Command: Sendable {
        let change: Change
        /// Whether the state is stored even if the effects would not need it.
        var isKept = false
        /// A connection to remove if the change is refused.
        var connects: ConnectionID?
        /// A connection to remove after the change.
        var disconnects: ConnectionID?
        /// The connection that sent the command. Its commands are limited in number and bytes, so that it cannot fill the queue.
        var sender: ConnectionID?
        var bytes = 0
        /// Resolved when observers have passed the change on to another server.
        var receipt: FollowUpReceipt?
        var done: @Sendable (Outcome) -> Void

        init(_ change: @escaping Change, done: @escaping @Sendable (Outcome) -> Void = { _ in }) {
            self.change = change
            self.done = done
        }

        init(input: Gathering.Input, done: @escaping @Sendable (Outcome) -> Void = { _ in }) {
            self.init(
                { (gathering, nowMs) throws(GatheringRefusal) in try gathering.apply(input, nowMs: nowMs) }, done: done)
            if case .connect(_, _, _, let connection) = input { self.connects = connection }
            if case .disconnect(let connection) = input { self.disconnects = connection }
            if case .pause = input { self.isKept = true }
        }
    }

    /// A change that was stored and sent to the members. A value.
    struct AppliedChange: Sendable {
        let id: String
        let kind: String
        let former: any GatheringDialect
        let effects: [Gathering.Effect]
        let receipt: FollowUpReceipt?
    }

    /// Called for a gathering's changes in their order, before the command's `done`. Must not block.
    typealias Observer = @Sendable (AppliedChange) -> Void

    private struct State {
        var gathering: any GatheringDialect
        var createdAtMs: Int64
        var peers: [ConnectionID: AppPeer] = [:]
        /// The most recent messages as they were sent.
        var messages: [(value: JSONValue, bytes: Int)] = []
        var isStored: Bool
        /// Commands that are queued or under way.
        var pending = 0
        /// By connection, the number and bytes of its pending commands.
        var sent: [ConnectionID: (count: Int, bytes: Int)] = [:]
        /// Commands that run before all others.
        var urgent: [Command] = []
        /// Bytes of ``messages``, as JSON.
        var messageBytes = 0
        /// Accepts no more commands; the next member to connect opens another gathering.
        var isOver = false

        /// Takes a finished command out of the counts.
        mutating func settle(_ command: Command) {
            self.pending -= 1
            guard let sender = command.sender, let sent = self.sent[sender] else { return }
            self.sent[sender] = sent.count > 1 ? (sent.count - 1, sent.bytes - command.bytes) : nil
        }

        /// Keeps a message for members that join later. `bytes`: its size as JSON.
        mutating func keep(_ message: JSONValue, bytes: Int, most: Int, mostBytes: Int) {
            self.messages.append((message, bytes))
            self.messageBytes += bytes
            while self.messages.count > most || self.messageBytes > mostBytes, let first = self.messages.first {
                self.messageBytes -= first.bytes
                self.messages.removeFirst()
            }
        }
    }

    private let rooms: RoomRegistry
    private let limits: LimitHits
    private let mute: @Sendable (RoomID, String, Bool) async -> Void
    private let observe: Observer?
    private let state: Mutex<State>
    /// Nil stands for a command in ``State/urgent``.
    private let commands: AsyncStream<Command?>.Continuation
    private let deadlineMs: Atomic<Int64>
    /// Called after each change that is stored, before the next command.
    private let whenChanged: @Sendable (GatheringRunner) -> Void
    private let whenOver: @Sendable (GatheringRunner) -> Void

    private static let keptMessages = 100
    /// Bytes of the kept messages, which each joining member gets all at once.
    private static let keptBytes = 128 << 10
    /// The pause after a change that could not be stored.
    private static let retryMs: Int64 = 1_000
    /// Pending commands, in all and of one connection. Each connection's rate is limited, so these are reached only when the store is slow.
    private static let mostCommands = 4_000
    private static let mostOfOne = 500
    private static let mostBytesOfOne = 2 << 20

    init(
        id: String, kind: String, room: RoomID, _ gathering: any GatheringDialect, isStored: Bool, createdAtMs: Int64,
        rooms: RoomRegistry, limits: LimitHits, mute: @escaping @Sendable (RoomID, String, Bool) async -> Void, observe: Observer? = nil,
        whenChanged: @escaping @Sendable (GatheringRunner) -> Void, whenOver: @escaping @Sendable (GatheringRunner) -> Void
    ) {
        self.id = id
        self.kind = kind
        self.room = room
        self.rooms = rooms
        self.limits = limits
        self.mute = mute
        self.whenChanged = whenChanged
        self.observe = observe
        self.whenOver = whenOver
        self.deadlineMs = Atomic(gathering.nextDeadlineMs ?? .max)
        self.state = Mutex(State(gathering: gathering, createdAtMs: createdAtMs, isStored: isStored))
        // Bounded by `submit`, which never refuses the end of a connection.
        let (stream, continuation) = AsyncStream<Command?>.makeStream()
        self.commands = continuation
        Task { [weak self] in
            for await command in stream {
                guard let self else { return }
                while let first = self.nextUrgent() { await self.run(first) }
                if let command { await self.run(command) }
            }
        }
    }

    /// The state now, for lists.
    var dialect: any GatheringDialect { self.state.withLock { $0.gathering } }
    var gathering: Gathering { self.dialect.gathering }
    var createdAtMs: Int64 { self.state.withLock { $0.createdAtMs } }
    /// Ticks if a deadline has passed, once until that tick is done. Cheap: called many times a second.
    func tick(_ nowMs: Int64) {
        guard self.deadlineMs.load(ordering: .relaxed) <= nowMs else { return }
        self.deadlineMs.store(.max, ordering: .relaxed)
        self.submit(Command(input: .tick))
    }

    /// Queues a command. False when the gathering is over: it is then not carried out, and its `done` is not called.
    ///
    /// `isUrgent`: runs before all pending commands, as for an operator's end or kick.
    @discardableResult
    func submit(_ command: Command, isUrgent: Bool = false) -> Bool {
        enum Submission { case over, full, accepted }
        let submission = self.state.withLock { state -> Submission in
            if state.isOver { return .over }
            if !isUrgent, command.disconnects == nil, state.pending >= Self.mostCommands { return .full }
            if let sender = command.sender {
                let sent = state.sent[sender, default: (0, 0)]
                if sent.count >= Self.mostOfOne || sent.bytes >= Self.mostBytesOfOne { return .full }
                state.sent[sender] = (sent.count + 1, sent.bytes + command.bytes)
            }
            state.pending += 1
            if isUrgent { state.urgent.append(command) }
            return .accepted
        }
        switch submission {
        case .over: return false
        case .full:
            self.forget(command.connects)
            command.done(.failure(.unavailable))
        case .accepted: self.commands.yield(isUrgent ? nil : command)
        }
        return true
    }

    private func nextUrgent() -> Command? {
        self.state.withLock { $0.urgent.isEmpty ? nil : $0.urgent.removeFirst() }
    }

    private func run(_ command: Command) async {
        await self.step(command)
        await self.rest(after: command)
    }

    /// Submits a command and waits for its outcome.
    func outcome(of command: Command, isUrgent: Bool = false) async -> Outcome {
        await withCheckedContinuation { waiting in
            var waited = command
            waited.done = { waiting.resume(returning: $0) }
            if !self.submit(waited, isUrgent: isUrgent) { waiting.resume(returning: .failure(.refused(.ended))) }
        }
    }

    /// Adds a connection before its command is submitted. It gets frames only once the command has been applied.
    func add(_ peer: AppPeer) { self.state.withLock { $0.peers[peer.id] = peer } }

    func stop() { self.commands.finish() }

    // MARK: - One command

    private func step(_ command: Command) async {
        let nowMs = self.rooms.now
        let former = self.dialect
        var next = former
        let effects: [Gathering.Effect]
        do throws(GatheringRefusal) {
            effects = try command.change(&next, nowMs)
        } catch {
            if case .full = error { self.limits.hit(.members) }
            self.forget(command.connects)
            self.deadlineMs.store(former.nextDeadlineMs ?? .max, ordering: .relaxed)
            return command.done(.failure(.refused(error)))
        }
        let isKept = command.isKept || Gathering.isKept(effects)
        if isKept {
            do throws(RegistryError) {
                try await self.rooms.commit(GatheringChange(self.stored(next), effects))
            } catch {
                self.forget(command.connects)
                // A deadline that has passed is tried again, after a pause.
                self.deadlineMs.store(max(former.nextDeadlineMs ?? .max, nowMs + Self.retryMs), ordering: .relaxed)
                return command.done(.failure(.notStored(error)))
            }
        }
        let result = next
        // Written before: readers of the state and other connections' commands do not wait for it.
        let peerEffects = self.peerEffects(effects, result)
        self.state.withLock { state in
            state.gathering = result
            if isKept { state.isStored = true }
            for effect in peerEffects { effect.apply(&state) }
        }
        self.deadlineMs.store(result.nextDeadlineMs ?? .max, ordering: .relaxed)
        self.forget(command.disconnects)
        if isKept { self.whenChanged(self) }
        if let observe, !effects.isEmpty {
            observe(AppliedChange(id: self.id, kind: self.kind, former: former, effects: effects, receipt: command.receipt))
        }
        command.done(.success(result))
        // In the order of the decisions; the answer need not wait for it.
        for effect in effects { if case .mute(let user, let isMuted) = effect { await self.mute(self.room, user, isMuted) } }
    }

    private func forget(_ connection: ConnectionID?) {
        guard let connection else { return }
        self.state.withLock { $0.peers[connection] = nil }
    }

    /// After each command: ends the runner when the gathering is idle and no command is pending.
    private func rest(after command: Command) async {
        let (gathering, isStored) = self.state.withLock { ($0.gathering, $0.isStored) }
        if gathering.isIdle, !gathering.gathering.hasEnded, isStored {
            var change = GatheringChange(self.stored(gathering))
            change.hasEnded = true
            // If the row stays, the next start finds it empty and drops it.
            _ = try? await self.rooms.commit(change)
            self.state.withLock { $0.isStored = false }
        }
        let endsNow = self.state.withLock { state in
            let wasOver = state.isOver
            state.settle(command)
            state.isOver = state.gathering.gathering.hasEnded || (state.gathering.isIdle && state.pending == 0)
            return state.isOver && !wasOver
        }
        if endsNow { self.whenOver(self) }
    }

    private func stored(_ gathering: any GatheringDialect) -> StoredGathering {
        StoredGathering(id: self.id, kind: self.kind, roomID: self.room, state: gathering.state.text, createdAt: self.createdAtMs)
    }

    /// What an effect does to connections, ready to be done.
    private enum PeerEffect {
        case send(ByteBuffer, to: [ConnectionID])
        case keep(JSONValue, bytes: Int)
        case close(ConnectionID, code: UInt16, reason: String)

        /// Hands frames to the connections, which only queue them on their loops.
        func apply(_ state: inout State) {
            switch self {
            case .send(let frame, let receivers): for receiver in receivers { state.peers[receiver]?.send(frame) }
            case .keep(let message, let bytes):
                state.keep(message, bytes: bytes, most: GatheringRunner.keptMessages, mostBytes: GatheringRunner.keptBytes)
            case .close(let connection, let code, let reason): state.peers.removeValue(forKey: connection)?.close(code, reason)
            }
        }
    }

    /// Writes the frames of effects, in their order. Only commands change the kept messages, and the connections that get something, so this one, which
    /// has its turn, may read them without holding the lock.
    private func peerEffects(_ effects: [Gathering.Effect], _ gathering: any GatheringDialect) -> [PeerEffect] {
        guard !effects.isEmpty else { return [] }
        let (peers, messages) = self.state.withLock { ($0.peers, $0.messages.map(\.value)) }
        var peerEffects: [PeerEffect] = []
        for effect in effects {
            switch effect {
            case .send(let signal, let receivers):
                let isSaid = if case .said = signal { true } else { false }
                // Members connected to another server have no peers.
                guard isSaid || receivers.contains(where: { peers[$0] != nil }) else { continue }
                guard
                    let value = ChannelWriter.frame(
                        signal, kind: self.kind, room: self.room.rawValue, isPaused: gathering.gathering.isPaused, messages: messages,
                        greeting: gathering.greeting)
                else { continue }
                let text = value.text
                if isSaid { peerEffects.append(.keep(value, bytes: text.utf8.count)) }
                peerEffects.append(.send(WebSocketWriter.text(text), to: receivers))
            case .close(let connection, let why):
                let (code, reason) = why.closeCode
                peerEffects.append(.close(connection, code: code, reason: reason))
            case .joined, .left, .queueChanged, .ticketChanged, .event, .mute, .ended: break
            }
        }
        return peerEffects
    }
}

/// Why a command had no effect.
enum GatheringFailure: Error, Sendable {
    case refused(GatheringRefusal)
    case notStored(RegistryError)
    case unavailable

    var code: String {
        switch self {
        case .refused(let refusal): refusal.code
        case .notStored(.keptOut): "kept_out"
        case .notStored(.noSuchRoom), .notStored(.wrongState): "room_closed"
        case .notStored(.tooMany): "full"
        case .notStored, .unavailable: "unavailable"
        }
    }

    var message: String {
        switch self {
        case .refused(let refusal): "\(refusal)"
        case .notStored(.keptOut(let user, let room, let forMs)):
            "\(user) was kicked from room \(room) and may come back in \(max(1, (forMs + 999) / 1_000)) s."
        case .notStored(.noSuchRoom(let id)): "There is no room \(id)."
        case .notStored(.wrongState(let id, let state, _, _)): "Room \(id) is \(state.rawValue)."
        case .notStored(.onOtherNode(let what, let node)): "\(what) is on the server \(node) of this cluster; connect there."
        case .notStored(.tooMany(let what, let limit)): "There are \(limit) \(what) already, the limit."
        case .notStored, .unavailable: "The server cannot store this now; nothing has changed. Try again."
        }
    }
}

extension Gathering.Closing {
    /// In the range for applications (RFC 6455 §7.4.2).
    fileprivate var closeCode: (UInt16, String) {
        switch self {
        case .replaced: (4001, "replaced by another login")
        case .kicked: (4002, "kicked")
        case .ended(let reason): (4004, reason)
        }
    }
}
