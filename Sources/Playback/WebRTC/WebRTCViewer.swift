import Access
import DTLSSRTP
import HTTPServer
import Listening
import Logging
import NIOCore
import Packaging
import RTMP
import Relay
import ServerConfiguration
import Sockets
import Streaming
import Support
import Synchronization
import Trace
import WebRTC

extension DatagramRun: PacketOutput {}

/// A viewer by WebRTC, from its offer until either side ends. Loop-bound; datagrams come by its ``Inbox``.
final class WebRTCViewer: LiveConnection, WebRTCClient {
    /// What admission and the offer have decided.
    struct Play {
        let session: PlaySession
        let negotiation: Negotiation
        let own: Negotiation.Own
        let token: String
        let client: String?
        /// Nil while nobody publishes: the viewer waits.
        let packets: PacketStream?
    }

    let id: UInt64
    private let play: Play
    private let inbox: WebRTCInbox
    private let services: WebRTCServices
    private let loop: LoopContext
    private(set) lazy var transport = WebRTCTransport(self.peer, self.inbox, self.services.port, self.run, of: self)
    private let peer: PeerConnection
    private let run: DatagramRun
    private let openedMs: Int64
    private let charge: MemoryCharge
    private var viewer: Viewer?
    /// There once the client has proven itself.
    private var media: MediaSender?
    @exclusivity(unchecked) private var isOver = false
    private var isUnplayable = false
    private var isOpening = true
    /// Bytes that may go out now, and when they were counted.
    @exclusivity(unchecked) private var allowance = WebRTCViewer.breathBytes
    @exclusivity(unchecked) private var allowedMs: Int64 = 0
    private var isBreathing = false
    /// When the newest picture went out.
    @exclusivity(unchecked) private var pictureMs: Int64 = .min / 2
    /// Sound has gone out, or was missed for long enough.
    private var hasHeard = false
    /// The viewer asked for a keyframe while no pictures came.
    private var owesKeyframe = false
    private var countedRepeats: UInt64 = 0
    private var countedKeyframes: UInt64 = 0
    var trace: SessionTrace?

    /// A burst goes out at this pace: what comes faster, the buffers of home routers and players lose. 52 Mbit/s.
    private static let breathBytes = 32 << 10
    private static let breathMs: Int64 = 5
    /// Longest time between two pictures of a stream that is running, for a viewer that asks for a keyframe.
    private static let silenceMs: Int64 = 1_000
    /// A viewer's keys, contexts of libssl, lists of sent packets.
    private static let memoryBytes = 90 << 10
    /// Sound that is older when it comes here is late for everybody.
    private static let oldSoundMs: Int64 = 300
    /// As old may the first sound be: a player keeps what it begins with as its delay, and needs half a minute to be in step with its pictures then.
    private static let newSoundMs: Int64 = 40
    /// After such a time any sound will do.
    private static let silentMs: Int64 = 1_000

    /// On `loop`, where `play` has begun.
    init(_ play: Play, _ inbox: WebRTCInbox, _ services: WebRTCServices, _ context: DTLSContext, _ run: DatagramRun, on loop: LoopContext) {
        self.id = play.session.request.session
        self.play = play
        self.inbox = inbox
        self.services = services
        self.loop = loop
        self.run = run
        self.openedMs = loop.relay.nowMs
        self.peer = PeerConnection(play.negotiation, play.own, context, nowMs: loop.relay.nowMs)
        self.charge = MemoryCharge(services.ledger)
        self.charge.set(Self.memoryBytes)
        inbox.set(self)
        loop.add(self)
        services.port.add(inbox, user: inbox.user)
        self.record(.here, .state, "offered", "plays \(self.path), offers \(play.negotiation.offered())")
        self.transport.plan()
    }

    private var path: String { self.play.session.stream.path }
    private var connections: Connections { self.services.playback.connections }
    private var remote: String { self.play.session.request.remote?.ipAddress ?? "unknown" }

    var metadata: Logger.Metadata {
        [
            "conn": "\(self.id)", "remote": "\(self.remote)", "role": "play", "transport": "webrtc",
            "app": "\(self.play.session.request.address.app)", "stream": "\(self.play.session.request.address.name)",
        ]
    }

    // MARK: In

    /// Does what the peer's state asks for.
    func follow(nowMs: Int64) {
        self.transport.sendWaiting()
        switch self.peer.state {
        case .checking, .handshaking: return
        case .over(let end): return self.close(end.reason, detail: end.words(self.peer))
        case .connected: break
        }
        if self.isOpening { self.connected() }
        let packets = self.peer.popControlPackets()
        guard !packets.isEmpty, let media = self.media, self.transport.aim() else { return }
        if packets.contains(.goodbye) { return self.close(.clientClosed, detail: nil) }
        // By TCP nothing is lost but what it was too full for, and more would not help that.
        let wantsKeyframe = media.receive(packets, nowMs: nowMs, repeats: !self.transport.isStream, to: self.run)
        self.flush()
        if wantsKeyframe {
            self.record(.received, .message, "keyframe wanted", lasts: false)
            // While nothing comes, players ask because nothing comes. The cached pictures would only move their clocks.
            if nowMs - self.pictureMs < Self.silenceMs { self.restart(media) } else { self.owesKeyframe = true }
        }
    }

    /// Sends the cached pictures once more.
    private func restart(_ media: MediaSender) {
        self.owesKeyframe = false
        guard let viewer = self.viewer else { return }
        self.beginBurst(media)
        self.loop.relay.restart(viewer)
    }

    func wasChecked(from address: DatagramAddress) { self.record(.received, .state, "checked", "from \(address.text)") }

    private func connected() {
        self.isOpening = false
        self.media = self.peer.media
        self.services.opened(self.id)
        self.services.count { $0.connected += 1 }
        self.record(.here, .state, "connected", "after \(self.peer.connectedAfterMs ?? 0) ms, to \(self.peer.address?.text ?? "")")
        if let there = self.services.packets.find(self.path), !there.isOver, there.isReady {
            there.touch()
            return self.attach()
        }
        // Stopped for want of viewers, or not begun: the publisher may have come, or gone, since the offer.
        let (packets, path, inbox, waits) = (self.services.packets, self.path, self.inbox, self.play.packets == nil)
        Task {
            let there = await packets.use(path)
            inbox.call { client in
                guard let viewer = client as? WebRTCViewer else { return }
                if there != nil || waits { viewer.attach() } else { viewer.notify(.left) }
            }
        }
    }

    private func attach() {
        guard !self.isOver, self.viewer == nil, let media = self.media else { return }
        let stream = self.services.packets.packets.acquire(self.path, on: self.loop.relay)
        _ = stream.enterViewer(limit: .max)
        let viewer = Viewer(stream: stream, .packets, sink: self, nowMs: self.loop.relay.nowMs)
        self.viewer = viewer
        self.beginBurst(media)
        self.loop.relay.attach(viewer)
        self.loop.relay.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(Self.silentMs)) { [inbox = self.inbox] in
            (inbox.current as? WebRTCViewer)?.hasHeard = true
        }
    }

    private func beginBurst(_ media: MediaSender) {
        let packets = self.services.packets.find(self.path) ?? self.play.packets
        media.holdsPicturesBack = self.play.negotiation.hasSound && packets?.hasSound == true
        guard let times = packets?.cachedTimes else { return }
        media.begin(first: times.first, live: times.newest, nowMs: self.loop.relay.nowMs)
    }

    // MARK: Out

    func hasRoom() { if let viewer = self.viewer { self.loop.relay.pump(viewer) } }

    private func flush() {
        self.run.flush()
        let lost = self.run.popLost()
        guard lost > 0 else { return }
        self.services.port.count(lost: lost)
        // The socket's buffer is full: this viewer takes a breath.
        self.allowance = min(self.allowance, 0)
    }

    /// The publisher came back with another codec, or came with one that the waiting client does not know.
    private func refuse(_ profile: VideoProfile) {
        guard self.play.negotiation.wantsVideo, !self.isUnplayable else { return }
        self.isUnplayable = true
        let detail = "its video is \(profile.text), and the client's codecs are \(self.play.negotiation.offered("video"))"
        // The relay may be amid its round.
        self.loop.relay.eventLoop.assumeIsolated().execute { [inbox = self.inbox] in inbox.current?.close(.unplayable, detail: detail) }
    }

    /// Counts bytes that went out; past the pace, the viewer is ready again after a breath.
    private func spend(_ bytes: Int, nowMs: Int64) {
        let earned = Int(clamping: max(0, nowMs - self.allowedMs)).multipliedReportingOverflow(by: Self.breathBytes / Int(Self.breathMs))
        self.allowance =
            earned.overflow ? Self.breathBytes : min(Self.breathBytes, self.allowance + min(earned.partialValue, 2 * Self.breathBytes))
        self.allowedMs = nowMs
        self.allowance -= bytes
        guard self.allowance <= 0, !self.isBreathing else { return }
        self.isBreathing = true
        let owed = Int64(-self.allowance / (Self.breathBytes / Int(Self.breathMs)))
        self.loop.relay.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(min(1_000, owed + Self.breathMs))) {
            [inbox = self.inbox] in
            (inbox.current as? WebRTCViewer)?.breathe()
        }
    }

    private func breathe() {
        self.isBreathing = false
        self.allowance = Self.breathBytes
        self.allowedMs = self.loop.relay.nowMs
        if let viewer = self.viewer { self.loop.relay.pump(viewer) }
    }

    // MARK: Deadlines and closing

    func sweep(nowMs: Int64) {
        if self.trace?.isQuiet(nowMs: nowMs) == true { self.trace = nil }
        guard let media = self.media else { return }
        self.inbox.note(badLine: self.hasBadLine)
        if media.judgeLine(nowMs: nowMs) {
            let line = "\(Int(media.line.loss * 100)) % lost"
            if media.relief.stage == .none {
                return self.close(.tooSlow, detail: "its line takes neither the pictures nor the sound")
            }
            self.record(.here, .state, "sends \(media.relief.stage.rawValue)", line)
        }
        let (repeats, keyframes) = (media.repeated - self.countedRepeats, media.keyframeRequests - self.countedKeyframes)
        (self.countedRepeats, self.countedKeyframes) = (media.repeated, media.keyframeRequests)
        if repeats + keyframes > 0 {
            self.services.count {
                $0.repeats += repeats
                $0.keyframeRequests += keyframes
            }
        }
    }

    func shutDown(_ reason: CloseReason) { self.close(reason, detail: nil) }

    func close(_ reason: CloseReason, detail: String?) {
        guard !self.isOver else { return }
        self.isOver = true
        // The relay may be sending to it at this moment, and keeps no reference.
        self.loop.relay.eventLoop.assumeIsolated().execute { withExtendedLifetime(self) {} }
        self.record(.here, .state, "closed", detail.map { "\(reason.rawValue): \($0)" } ?? reason.rawValue)
        self.transport.close()
        if self.isOpening {
            self.services.opened(self.id)
            self.services.count { $0.failed[reason.rawValue, default: 0] += 1 }
        }
        self.services.remove(self.play.token)
        var figures = PlaySession.Figures(bytes: 0)
        if let viewer = self.viewer {
            figures = PlaySession.Figures(viewer)
            self.viewer = nil
            self.loop.relay.detach(viewer)
            viewer.stream.leaveViewer()
            self.services.packets.packets.release(viewer.stream)
        }
        figures.bytes = self.media?.bytesSent ?? 0
        self.loop.remove(self)
        self.connections.admission.leave(self.id)
        self.charge.set(0)
        self.play.session.end(reason, figures)
        self.connections.counters.update { $0.closed[reason, default: 0] += 1 }
        defer { self.endTrace(reason) }
        guard self.connections.closes.pass(reason, from: HostKey.of(self.play.session.request.remote), nowMs: self.loop.relay.nowMs) else {
            return
        }
        var metadata = self.metadata
        metadata["reason"] = "\(reason.rawValue)"
        metadata["bytesOut"] = "\(figures.bytes)"
        metadata["seconds"] = "\((self.loop.relay.nowMs - self.openedMs) / 1_000)"
        if let detail { metadata["detail"] = "\(detail)" }
        self.connections.log.info("Connection closed", metadata: metadata)
    }

    private func record(_ direction: TraceDirection, _ kind: TraceKind, _ name: String, _ text: String = "", lasts: Bool = true) {
        let nowMs = self.loop.relay.nowMs
        if self.trace == nil, lasts { self.trace = self.connections.traces.begin(nowMs: nowMs) }
        self.trace?.add(TraceEntry(atMs: nowMs, direction, kind, name, text), lasts: lasts)
    }

    private func endTrace(_ reason: CloseReason) {
        guard let trace = self.trace else { return }
        self.trace = nil
        let end = SessionTraces.End(id: self.id, reason: reason, hadRole: true, isPublisher: false, nowMs: self.loop.relay.nowMs)
        var log = self.connections.log
        for (key, value) in self.metadata { log[metadataKey: key] = value }
        self.connections.traces.ended(trace, end, log)
    }

    // MARK: Queries

    func plays(as user: String, _ paths: Set<ExactText>) -> Bool {
        self.play.session.pass.user?.exact == user.exact && paths.contains(self.path.exact)
    }

    func publishes(as user: String, _ paths: Set<ExactText>) -> Bool { false }

    func count(into figures: inout LoopFigures) {
        figures.connected(by: .webrtc)
        figures.sent(self.media?.bytesSent ?? 0, of: self.play.session.stream)
    }

    func snapshot() -> SessionSnapshot {
        // Nil until the connection is up.
        let viewer = self.viewer.flatMap { self.loop.relay.snapshot(of: $0) }
        let shown = ViewerSnapshot(
            path: self.path, behindMs: viewer?.behindMs ?? 0, isSlow: viewer?.isSlow == true || self.hasBadLine,
            skippedFrames: (viewer?.skippedFrames ?? 0) + (self.media?.spared ?? 0), bytesSent: self.media?.bytesSent ?? 0,
            messagesSent: self.media?.packetsSent ?? 0, isPaused: false,
            line: self.media.map { Self.line($0, nowMs: self.loop.relay.nowMs) })
        return SessionSnapshot(
            id: self.id, remote: self.remote, transport: .webrtc, app: self.play.session.request.address.app, client: self.play.client,
            user: self.play.session.pass.user, bytesIn: self.transport.bytesReceived, bytesOut: self.media?.bytesSent ?? 0,
            seconds: (self.loop.relay.nowMs - self.openedMs) / 1_000, publishing: [], viewers: [shown])
    }

    private var hasBadLine: Bool {
        guard let verdict = self.media?.line.verdict(nowMs: self.loop.relay.nowMs) else { return false }
        return verdict == .lossy || verdict == .congested || self.media?.relief.stage != .all
    }

    private static func line(_ media: MediaSender, nowMs: Int64) -> ViewerSnapshot.Line {
        ViewerSnapshot.Line(
            verdict: media.line.verdict(nowMs: nowMs).rawValue, loss: media.line.loss, jitterMs: media.line.jitterMs,
            roundTripMs: media.line.roundTripMs,
            queuedMs: media.line.queuedMs, repeats: media.repeated, sends: media.relief.stage.rawValue)
    }
}

extension WebRTCViewer: ViewerSink {
    var isReady: Bool { self.allowance > 0 && self.transport.isReady }

    var line: DirectLine? { nil }

    func deliver(_ message: EncodedMessage) {
        guard let media = self.media, let slab = message.slab, let start = message.start,
            let bundle = PacketBundle(UnsafeRawBufferPointer(start: start, count: message.length))
        else { return }
        let nowMs = self.loop.relay.nowMs
        // A joiner's burst is of pictures: old sound would only fill its buffer, and be heard late.
        if bundle.kind != .video, nowMs - message.arrivalMs > (self.hasHeard ? Self.oldSoundMs : Self.newSoundMs) { return }
        guard self.transport.aim() else { return }
        if bundle.kind == .video {
            let isNews = nowMs - message.arrivalMs < Self.silenceMs
            if isNews { self.pictureMs = nowMs }
            // Once this is out: the relay may be amid its round.
            if self.owesKeyframe, isNews {
                self.owesKeyframe = false
                if !bundle.isKeyframe {
                    self.loop.relay.eventLoop.assumeIsolated().execute { [inbox = self.inbox] in
                        if let viewer = inbox.current as? WebRTCViewer, let media = viewer.media { viewer.restart(media) }
                    }
                }
            }
        }
        if bundle.kind != .video { self.hasHeard = true }
        guard media.send(bundle, owner: slab, nowMs: nowMs, to: self.run) || bundle.kind != .video else {
            return self.refuse(bundle.profile)
        }
        self.flush()
        self.spend(message.length, nowMs: nowMs)
    }

    func write(_ vectors: UnsafeBufferPointer<IOVector>, bytes: Int) -> Int { bytes }
    func finish(_ message: EncodedMessage, header: UnsafeRawBufferPointer, from offset: Int) {}

    func notify(_ viewer: Viewer, _ change: StreamChange) { self.notify(change) }

    fileprivate func notify(_ change: StreamChange) {
        guard change == .left else { return }
        if let problem = self.services.packets.problem(self.path) {
            return self.close(.unplayable, detail: "\(self.path) cannot be played by WebRTC: \(problem)")
        }
        self.close(self.services.playback.admission.endOfPlay(self.path), detail: nil)
    }

    func skipped(_ viewer: Viewer, behindMs: Int64) { self.record(.here, .state, "skipped", "to a keyframe, \(behindMs) ms behind live") }

    func fellTooFarBehind(_ viewer: Viewer, ms: Int64) { self.close(.tooSlow, detail: "\(ms) ms behind live (relay.maxBehind)") }

    func shed(_ viewer: Viewer) { self.close(.overloaded, detail: "the event loop has more viewers than it can serve") }

    func unsentBytes() -> Int { 0 }
    func setLowWater(_ bytes: Int) {}
}

extension PeerConnection.End {
    /// The word for it in log, API and counters.
    var reason: CloseReason {
        switch self {
        case .goodbye: .clientClosed
        case .neverChecked, .neverProven: .handshakeTimeout
        case .handshake(let error): error == nil ? .handshakeTimeout : .protocolError
        case .consentExpired: .connectionLost
        }
    }

    /// What an operator can do about it.
    func words(_ peer: PeerConnection) -> String? {
        switch self {
        case .goodbye: nil
        case .neverChecked:
            "no ICE check of the client reached the port: it is closed on the way, or the offered address is not this server's"
                + " (webrtc.listen, webrtc.addresses)"
        case .neverProven:
            "\(peer.checks) ICE checks came from \(peer.addresses.map(\.text).joined(separator: ", ")), but the client answered none of ours"
        case .handshake(let error): error.map { "\($0)" } ?? "the DTLS handshake did not end in time"
        case .consentExpired: "the client has not answered for 30 s"
        }
    }
}

extension DatagramAddress {
    /// "192.0.2.1:8189", " by TCP"
    var text: String {
        HostPort(host: IPText.text(self.bytes), port: Int(self.port)).description + (self.connection == 0 ? "" : " by TCP")
    }
}
