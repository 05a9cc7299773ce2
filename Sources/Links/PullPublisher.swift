import Access
import Logging
import Media
import NIOCore
import Relay
import Rooms
import Streaming
import Support
import Synchronization

/// Publishes on this server the stream that a link plays on another. It is one push, from the link's first frame to its end.
///
/// Called on the link's thread; its end may also come from the stream's home loop.
final class PullPublisher: RoomPublisher {
    let sequence: PushSequence
    let rooms: any PushFacts
    private let admission: RoomAdmission
    private let grant: PushGrant
    private let stream: Relay.Stream
    private let state: Mutex<State>
    private let onEnd: @Sendable (PushEnd) -> Void
    private let session: UInt64
    /// The other server.
    private let address: String
    /// When the push began, by the steady clock.
    private let sinceMs = LoopSweeper.nowMs

    private struct State {
        var token: StreamState.Token?
        /// Bytes of media so far.
        var bytes: UInt64 = 0
        var isOver = false
    }

    private init(
        _ admission: RoomAdmission, _ grant: PushGrant, _ stream: Relay.Stream, session: UInt64, address: String,
        onEnd: @escaping @Sendable (PushEnd) -> Void
    ) {
        self.admission = admission
        self.rooms = admission.rooms
        self.grant = grant
        self.sequence = grant.sequence
        self.stream = stream
        self.session = session
        self.address = address
        self.state = Mutex(State())
        self.onEnd = onEnd
    }

    /// Gets the room's grant and claims the stream; throws the reason if either refuses. `way`: the marks of its way so far. `onEnd`: called when
    /// this server ends the push.
    static func begin(
        _ path: StreamPath, link: Int64, from address: String, way: [String], for table: LinkTable,
        onEnd: @escaping @Sendable (PushEnd) -> Void
    ) async throws(PullRefusal) -> PullPublisher {
        let (admission, streams) = (table.admission, table.streams)
        if let refusal = admission.drainRefusal { throw PullRefusal(reason: refusal.reason.rawValue, text: refusal.message) }
        if let refusal = await admission.memoryRefusal(path.description, isPublish: true) {
            throw PullRefusal(reason: refusal.reason.rawValue, text: refusal.message)
        }
        let push = PushRequest(
            path: path, clientAddress: address, session: table.connections.nextSessionID(), parameters: "link=\(link)",
            mayCreateRoom: true)
        let grant: PushGrant
        switch await admission.rooms.admitPush(push, mayMakeRoom: { nil }, isWanted: { true }) {
        case .success(let granted): grant = granted
        case .failure(let refusal): throw PullRefusal(refusal, path)
        }
        guard let loop = streams.allLoops.randomElement() else {
            throw PullRefusal(reason: CloseReason.serverShutdown.rawValue, text: "the server is shutting down")
        }
        // The stream may already have a home: the claim runs there.
        let stream = await withCheckedContinuation { done in
            loop.relay.run { relay in done.resume(returning: streams.registry.acquire(grant.path.description, on: relay)) }
        }
        let publisher = PullPublisher(admission, grant, stream, session: push.session, address: address, onEnd: onEnd)
        // Before the claim: the push may end at once, and the claim sends players the way.
        admission.pushes.add(grant)
        streams.origins.cameIn(grant.path.description, way, owner: publisher.owner)
        let claimed = await withCheckedContinuation { (done: CheckedContinuation<Bool, Never>) in
            stream.home.run { home in
                do throws(ClaimRefusal) {
                    let token = try home.claim(
                        stream, identity: PublisherIdentity("link \(link)"), grace: GracePeriods(grant.policy), delegate: publisher)
                    publisher.state.withLock { $0.token = token }
                    done.resume(returning: true)
                } catch {
                    done.resume(returning: false)
                }
            }
        }
        guard claimed else {
            admission.rooms.pushEnded(grant.sequence, .refused, returns: 0)
            admission.pushes.remove(grant)
            streams.origins.left(grant.path.description, owner: publisher.owner)
            streams.registry.release(stream)
            throw PullRefusal(reason: "name_taken", text: "\(path) is being published by another device")
        }
        streams.published(stream, grant)
        return publisher
    }

    /// Unique among all publishers here.
    var owner: String { "push \(self.sequence)" }

    func publish(_ frame: Frame) {
        let bytes = UInt64(frame.payload.readableBytes)
        let token = self.state.withLock { state -> StreamState.Token? in
            guard !state.isOver, let token = state.token else { return nil }
            state.bytes &+= bytes
            return token
        }
        guard let token else { return }
        RelayLoop.publish([frame], to: self.stream, token: token)
    }

    /// Ends the push because the link has ended.
    func leave(_ end: PushEnd) {
        guard let token = self.finish() else { return }
        self.report(token, end)
        RelayLoop.leave(self.stream, token: token, clean: end == .clientStopped)
        self.letGo(end)
    }

    func end(_ token: StreamState.Token, _ end: PushEnd, by actor: Actor?) {
        guard self.finish() != nil else { return }
        self.report(token, end)
        self.letGo(end)
        self.onEnd(end)
    }

    /// The stream's path, and the bytes from this push so far; nil once the push is over.
    var received: (path: String, bytes: UInt64)? {
        self.state.withLock { $0.isOver ? nil : $0.bytes }.map { (self.stream.path, $0) }
    }

    private func report(_ token: StreamState.Token, _ end: PushEnd) {
        self.admission.streams.pushEnded(
            self.stream, token, on: nil, seen: nil,
            FinishedPush(
                path: self.stream.path, room: self.grant.roomID.rawValue, session: self.session, user: nil, address: self.address,
                source: .pull, client: nil, durationMs: LoopSweeper.nowMs - self.sinceMs, bytes: self.state.withLock { $0.bytes }, end: end)
        )
    }

    /// Returns the token, but only once.
    private func finish() -> StreamState.Token? {
        self.state.withLock { state in
            defer { state.isOver = true }
            return state.isOver ? nil : state.token
        }
    }

    private func letGo(_ end: PushEnd) {
        self.rooms.pushEnded(self.sequence, end, returns: 0)
        self.admission.pushes.remove(self.grant)
        self.admission.streams.origins.left(self.grant.path.description, owner: self.owner)
        self.admission.streams.registry.release(self.stream)
    }
}

/// The reason why a pulled stream is not published here.
struct PullRefusal: Error {
    /// A single word, for programs.
    let reason: String
    let text: String

    init(reason: String, text: String) {
        self.reason = reason
        self.text = text
    }

    fileprivate init(_ refusal: PushRefusal, _ path: StreamPath) {
        switch refusal {
        case .forbidden: self.init(reason: "forbidden", text: "\(path) may not be published here: it is forbidden")
        // Never happens: a link has no user.
        case .keptOut(let user, _): self.init(reason: "kicked", text: "\(path) may not be published here by \(user)")
        case .roomClosed: self.init(reason: "room_closed", text: "\(path) may not be published here: its room is closed")
        case .noRoom, .otherRoom: self.init(reason: "no_room", text: "\(path) may not be published here: it has no room")
        case .tooManyRooms:
            self.init(reason: "rate_limited", text: "\(path) may not be published here: too many rooms were created recently")
        case .diskFull: self.init(reason: "disk_full", text: "\(path) may not be published here: the disk is nearly full (data.minFree)")
        case .nameTaken, .flapping: self.init(reason: "name_taken", text: "\(path) is being published on another server")
        // Never happens: a link waits for its turn.
        case .gone: self.init(reason: "gone", text: "\(path) was given up")
        case .unavailable: self.init(reason: "registry_unavailable", text: "the room registry cannot be written at the moment")
        }
    }
}
