package import Access
import NIOCore
import RTMP
import Relay
package import Rooms
package import ServerConfiguration
package import Support
import Synchronization

/// An admitted publisher: its pass and its publish session.
package struct PublishAdmission: Sendable {
    package let pass: AdmissionPass
    package let session: any PublishSession

    package init(pass: AdmissionPass, session: any PublishSession) {
        self.pass = pass
        self.session = session
    }
}

/// Admission of publishers and viewers to rooms. Any thread.
package final class RoomAdmission: Sendable {
    package let rooms: any LiveRooms
    /// Credentials, rates and hooks.
    package let rules: AdmissionRules
    package let memory: MemoryBudget
    package let pushRates: PushRates
    /// The room of each push.
    package let pushes: ActivePushes
    package let streams: LiveStreams
    private let config: Live<ServerConfig>

    package init(
        _ config: Live<ServerConfig>, _ rooms: any LiveRooms, _ rules: AdmissionRules, _ memory: MemoryBudget, _ pushes: ActivePushes,
        _ streams: LiveStreams
    ) {
        self.rooms = rooms
        self.rules = rules
        self.memory = memory
        self.pushRates = PushRates(config.limits)
        self.pushes = pushes
        self.streams = streams
        self.config = config
    }

    /// The answer to every new publisher and viewer, also on open connections, while the server drains: they should come back to another one, or
    /// to the next. Nil otherwise. Talk on open connections goes on.
    package var drainRefusal: AdmissionRefusal? {
        guard self.streams.draining else { return nil }
        return AdmissionRefusal(
            reason: .serverShutdown, message: "The server is about to end and lets nobody new in; try again.", retrySeconds: 5)
    }

    /// Checks the credential and the name, unless the server drains.
    package func check(_ request: AdmissionRequest) -> Result<AdmissionPass, AdmissionRefusal> {
        if let refusal = self.drainRefusal { return .failure(refusal) }
        return self.rules.check(request, nowSeconds: WallClock.seconds)
    }

    // MARK: Publishers

    /// Asks the hook, if there is one, and then the room registry. `page`: what the page rules say, at a door that pages speak. `isWanted`: whether the device still waits for the answer.
    package func admitPublish(
        _ request: AdmissionRequest, _ checked: AdmissionPass, page: PageVerdict = .notAsked, isWanted: @escaping @Sendable () -> Bool
    ) async -> Result<PublishAdmission, AdmissionRefusal> {
        if let refusal = await self.memoryRefusal(request.address.path, isPublish: true) { return .failure(refusal) }
        var pass = checked
        if self.rules.mustAsk(.publish, checked) {
            switch await self.rules.ask(request, pass: checked) {
            case .success(let answered): pass = answered
            case .failure(let refusal): return .failure(refusal)
            }
        }
        let path = request.address.streamPath
        switch await self.mayAct(.publish, PushCaller(request, pass, page: page), on: path) {
        case .success(let permit): pass = permit.pass
        case .failure(let refusal): return .failure(refusal)
        }
        let push = PushRequest(
            path: path, clientAddress: request.remote?.ipAddress ?? "", session: request.session, parameters: pass.parameters,
            query: self.rules.parameters.redactOwn(request.address.query),
            mayCreateRoom: self.mayCreateRoom(request),
            // The credential fits the stream's name, but only the registry knows its room. "cam-2" may be a room of its own.
            room: pass.room, user: pass.user,
            claim: PushClaim(identity: pass.identity, rank: pass.rank, takeover: self.takeover(of: request.address.app).ofClaims))
        let (rates, admitted) = (self.pushRates, pass)
        switch await self.rooms.admitPush(push, mayMakeRoom: { rates.admitRoom(request, admitted) }, isWanted: isWanted) {
        case .success(let grant):
            return .success(PublishAdmission(pass: pass, session: RoomPublishSession(grant, self)))
        case .failure(let refusal):
            return .failure(AdmissionRefusal(refusal, path, room: pass.room))
        }
    }

    var viewersPerStream: Int { self.config.limits.viewersPerStream }

    func takeover(of app: String) -> TakeoverRule { TakeoverRule(self.config.rooms, app: app) }

    // MARK: Viewers

    /// Whether admitting this viewer needs more than data in memory.
    package func mustWaitToPlay(_ request: AdmissionRequest, _ pass: AdmissionPass) -> Bool {
        self.memory.ledger.isOver || self.rules.mustAsk(.play, pass) || pass.room.map { $0.exact != request.address.name.exact } ?? false
            || self.mayNameDevice(request.address.streamPath)
    }

    /// Whether the name may be a device's: it has the form of one, and nobody pushes a stream of that very name here.
    private func mayNameDevice(_ path: StreamPath) -> Bool {
        RoomID.isID(path.name) && self.rooms.mayBeDevice(path.name) && !self.pushes.has(path)
    }

    /// Asks for the stream that the name stands for, for its room, if the credential names one, and then any hook. The answer's request is for that
    /// stream. Credentials and hooks know the name that the client used.
    package func admitPlay(
        _ request: AdmissionRequest, _ pass: AdmissionPass
    ) async -> Result<(request: AdmissionRequest, pass: AdmissionPass), AdmissionRefusal> {
        if let refusal = await self.memoryRefusal(request.address.path, isPublish: false) { return .failure(refusal) }
        let named = request.address.streamPath
        let path = self.mayNameDevice(named) ? await self.rooms.stream(named: named) : named
        if let room = pass.room, room.exact != path.name.exact {
            do {
                if let owner = try await self.rooms.room(ofStream: path), owner.id.rawValue.exact != room.exact {
                    return .failure(.otherRoom(of: named, than: room))
                }
            } catch {
                return .failure(AdmissionRefusal(.unavailable("\(error)"), path))
            }
        }
        var admitted = request
        admitted.address = request.address.naming(app: path.app, path.name)
        guard self.rules.mustAsk(.play, pass) else { return .success((admitted, pass)) }
        return await self.rules.ask(request, pass: pass).map { (admitted, $0) }
    }

    /// The refusal for a user thrown out of the stream's room; nil when there is none. From memory; any thread.
    func keptOut(_ pass: AdmissionPass, of path: String) -> AdmissionRefusal? {
        guard let user = pass.user, let until = self.rooms.keptOut(user, of: path) else { return nil }
        return .keptOut(user, of: path, forMs: until - self.rooms.now)
    }

    /// The close reason for a stream's viewers: the refusal to play it, or else its end.
    package func endOfPlay(_ path: String) -> CloseReason { CloseReason(endOfPlay: self.rooms.playRefusal(path)) }

    // MARK: Memory

    /// The reason why no publish or play may begin now; nil when one may. First frees memory that no viewer needs.
    ///
    /// `path` is the stream to be published or played. A publisher that returns within its grace period is admitted: its viewers wait for it, and its
    /// memory is already charged.
    package func memoryRefusal(_ path: String, isPublish: Bool) async -> AdmissionRefusal? {
        guard self.memory.ledger.isOver else { return nil }
        await self.memory.reclaim(nowMs: LoopSweeper.nowMs)
        guard self.memory.ledger.isOver else { return nil }
        if isPublish,
            await self.streams.onHome(of: path, { home, stream in home.snapshot(of: stream)?.stream.phase != .idle }) == true
        {
            return nil
        }
        self.memory.countRefusal()
        return self.memory.refusal
    }

    /// Whether a push from this address makes the room that its stream lacks.
    package func mayCreateRoom(_ request: AdmissionRequest) -> Bool {
        switch self.config.rooms.autoCreate {
        case .always: true
        case .never: false
        case .loopback: request.remote.map { CIDR.loopback.contains(address: $0) } ?? false
        }
    }
}

extension CloseReason {
    /// The reason that a stream's viewers get at its end. `refusal` is nil if the stream may still be played.
    init(endOfPlay refusal: StateReason?) {
        switch refusal {
        case .forbidden: self = .forbidden
        case .none: self = .streamEnded
        default: self = .roomEnded
        }
    }
}

extension AdmissionRefusal {
    package static func keptOut(_ user: String, of what: String, forMs: Int64) -> Self {
        AdmissionRefusal(
            reason: .kicked,
            message: "\(user) was kicked from the room of \(what) and may come back in \(max(1, (forMs + 999) / 1_000)) s.")
    }

    /// Of a push or a play. `terms`: nil if the ban was lifted meanwhile.
    package static func forbidden(_ what: String, _ terms: BanTerms?) -> Self {
        let until = terms.map { " until \(Instant.text($0.untilMs))\($0.reason.isEmpty ? "" : ": \($0.reason)")" }
        return AdmissionRefusal(reason: .forbidden, message: "\(what) is forbidden\(until ?? "").")
    }

    fileprivate static func otherRoom(of path: StreamPath, than room: String) -> Self {
        AdmissionRefusal(reason: .credentialWrong, message: "The token is for room \(room), but \(path) belongs to another room.")
    }

    fileprivate init(_ refusal: PushRefusal, _ path: StreamPath, room: String? = nil) {
        switch refusal {
        case .otherRoom: self = .otherRoom(of: path, than: room ?? "another")
        case .noRoom:
            self.init(
                reason: .noRoom,
                message: "\(path) has no room; create one with the API first"
                    + " (the server's setting rooms.autoCreate says which pushes create their room)."
            )
        case .forbidden(let untilMs, let reason): self = .forbidden("\(path)", BanTerms(untilMs: untilMs, reason: reason))
        case .keptOut(let user, let forMs): self = .keptOut(user, of: path.description, forMs: forMs)
        case .roomClosed:
            self.init(reason: .roomClosed, message: "The room of \(path) is closed.")
        case .tooManyRooms(let wait):
            let seconds = max(1, Int(wait.rounded(.up)))
            self.init(
                reason: .rateLimited,
                message:
                    "Pushes from this address or with this credential created too many rooms"
                    + " (limits.roomsPerAddress, limits.roomsPerCredential). Try again in \(seconds) s.",
                retrySeconds: seconds)
        case .diskFull(let free, let least):
            self.init(
                reason: .diskFull,
                message: "The server's disk has \(free) bytes left, but at least \(least) must stay free (data.minFree);"
                    + " new pushes are refused.")
        case .nameTaken: self.init(reason: .nameTaken, message: "\(path) is being published by another device, on another server.")
        case .flapping:
            self.init(reason: .flapping, message: "\(path) was taken over too often; two devices use the same credential.")
        case .gone: self.init(reason: .clientClosed, message: "The connection has ended.")
        case .unavailable:
            self.init(reason: .registryUnavailable, message: "The room registry cannot be written at the moment; try again.")
        }
    }
}

/// The grants of all connections that push. Any thread.
package final class ActivePushes: Sendable {
    private struct Key: Hashable {
        let sequence: PushSequence
        let returns: Int

        init(_ grant: PushGrant) { (self.sequence, self.returns) = (grant.sequence, grant.returns) }
    }

    private struct Rows {
        var grants: [Key: PushGrant] = [:]
        /// The number of grants of each stream.
        var streams: [StreamPath: Int] = [:]
    }

    private let rows = Mutex(Rows())

    package init() {}

    package func add(_ grant: PushGrant) {
        self.rows.withLock { rows in
            if rows.grants.updateValue(grant, forKey: Key(grant)) == nil { rows.streams[grant.path, default: 0] += 1 }
        }
    }

    package func remove(_ grant: PushGrant) {
        self.rows.withLock { rows in
            guard rows.grants.removeValue(forKey: Key(grant)) != nil, let count = rows.streams[grant.path] else { return }
            rows.streams[grant.path] = count > 1 ? count - 1 : nil
        }
    }

    /// Whether somebody pushes the stream here.
    package func has(_ path: StreamPath) -> Bool { self.rows.withLock { $0.streams[path] != nil } }
    package var all: [PushGrant] { self.rows.withLock { Array($0.grants.values) } }
    package var count: Int { self.rows.withLock { $0.grants.count } }
}
