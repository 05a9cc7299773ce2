import Access
import Listening
import Logging
import Media
import NIOCore
import RTMP
import Relay
import Rooms
import ServerConfiguration
import Streaming
package import Support
package import Trace

/// One RTMP connection: bytes in, frames to streams, viewers' bytes out. The only handler of its pipeline, behind TLS if there is any.
///
/// Loop-bound. Performs the requests of ``ServerSession``, which holds the session's rules; the rules of streams are in Relay. Index: lifecycle ·
/// deadlines · closing. Reading is in `RTMPConnection+Reading.swift`, the session's requests in `RTMPConnection+Requests.swift`, `+Publish.swift` and
/// `+Play.swift`.
package final class RTMPConnection: ChannelInboundHandler, SocketWriterOwner, LiveConnection, ClosingConnection {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// A publish on one of the connection's message streams.
    package final class Publishing {
        let streamID: UInt32
        let stream: Relay.Stream
        let request: AdmissionRequest
        let admission: PublishAdmission
        @exclusivity(unchecked) var token: StreamState.Token?
        @exclusivity(unchecked) var unwrapper = TimestampUnwrapper()
        @exclusivity(unchecked) var hasMedia = false
        /// Bytes of media that the stream accepted.
        @exclusivity(unchecked) var bytes: UInt64 = 0
        /// Time of its last announced pause.
        var pausedMs: Int64?
        /// The name under which the push's credential lets the device speak in the talk channel.
        var talkName: String?
        let sinceMs: Int64

        init(streamID: UInt32, stream: Relay.Stream, request: AdmissionRequest, admission: PublishAdmission, nowMs: Int64) {
            self.streamID = streamID
            self.stream = stream
            self.request = request
            self.admission = admission
            self.sinceMs = nowMs
        }

        /// Whether the stream accepts the frame. Reports a dropped one to its publish session.
        func isWelcome(_ frame: Frame) -> Bool {
            let publishSession = self.admission.session
            if frame.kind != .audio, publishSession.isAudioOnly {
                publishSession.leftOut(false)
                return false
            }
            // Always pass frames that later frames need for decoding.
            guard !publishSession.isOpen, frame.tag.flags.contains(.coded) else { return true }
            publishSession.leftOut(true)
            return false
        }
    }

    /// Where the handshake stands.
    final class Handshake {
        var value = ServerHandshake()
    }

    package let id: UInt64
    let services: RTMPServices
    let loop: LoopContext
    let isTLS: Bool
    private(set) var remoteAddress: SocketAddress?
    /// Whose places it counts among.
    private(set) var host = HostKey.of(nil)
    /// The newest role, for the log.
    var lastRole: (name: StaticString, address: StreamAddress, room: RoomID?)?
    @exclusivity(unchecked) private(set) var context: ChannelHandlerContext?
    @exclusivity(unchecked) private(set) var writer: SocketWriter?
    /// Nil once it is done, so it lies elsewhere: connections are long, and idle ones many.
    @exclusivity(unchecked) var handshake: Handshake? = Handshake()
    // What is touched for each message is unchecked: methods of these values call nobody, so no second access can begin during one.
    @exclusivity(unchecked) var decoder: ChunkDecoder
    @exclusivity(unchecked) var session: ServerSession
    var encoder = ChunkEncoder()
    @exclusivity(unchecked) var publishings: [Publishing] = []
    @exclusivity(unchecked) var plays: [Play] = []
    @exclusivity(unchecked) var input = InputGate()
    /// Buffered bytes that are charged to the process's ledger.
    @exclusivity(unchecked) var chargedBytes = 0
    /// A publish was accepted on this connection, now or earlier.
    var isPublisher = false
    /// Whether control messages were written since the last immediate acknowledgement.
    @exclusivity(unchecked) var hasSpoken = false
    @exclusivity(unchecked) private var lifecycle = ConnectionLifecycle.opening
    let openedMs: Int64
    /// Time of opening by ``RelayLoop/punctualMs``, for the deadlines of handshake and connect.
    private let openedPunctualMs: Int64
    var handshakeDoneMs: Int64?
    /// How long the connection waited to be accepted.
    let waitedMs: Int64
    /// Time at which its loop admitted it after a wait.
    var placeMs: Int64?
    private var lastRoleMs: Int64
    private var lastPingMs: Int64
    private var receivedAtPing: UInt64 = 0
    @exclusivity(unchecked) var bytesReceived: UInt64 = 0
    /// Its flight recorder, from the first event until it has been quiet for a while.
    package var trace: SessionTrace? { didSet { self.mediaTrace = self.trace?.recorder } }
    /// Receives headers of media: the recorder of `trace`, which lives as long. Unchecked, since it is read for each message and nothing is called
    /// during that.
    @exclusivity(unchecked) var mediaTrace: HeaderRecorder?
    /// Frames of this read turn, all for one stream.
    @exclusivity(unchecked) var batch: [Frame] = []
    @exclusivity(unchecked) var batchFor: Publishing?
    var skipped = SkippedMessages()

    private static let pingIntervalMs: Int64 = 30_000
    /// Time limit of a connection that neither publishes nor plays.
    private static let unusedMs: Int64 = 60_000

    init(id: UInt64, services: RTMPServices, loop: LoopContext, isTLS: Bool) {
        self.id = id
        self.services = services
        self.loop = loop
        self.isTLS = isTLS
        let limits = services.limits
        self.decoder = ChunkDecoder(limits, maySendMedia: false)
        self.session = ServerSession(limits)
        self.openedMs = loop.relay.nowMs
        self.openedPunctualMs = loop.relay.punctualMs
        self.waitedMs = services.connections.rtmpGate.waitMs
        self.lastRoleMs = self.openedMs
        self.lastPingMs = self.openedMs
    }

    var nowMs: Int64 { self.loop.relay.nowMs }

    var connect: ConnectRequest? { self.session.connect }

    /// The close reason; nil while the connection goes on.
    var closeReason: CloseReason? { self.lifecycle.end?.reason }

    var isEnding: Bool { self.lifecycle.isEnding }

    /// Whether the channel is closed.
    var isGone: Bool { self.lifecycle.isGone }

    /// Made for each line: stored metadata would be most of an idle viewer's memory.
    var log: Logger {
        var log = self.services.log
        log[metadataKey: "conn"] = "\(self.id)"
        log[metadataKey: "remote"] = "\(self.remote)"
        guard let role = self.lastRole else { return log }
        log[metadataKey: "role"] = "\(role.name)"
        log[metadataKey: "app"] = "\(role.address.app)"
        log[metadataKey: "stream"] = "\(role.address.name)"
        if let room = role.room { log[metadataKey: "room"] = "\(room)" }
        return log
    }

    // MARK: Lifecycle

    func handlerAdded(context: ChannelHandlerContext) { if context.channel.isActive { self.open(context) } }

    func channelActive(context: ChannelHandlerContext) {
        self.open(context)
        context.fireChannelActive()
    }

    private func open(_ context: ChannelHandlerContext) {
        guard self.context == nil else { return }
        self.context = context
        self.remoteAddress = self.services.connections.clients.peer(of: context.channel)
        self.host = HostKey.of(self.remoteAddress)
        self.services.connections.counters.update { $0.connectionsAccepted += 1 }
        var descriptor: CInt?
        if !self.isTLS {
            // Not available on channels without a socket (tests): those write through the channel.
            do {
                descriptor = try context.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 }
            } catch {
                descriptor = nil
            }
        }
        self.writer = SocketWriter(owner: self, context: context, descriptor: descriptor)
        if let refusal = self.services.connections.enter(self.id, self.remoteAddress, context.channel) {
            return self.losePlace(refusal, "see limits.connections and limits.connectionsPerAddress")
        }
        self.lifecycle.admitted()
        self.loop.add(self)
        if self.services.streams.draining { self.close(.serverShutdown) }
    }

    /// Ends a connection without a place. Cuts its socket, whose descriptor others need: it has nothing to be told yet, and TLS would wait for it.
    private func losePlace(_ reason: CloseReason, _ detail: String) {
        self.close(reason, detail: detail)
        guard let context = self.context else { return }
        context.eventLoop.assumeIsolated().execute { self.context?.channel.cut() }
    }

    /// With its port. Made when it is asked for, as the log is.
    var remote: String { self.remoteAddress?.hostAndPort ?? "unknown" }

    /// The address without its port.
    var address: String { self.remoteAddress?.ipAddress ?? "unknown" }

    func channelInactive(context: ChannelHandlerContext) {
        self.writer?.invalidate()
        self.lifecycle.channelClosed()
        // Otherwise the peer's last messages are still being read, and they still count.
        if !self.input.isYielding { self.end() }
        context.fireChannelInactive()
    }

    /// Ends the roles, releases the connection's resources, and logs the end once. A second call releases resources acquired in between: a write that
    /// fails while the peer's last messages are read ends the connection, and the reader then ends it again.
    func end() {
        // A killed process's socket closes in the same orderly way as one whose user stopped. But a user's client announces the stop first.
        if !self.publishings.isEmpty {
            self.note(.connectionLost, detail: "the connection ended while publishing, without FCUnpublish or deleteStream")
        }
        self.endRoles(clean: false)
        self.loop.remove(self)
        self.charge(0)
        for action in self.lifecycle.ended() {
            switch action {
            case .giveBackPlace: self.services.connections.admission.leave(self.id)
            case .log(let end):
                self.logClose(end)
                self.endTrace(end.reason)
            }
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.writer?.invalidate()
        self.context = nil
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if !self.isEnding {
            // A TLS failure before the handshake means a peer that does not speak RTMPS.
            let reason: CloseReason = self.handshake != nil && self.isTLS ? .notRTMP : .connectionLost
            self.note(reason, detail: (error as? IOError)?.words ?? "\(error)")
        }
        context.close(promise: nil)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard let lost = event as? LostPlace, !self.isGone else { return context.fireUserInboundEventTriggered(event) }
        self.losePlace(lost.reason, "another connection needed its place, and it neither published nor played")
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if self.isTLS, context.channel.isWritable { self.writer?.proceed() }
        context.fireChannelWritabilityChanged()
    }

    // MARK: Deadlines

    /// Checks the deadlines, every 250 ms.
    package func sweep(nowMs: Int64) {
        guard !self.isEnding else { return }
        if self.publishings.isEmpty, self.trace?.isQuiet(nowMs: nowMs) == true { self.trace = nil }
        var limits: ServerConfig.Limits { self.services.config.limits }
        if self.handshake != nil {
            if self.loop.relay.punctualMs - self.openedPunctualMs > limits.handshakeMs {
                self.close(.handshakeTimeout, detail: "no complete handshake within \(limits.handshakeMs) ms (limits.handshake)")
            }
            return
        }
        if self.connect == nil {
            if self.loop.relay.punctualMs - (self.handshakeDoneMs ?? self.openedPunctualMs) > limits.connectMs {
                self.close(.connectTimeout, detail: "no connect within \(limits.connectMs) ms of the handshake (limits.connect)")
            }
            return
        }
        if let silent = self.publishings.first(where: { !$0.hasMedia && !$0.admission.session.mayBeSilent }),
            nowMs - silent.sinceMs > limits.firstMediaMs
        {
            self.close(.firstMediaTimeout, detail: "no audio or video within \(limits.firstMediaMs) ms of publish (limits.firstMedia)")
            return
        }
        if self.publishings.isEmpty && self.plays.isEmpty {
            if nowMs - self.lastRoleMs > Self.unusedMs {
                self.close(.unused, detail: "neither publish nor play for \(Self.unusedMs) ms")
                return
            }
        } else {
            self.lastRoleMs = nowMs
        }
        // Pings reveal a dead peer, since TCP_USER_TIMEOUT needs data in flight; the pongs are not judged. A pushing peer needs no pings, and its
        // pong would delay its next frame: Nagle's algorithm lets a second small piece wait for the first one's acknowledgement, which the kernel
        // here delays by 40 ms.
        if nowMs - self.lastPingMs > Self.pingIntervalMs {
            self.lastPingMs = nowMs
            let isPushing = !self.publishings.isEmpty && self.bytesReceived != self.receivedAtPing
            self.receivedAtPing = self.bytesReceived
            guard !isPushing else { return }
            self.session.ping(UInt32(truncatingIfNeeded: nowMs))
            self.runRequests()
            self.writer?.flush()
        }
    }

    // MARK: Closing

    func fail(_ error: RTMPError) {
        let reason: CloseReason =
            switch error {
            case .notRTMP, .unsupportedVersion: .notRTMP
            default: .protocolError
            }
        // A command before connect may have any name, even a secret.
        let traced = if case .unexpectedCommand = error { "a command before connect" } else { "\(error)" }
        if let limit = error.limit { self.services.connections.counters.limits.hit(limit) }
        self.close(reason, detail: error.limit.map { "\(error) (\($0.rawValue))" } ?? "\(error)", traced: traced)
    }

    /// Records the close reason; only the first one counts.
    private func note(_ reason: CloseReason, detail: String?) { self.note(reason, detail: detail, traced: detail) }

    /// `traced`: the detail as the trace shows it.
    private func note(_ reason: CloseReason, detail: String?, traced: String?) {
        guard self.lifecycle.note(reason, detail) else { return }
        self.writer?.isEnding = true
        self.traceClose(reason, traced)
    }

    /// Sends the pending output, then closes. Input that still arrives is ignored.
    package func close(_ reason: CloseReason, detail: String? = nil) { self.close(reason, detail: detail, traced: detail) }

    private func close(_ reason: CloseReason, detail: String?, traced: String?) {
        guard !self.isEnding else { return }
        self.publishBatch()
        self.note(reason, detail: detail, traced: traced)
        self.endRoles(clean: false)
        self.writer?.flush()
        self.closeWhenSent()
    }

    package func askToReconnect(to tcURL: String?) -> Bool {
        guard !self.isEnding, self.session.askToReconnect(to: tcURL) else { return false }
        self.runRequests()
        self.writer?.flush()
        return true
    }

    /// Sends publishers and players the shutdown in RTMP's terms, then closes.
    package func shutDown(_ reason: CloseReason) {
        let status = Status(StatusCode.connectAppShutdown, "The server is shutting down.")
        for publishing in self.publishings { self.session.publishEnded(publishing.streamID, status) }
        for play in self.plays { self.session.publisherLeft(play.viewer.streamID) }
        self.runRequests()
        self.close(reason)
    }

    private func logClose(_ end: ConnectionLifecycle.End) {
        self.services.connections.counters.update { $0.closed[end.reason, default: 0] += 1 }
        guard
            self.services.connections.closes.pass(
                end.reason, isPublisher: self.isPublisher, from: self.host, nowMs: self.nowMs)
        else { return }
        var metadata: Logger.Metadata = [
            "reason": "\(end.reason.rawValue)", "bytesIn": "\(self.bytesReceived)", "bytesOut": "\(self.writer?.bytesWritten ?? 0)",
            "seconds": "\((self.nowMs - self.openedMs) / 1_000)",
        ]
        if let detail = end.detail { metadata["detail"] = "\(detail)" }
        self.log.info("Connection closed", metadata: metadata)
    }

    // MARK: SocketWriterOwner

    func writerBecameReady() {
        // Iterate over a copy: a viewer's pump may end it.
        for play in Array(self.plays) { self.loop.relay.pump(play.viewer) }
    }

    func writerOverflowed() {
        self.close(.tooSlow, detail: "the client sends requests but does not read the answers")
    }

    func writeFailed() {
        self.note(.connectionLost, detail: "the socket refused a write")
        self.context?.close(promise: nil)
    }
}

extension RTMPError {
    /// The limit that the peer exceeded; nil if no setting changes it.
    fileprivate var limit: CountedLimit? {
        switch self {
        case .messageTooLarge(let type, _, _):
            switch MessageType(rawValue: type) {
            case .audio: .audioMessage
            case .video, .aggregate: .videoMessage
            default: .dataMessage
            }
        case .messageTooLargeBeforePublish: .messageBeforePublish
        case .tooManyBytesBeforePublish: .bytesBeforePublish
        case .tooManyPartialMessages: .partialMessages
        case .tooManyPartialBytes: .partialBytes
        default: nil
        }
    }
}
