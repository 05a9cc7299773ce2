import Access
import HTTPServer
import Listening
import Logging
import NIOCore
import Packaging
import RTMP
import Relay
import ServerConfiguration
import Streaming
import Support
import Trace

/// A viewer of one stream over HTTP or WebSocket, until either side ends. Loop-bound; joins the pipeline once the answer's head is written.
///
/// Like RTMP connections, it writes from its loop's ring through ``SocketWriter``: over plain TCP directly to the socket.
final class LiveViewer: ChannelInboundHandler, SocketWriterOwner, LiveConnection, ClosingConnection {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The outcome of admission, decided before the viewer exists.
    struct Play: Sendable {
        let request: AdmissionRequest
        let grant: PlayGrant
        /// Its place in a talk channel, which may end it; nil for a stream's viewer.
        let listener: TalkListener?
        let wireFormat: WireFormat
        let transport: SessionSnapshot.Transport
        /// Bytes sent before the first message; over a WebSocket, whole messages.
        let preface: ByteBuffer
        /// The client's User-Agent.
        let client: String?

        var isOfPieces: Bool { self.wireFormat == .payloadOverHTTP || self.wireFormat == .payloadOverWebSocket }
        var isWebSocket: Bool { self.wireFormat == .flvOverWebSocket || self.wireFormat == .payloadOverWebSocket }
    }

    let id: UInt64
    let play: Play
    let services: PlaybackServices
    private let isSecure: Bool
    /// Whether the channel is a stream of an HTTP/2 connection. The parent channel then owns the socket.
    private let isMultiplexed: Bool
    private(set) var context: ChannelHandlerContext?
    private(set) var loop: LoopContext?
    private(set) var writer: SocketWriter?
    private var viewer: Viewer?
    /// Counts for the publisher's stream, even if the viewer plays pieces remuxed from it.
    private var session: PlaySession?
    private var reader: WebSocketReader
    private var frameRate = WebSocketFrameRate()
    private var closeReason: CloseReason?
    private var closeDetail: String?
    private var bytesReceived: UInt64 = 0
    private var openedMs: Int64 = 0
    private var lastPingMs: Int64 = 0
    /// Its flight recorder, from the request until it has been quiet for a while.
    var trace: SessionTrace?
    /// Whether the viewer is counted against the limits of connections.
    private var isAdmitted = false

    private static let pingMs: Int64 = 15_000

    /// Parses the frames that a player's WebSocket sends: pings, pongs and closes.
    static var inputReader: WebSocketReader { WebSocketReader(messageBytes: 4 << 10) }

    /// `reader`: may hold the first bytes of a frame that began earlier.
    init(_ play: Play, services: PlaybackServices, isSecure: Bool, isMultiplexed: Bool, reader: WebSocketReader = LiveViewer.inputReader) {
        self.id = play.request.session
        self.play = play
        self.services = services
        self.isSecure = isSecure
        self.isMultiplexed = isMultiplexed
        self.reader = reader
    }

    var log: Logger {
        var log = self.services.log
        log[metadataKey: "conn"] = "\(self.id)"
        log[metadataKey: "remote"] = "\(self.remote)"
        log[metadataKey: "role"] = "play"
        log[metadataKey: "transport"] = "\(self.play.transport.rawValue)"
        log[metadataKey: "app"] = "\(self.play.request.address.app)"
        log[metadataKey: "stream"] = "\(self.play.request.address.name)"
        return log
    }

    /// The client's address; with its port unless a proxy told of it.
    private var remote: String { self.play.request.remote?.shown ?? "unknown" }

    // MARK: Life

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        guard let loop = self.services.streams.context(of: context.eventLoop), context.channel.isActive else {
            context.close(promise: nil)
            return
        }
        self.loop = loop
        // On systems without these options, slow viewers are found later.
        let socket = self.isMultiplexed ? context.channel.parent : context.channel
        try? socket?.syncOptions?.setOption(.tcpOption(.tcpNotSentLowWater), value: ViewerSocket.notSentBytes)
        try? socket?.syncOptions?.setOption(.tcpOption(.tcpUserTimeout), value: ViewerSocket.timeoutMs)
        var descriptor: CInt?
        if !self.isSecure {
            descriptor = try? context.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 }
        }
        let writer = SocketWriter(owner: self, context: context, descriptor: descriptor)
        self.writer = writer
        // The channel may still hold our head and answers to earlier requests.
        writer.waitForChannel()
        self.openedMs = loop.relay.nowMs
        self.lastPingMs = self.openedMs
        self.services.connections.counters.update { $0.connectionsAccepted += 1 }
        if let refusal = self.services.connections.admission.enterPlay(self.id, HostKey.of(self.play.request.remote)) {
            return self.close(refusal, detail: "see limits.connections and limits.connectionsPerAddress")
        }
        self.isAdmitted = true
        loop.add(self)
        self.traceRequest()
        self.begin(loop, writer)
    }

    private func begin(_ loop: LoopContext, _ writer: SocketWriter) {
        let path = self.play.request.address.path
        if let end = self.play.listener?.begin(self) { return self.close(end.reason, detail: end.what) }
        let session: PlaySession
        do throws(AdmissionRefusal) {
            session = try self.services.admission.begin(
                self.play.grant, by: self.play.transport, client: self.play.client, on: loop, self.services.connections)
        } catch {
            return self.close(error.reason, detail: error.message)
        }
        if let held = self.services.connections.roleFlood.pass(nowMs: loop.relay.nowMs) {
            self.log.write("Play started", heldBack: held)
        }
        self.session = session
        var played = session.stream
        if self.play.isOfPieces {
            played = self.services.remuxers.pieces.acquire(path, on: loop.relay)
            _ = played.enterViewer(limit: .max)
        }
        let viewer = Viewer(
            stream: played, self.play.wireFormat, tracks: self.play.request.track.flatMap { TrackChoice($0) } ?? .standard, sink: self,
            nowMs: loop.relay.nowMs)
        self.viewer = viewer
        self.send(self.play.preface)
        // A write may find the connection gone, which ends all at once: nothing is left to attach.
        guard self.viewer != nil else { return }
        self.record(.here, .state, "admitted", "plays \(path)")
        loop.relay.attach(viewer)
    }

    /// Sends bytes that are not a message of the stream, such as the file's header.
    private func send(_ bytes: ByteBuffer) {
        guard bytes.readableBytes > 0 else { return }
        self.writer?.writeControl { buffer in
            if self.play.isWebSocket {
                buffer.writeImmutableBuffer(bytes)
            } else {
                buffer.writeString(String(bytes.readableBytes, radix: 16) + "\r\n")
                buffer.writeImmutableBuffer(bytes)
                buffer.writeString("\r\n")
            }
        }
        self.writer?.flush()
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.writer?.invalidate()
        self.end()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.writer?.invalidate()
        self.end()
        self.context = nil
    }

    /// Releases everything and logs the end. Runs once.
    private func end() {
        self.endPlay()
        self.play.grant.end(self.closeReason ?? .clientClosed)
        guard let loop = self.loop else { return }
        self.loop = nil
        loop.remove(self)
        if self.isAdmitted { self.services.connections.admission.leave(self.id) }
        let reason = self.closeReason ?? .clientClosed
        self.services.connections.counters.update { $0.closed[reason, default: 0] += 1 }
        defer { self.endTrace(reason, loop) }
        guard self.services.connections.closes.pass(reason, from: HostKey.of(self.play.request.remote), nowMs: loop.relay.nowMs) else {
            return
        }
        var metadata: Logger.Metadata = [
            "reason": "\(reason.rawValue)", "bytesOut": "\(self.writer?.bytesWritten ?? 0)",
            "seconds": "\((loop.relay.nowMs - self.openedMs) / 1_000)",
        ]
        if let detail = self.closeDetail { metadata["detail"] = "\(detail)" }
        self.log.info("Connection closed", metadata: metadata)
    }

    private func endPlay() {
        guard let viewer = self.viewer, let loop = self.loop else { return }
        self.viewer = nil
        loop.relay.detach(viewer)
        if self.play.isOfPieces {
            viewer.stream.leaveViewer()
            self.services.remuxers.pieces.release(viewer.stream)
        }
        self.session?.end(self.closeReason ?? .clientClosed, PlaySession.Figures(viewer))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if self.closeReason == nil {
            self.closeReason = .connectionLost
            self.closeDetail = (error as? IOError)?.words ?? "\(error)"
        }
        context.close(promise: nil)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is ChannelShouldQuiesceEvent: self.close(.serverShutdown, detail: nil)
        case ChannelEvent.inputClosed as ChannelEvent: context.close(promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if self.isSecure, context.channel.isWritable { self.writer?.proceed() }
        context.fireChannelWritabilityChanged()
    }

    // MARK: In

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = self.unwrapInboundIn(data)
        self.bytesReceived &+= UInt64(bytes.readableBytes)
        // Over HTTP, ignore input after the request.
        guard self.play.isWebSocket, self.closeReason == nil else { return }
        self.reader.append(&bytes)
        let framesBefore = self.reader.frames
        do throws(WebSocketError) {
            while self.closeReason == nil, let input = try self.reader.next() {
                switch input {
                case .ping(let payload):
                    self.record(.received, .frame, "ping", lasts: false)
                    self.writer?.writeControl { $0.writeImmutableBuffer(WebSocketWriter.pong(payload)) }
                    self.writer?.flush()
                case .close:
                    self.record(.received, .frame, "close")
                    self.close(.clientClosed, detail: nil)
                case .pong: self.record(.received, .frame, "pong", lasts: false)
                case .text, .binary: break
                }
            }
            guard self.closeReason == nil, let nowMs = self.loop?.relay.nowMs else { return }
            if !self.frameRate.admits(self.reader.frames - framesBefore, nowMs: nowMs) {
                self.close(.protocolError, detail: "more than \(WebSocketFrameRate.perSecond) WebSocket frames a second")
            }
        } catch {
            self.close(.protocolError, detail: error.reason)
        }
    }

    // MARK: Deadlines and closing

    func sweep(nowMs: Int64) {
        if self.trace?.isQuiet(nowMs: nowMs) == true { self.trace = nil }
        guard self.play.isWebSocket, self.closeReason == nil, nowMs - self.lastPingMs >= Self.pingMs else { return }
        self.lastPingMs = nowMs
        self.record(.sent, .frame, "ping", lasts: false)
        self.writer?.writeControl { $0.writeImmutableBuffer(WebSocketWriter.ping()) }
        self.writer?.flush()
    }

    func shutDown(_ reason: CloseReason) { self.close(reason, detail: nil) }

    /// Ends the body properly, unless the viewer is disconnected for being slow. Players can then distinguish an end from a broken connection.
    func close(_ reason: CloseReason, detail: String?) {
        guard self.closeReason == nil else { return }
        self.closeReason = reason
        self.closeDetail = detail
        self.record(.here, .state, "closed", detail.map { "\(reason.rawValue): \($0)" } ?? reason.rawValue)
        self.endPlay()
        if reason != .tooSlow {
            self.writer?.writeControl { buffer in
                if self.play.isWebSocket {
                    let isOver = reason == .clientClosed || reason == .streamEnded
                    buffer.writeImmutableBuffer(WebSocketWriter.close(isOver ? 1000 : 1008, reason.rawValue))
                } else {
                    buffer.writeString("0\r\n\r\n")
                }
            }
            self.writer?.flush()
        }
        self.writer?.isEnding = true
        self.closeWhenSent()
    }

    // MARK: SocketWriterOwner

    func writerBecameReady() {
        guard let viewer = self.viewer else { return }
        self.loop?.relay.pump(viewer)
    }

    func writerOverflowed() { self.close(.tooSlow, detail: "the client does not read") }

    func writeFailed() {
        if self.closeReason == nil {
            self.closeReason = .connectionLost
            self.closeDetail = "the socket refused a write"
        }
        self.context?.close(promise: nil)
    }

    // MARK: Queries

    func plays(as user: String, _ paths: Set<ExactText>) -> Bool {
        self.viewer != nil && self.play.grant.pass.user?.exact == user.exact && paths.contains(self.play.request.address.path.exact)
    }

    func publishes(as user: String, _ paths: Set<ExactText>) -> Bool { false }

    func count(into figures: inout LoopFigures) {
        figures.connected(by: self.play.transport)
        if let viewer = self.viewer, let session = self.session { figures.sent(viewer.bytesSent, of: session.stream) }
    }

    func snapshot() -> SessionSnapshot {
        let nowMs = self.loop?.relay.nowMs ?? self.openedMs
        let viewer = self.viewer.flatMap { viewer in self.loop.map { $0.relay.snapshot(of: viewer) } }
        return SessionSnapshot(
            id: self.id, remote: self.remote, transport: self.play.transport, app: self.play.request.address.app,
            client: self.play.client.map { String($0.prefix(PlaySession.longestClient)) }, user: self.play.grant.pass.user,
            bytesIn: self.bytesReceived, bytesOut: self.writer?.bytesWritten ?? 0, seconds: (nowMs - self.openedMs) / 1_000, publishing: [],
            viewers: viewer.map { [$0] } ?? [])
    }
}
