import Access
import DTLSSRTP
import Listening
import Logging
import Media
import NIOCore
import RTMP
import Relay
import Rooms
import ServerConfiguration
import Sockets
import Streaming
import Support
import Trace
import WebRTC

/// A publisher by WebRTC, from its offer until either side ends. Loop-bound; datagrams come by its ``WebRTCInbox``.
final class WebRTCPublisher: LiveConnection, WebRTCClient {
    /// What admission and the offer have decided.
    struct Push {
        let request: AdmissionRequest
        let admission: PublishAdmission
        let negotiation: PublishNegotiation
        let transport: OwnTransport
        let token: String
        let client: String?
    }

    let id: UInt64
    private let push: Push
    private let inbox: WebRTCInbox
    private let services: WebRTCServices
    private let loop: LoopContext
    private let peer: PeerConnection
    private let run: DatagramRun
    private(set) lazy var transport = WebRTCTransport(self.peer, self.inbox, self.services.port, self.run, of: self)
    private let stream: Relay.Stream
    private let openedMs: Int64
    private let charge: MemoryCharge
    private var claimed: StreamState.Token?
    private var frames = PublishedFrames()
    private var isOver = false
    private var isOpening = true
    private var hasMedia = false
    /// Bytes of media that the stream accepted.
    private var bytes: UInt64 = 0
    /// Frames that could not be read, in a row.
    private var unreadable = 0
    var trace: SessionTrace?

    /// A publisher's keys, contexts of libssl, packets that wait for others.
    private static let memoryBytes = 128 << 10
    private static let mostUnreadable = 100

    /// On `loop`.
    init(_ push: Push, _ inbox: WebRTCInbox, _ services: WebRTCServices, _ context: DTLSContext, _ run: DatagramRun, on loop: LoopContext) {
        self.id = push.request.session
        self.push = push
        self.inbox = inbox
        self.services = services
        self.loop = loop
        self.run = run
        self.openedMs = loop.relay.nowMs
        self.peer = PeerConnection(push.negotiation, push.transport, context, nowMs: loop.relay.nowMs)
        self.charge = MemoryCharge(services.ledger)
        self.charge.set(Self.memoryBytes)
        self.stream = services.playback.streams.registry.acquire(push.admission.session.path.description, on: loop.relay)
        inbox.set(self)
        loop.add(self)
        services.port.add(inbox, user: inbox.user)
        self.record(.here, .state, "offered", "publishes \(self.stream.path), offers \(push.negotiation.offered())")
        self.transport.plan()
    }

    private var connections: Connections { self.services.playback.connections }
    private var streams: LiveStreams { self.services.playback.streams }
    private var session: any PublishSession { self.push.admission.session }
    private var remote: String { self.push.request.remote?.ipAddress ?? "unknown" }
    private var host: HostKey { HostKey.of(self.push.request.remote) }
    private var owner: String { "\(self.id)/whip" }

    var metadata: Logger.Metadata {
        [
            "conn": "\(self.id)", "remote": "\(self.remote)", "role": "publish", "transport": "webrtc",
            "app": "\(self.push.request.address.app)", "stream": "\(self.push.request.address.name)",
        ]
    }

    // MARK: The claim

    /// Claims the stream; `decided` is called on the loop, with the reason if it is another's. A refused publisher is over.
    func claim(_ decided: @escaping @Sendable (ClaimRefusal?) -> Void) {
        let (session, stream) = (self.session, self.stream)
        // Before the claim, which notifies the viewers.
        self.streams.origins.cameIn(stream.path, [], owner: self.owner)
        let identity = PublisherIdentity(self.push.admission.pass.identity, rank: self.push.admission.pass.rank)
        let publisher = NIOLoopBound(self, eventLoop: self.loop.relay.eventLoop)
        let delegate = session.delegate(Role(publisher: publisher))
        stream.home.run { home in
            let verdict: Result<StreamState.Token, ClaimRefusal>
            do throws(ClaimRefusal) {
                verdict = .success(
                    try home.claim(
                        stream, identity: identity, takeover: session.takeover, grace: session.grace, evensSound: false,
                        delegate: delegate))
            } catch {
                verdict = .failure(error)
            }
            publisher.eventLoop.execute {
                publisher.value.claimDecided(verdict, decided)
            }
        }
    }

    private func claimDecided(_ verdict: Result<StreamState.Token, ClaimRefusal>, _ decided: (ClaimRefusal?) -> Void) {
        switch verdict {
        case .success(let token):
            guard !self.isOver else {
                RelayLoop.leave(self.stream, token: token, clean: false)
                return decided(nil)
            }
            self.claimed = token
            self.connections.counters.update { $0.publishesStarted += 1 }
            self.connections.admission.pushed(self.host)
            self.connections.refusals.admitted(self.push.request.address, from: self.push.request.remote)
            self.session.began(self.stream)
            if let held = self.connections.roleFlood.pass(nowMs: self.loop.relay.nowMs) {
                var metadata = self.metadata
                if let room = self.session.roomID { metadata["room"] = "\(room)" }
                self.connections.log.write("Publish started", metadata, heldBack: held)
            }
            decided(nil)
        case .failure(let refusal):
            self.close(refusal == .flapping ? .flapping : .nameTaken, detail: nil)
            decided(refusal)
        }
    }

    // MARK: In

    func wasChecked(from address: DatagramAddress) { self.record(.received, .state, "checked", "from \(address.text)") }

    func hasRoom() {}

    func follow(nowMs: Int64) {
        guard !self.isOver else { return }
        self.transport.sendWaiting()
        switch self.peer.state {
        case .checking, .handshaking: return
        case .over(let end): return self.close(end.reason, detail: end.words(self.peer))
        case .connected: break
        }
        if self.isOpening { self.connected() }
        if self.peer.popControlPackets().contains(.goodbye) { return self.close(.clientClosed, detail: nil) }
        guard let publisher = self.peer.publisher else { return }
        publisher.tick(nowMs: nowMs)
        self.publish(publisher.popOutput())
    }

    private func connected() {
        self.isOpening = false
        self.services.opened(self.id)
        self.services.count { $0.connected += 1 }
        self.record(.here, .state, "connected", "after \(self.peer.connectedAfterMs ?? 0) ms, to \(self.peer.address?.text ?? "")")
    }

    private func publish(_ outputs: [MediaReceiver.Output]) {
        guard let token = self.claimed, !outputs.isEmpty else { return }
        var batch: [Frame] = []
        for output in outputs {
            do throws(MediaError) {
                batch += try self.frames.frames(output)
                self.unreadable = 0
            } catch {
                self.unreadable += 1
                guard self.unreadable < Self.mostUnreadable else {
                    return self.close(.malformedMedia, detail: "\(Self.mostUnreadable) unreadable frames in a row; the last: \(error)")
                }
            }
        }
        guard !batch.isEmpty else { return }
        if !self.hasMedia {
            self.hasMedia = true
            self.record(.here, .state, "firstMedia", self.stream.path)
        }
        for frame in batch { self.bytes &+= UInt64(frame.payload.readableBytes) }
        RelayLoop.publish(batch, to: self.stream, token: token)
    }

    // MARK: Deadlines and closing

    func sweep(nowMs: Int64) {
        if self.trace?.isQuiet(nowMs: nowMs) == true { self.trace = nil }
        guard !self.isOver else { return }
        self.charge.set(Self.memoryBytes + (self.peer.publisher?.heldBytes ?? 0))
        let limitMs = self.services.playback.config.limits.firstMediaMs
        if !self.isOpening, !self.hasMedia, !self.session.mayBeSilent, nowMs - self.openedMs > limitMs {
            self.close(.firstMediaTimeout, detail: "no audio or video within \(limitMs) ms of the offer (limits.firstMedia)")
        }
    }

    func shutDown(_ reason: CloseReason) { self.close(reason, detail: nil) }

    /// The stream or the API has released the publisher.
    fileprivate func ended(_ token: StreamState.Token, _ end: PushEnd, by actor: Actor?) {
        guard self.claimed == token else { return }
        let (reason, what) = end.asClose
        self.close(reason, detail: actor.map { "\(what) By \($0.name)." } ?? what, as: end)
    }

    func close(_ reason: CloseReason, detail: String?) { self.close(reason, detail: detail, as: nil) }

    private func close(_ reason: CloseReason, detail: String?, as end: PushEnd?) {
        guard !self.isOver else { return }
        self.isOver = true
        // The relay may be calling it at this moment.
        self.loop.relay.eventLoop.assumeIsolated().execute { withExtendedLifetime(self) {} }
        self.record(.here, .state, "closed", detail.map { "\(reason.rawValue): \($0)" } ?? reason.rawValue)
        self.transport.close()
        if self.isOpening {
            self.services.opened(self.id)
            self.services.count { $0.failed[reason.rawValue, default: 0] += 1 }
        }
        self.services.remove(self.push.token)
        let end = end ?? (reason == .clientClosed ? .clientStopped : PushEnd(reason))
        if let token = self.claimed {
            self.claimed = nil
            self.streams.pushEnded(
                self.stream, token, on: self.loop, seen: self.session.firstMedia,
                FinishedPush(
                    path: self.stream.path, room: self.session.roomID?.rawValue, session: self.id, user: self.push.admission.pass.user,
                    address: self.remote, source: .webrtc, client: self.push.client,
                    durationMs: self.loop.relay.nowMs - self.openedMs, bytes: self.bytes, end: end))
            RelayLoop.leave(self.stream, token: token, clean: end == .clientStopped)
            self.connections.admission.pushed(self.host)
            self.services.playback.admission.rules.notifyEnded(self.push.request, pass: self.push.admission.pass, reason: reason)
            self.session.ended(end)
        } else {
            self.session.ended(.refused)
        }
        self.streams.origins.left(self.stream.path, owner: self.owner)
        self.streams.registry.release(self.stream)
        self.loop.remove(self)
        self.connections.admission.leavePublisher()
        self.connections.admission.leave(self.id)
        self.charge.set(0)
        self.connections.counters.update { $0.closed[reason, default: 0] += 1 }
        defer { self.endTrace(reason) }
        guard self.connections.closes.pass(reason, from: self.host, nowMs: self.loop.relay.nowMs) else { return }
        var metadata = self.metadata
        metadata["reason"] = "\(reason.rawValue)"
        metadata["bytesIn"] = "\(self.transport.bytesReceived)"
        metadata["seconds"] = "\((self.loop.relay.nowMs - self.openedMs) / 1_000)"
        if let detail { metadata["detail"] = "\(detail)" }
        self.connections.log.info("Connection closed", metadata: metadata)
    }

    private func record(_ direction: TraceDirection, _ kind: TraceKind, _ name: String, _ text: String = "") {
        let nowMs = self.loop.relay.nowMs
        if self.trace == nil { self.trace = self.connections.traces.begin(nowMs: nowMs) }
        self.trace?.add(TraceEntry(atMs: nowMs, direction, kind, name, text), lasts: true)
    }

    private func endTrace(_ reason: CloseReason) {
        guard let trace = self.trace else { return }
        self.trace = nil
        let end = SessionTraces.End(id: self.id, reason: reason, hadRole: true, isPublisher: true, nowMs: self.loop.relay.nowMs)
        var log = self.connections.log
        for (key, value) in self.metadata { log[metadataKey: key] = value }
        self.connections.traces.ended(trace, end, log)
    }

    // MARK: Queries

    func plays(as user: String, _ paths: Set<ExactText>) -> Bool { false }

    func publishes(as user: String, _ paths: Set<ExactText>) -> Bool {
        self.claimed != nil && self.push.admission.pass.user?.exact == user.exact && paths.contains(self.stream.path.exact)
    }

    func count(into figures: inout LoopFigures) {
        figures.connected(by: .webrtc)
        if self.claimed != nil { figures.received(self.bytes, of: self.stream) }
    }

    func snapshot() -> SessionSnapshot {
        SessionSnapshot(
            id: self.id, remote: self.remote, transport: .webrtc, app: self.push.request.address.app, client: self.push.client,
            user: self.push.admission.pass.user, bytesIn: self.transport.bytesReceived, bytesOut: 0,
            seconds: (self.loop.relay.nowMs - self.openedMs) / 1_000, publishing: self.claimed == nil ? [] : [self.stream.path], viewers: []
        )
    }

    /// The publisher as its stream knows it. Any thread.
    private struct Role: ConnectedPublisher {
        let publisher: NIOLoopBound<WebRTCPublisher>

        var eventLoop: any EventLoop { self.publisher.eventLoop }

        func end(_ reason: CloseReason, _ what: String) {
            self.eventLoop.execute { self.publisher.value.close(reason, detail: what) }
        }

        func snapshot() async -> SessionSnapshot {
            await withCheckedContinuation { done in self.eventLoop.execute { done.resume(returning: self.publisher.value.snapshot()) } }
        }

        func cacheOverflowed() {}
        func uplinkCarried(bitsPerSecond: Int) {}

        func ended(_ token: StreamState.Token, _ end: PushEnd, by actor: Actor?) {
            self.eventLoop.execute { self.publisher.value.ended(token, end, by: actor) }
        }
    }
}
