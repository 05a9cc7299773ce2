import Listening
import Logging
import Media
import NIOCore
import RTMP
package import Relay
import Rooms
import ServerConfiguration
import Streaming
import Support
import Trace

/// Performs the session's requests. Publishing and playing are in files of their own.
extension RTMPConnection {
    /// Drains the session's outputs, in order.
    func runRequests() {
        while let output = self.session.nextOutput() {
            switch output {
            case .send(let message): self.send(message)
            case .setChunkSize(let size): self.encoder.chunkSize = size
            case .connect(let request): self.decideConnect(request)
            case .publish(let streamID, let address): self.decidePublish(streamID, address)
            case .play(let streamID, let address): self.decidePlay(streamID, address)
            case .unpublish(let streamID): self.endPublish(streamID, clean: true)
            case .stop(let streamID): self.endPlay(streamID)
            case .data(let streamID, let timestamp, let payload):
                if let publishing = self.publishings.first(where: { $0.streamID == streamID && $0.token != nil }) {
                    self.receive(.data, timestamp, payload, from: publishing)
                }
            case .clearData(let streamID):
                if let publishing = self.publishings.first(where: { $0.streamID == streamID }), let token = publishing.token {
                    self.publishBatch()
                    RelayLoop.clearMetadata(of: publishing.stream, token: token)
                }
            case .pause(let streamID, let paused):
                self.traceState(paused ? "paused" : "resumed")
                self.change(streamID) { $0.setPaused($1, paused) }
                if paused { self.announcePause(streamID) }
            case .receiveAudio(let streamID, let wanted): self.change(streamID) { $0.setAudio($1, wanted) }
            case .receiveVideo(let streamID, let wanted): self.change(streamID) { $0.setVideo($1, wanted) }
            case .pong: break
            case .badName(let error):
                if case .tooLong = error { self.services.connections.counters.limits.hit(.streamName) }
                self.close(.badName, detail: "\(error)")
            }
        }
    }

    private func send(_ message: Message) {
        // RTMP 1.0 §5.4: protocol control on chunk stream 2; commands on 3, those of a message stream on 5 as Adobe's server does.
        let chunkStream: UInt32 = message.type.rawValue <= 6 ? 2 : (message.streamID == 0 ? 3 : 5)
        let encoder = self.encoder
        self.hasSpoken = true
        self.trace(message, .sent)
        self.writer?.writeControl { encoder.encode(message, chunkStream: chunkStream, into: &$0) }
    }

    private func change(_ streamID: UInt32, _ body: (RelayLoop, Viewer) -> Void) {
        guard let viewer = self.plays.first(where: { $0.viewer.streamID == streamID })?.viewer else { return }
        body(self.loop.relay, viewer)
    }

    private func decideConnect(_ request: ConnectRequest) {
        guard !request.app.prefix(while: { $0 != "?" }).isEmpty else {
            self.session.rejectConnect(
                Status(StatusCode.connectInvalidApp, level: .error, "The app is empty; expected rtmp://host/app/name."))
            self.runSends()
            return self.close(.badName, detail: "connect with an empty app")
        }
        let limits = RTMP.Limits(self.services.config.limits)
        guard request.app.utf8.count <= limits.nameBytes + limits.queryBytes else {
            self.session.rejectConnect(Status(StatusCode.connectInvalidApp, level: .error, "The app is too long."))
            self.runSends()
            self.services.connections.counters.limits.hit(.streamName)
            return self.close(.badName, detail: "connect with an app of \(request.app.utf8.count) bytes")
        }
        self.services.connections.admission.stepped(self.id)
        if request.announcesPublish { self.trace?.expectPublisher() }
        // Publishers do not wait behind viewers.
        guard !request.announcesPublish, !self.loop.joins.isOpen else { return self.session.acceptConnect() }
        self.input.isDeciding = true
        self.loop.joins.wait(waitedMs: self.waitedMs) { [weak self] in self?.connectDecided($0) }
    }

    /// Answers a `connect` that was delayed because the loop had too many viewers.
    private func connectDecided(_ isAdmitted: Bool) {
        guard !self.isEnding, !self.isGone else { return }
        guard isAdmitted else {
            let what = JoinQueue.refusal
            self.session.rejectConnect(Status(StatusCode.connectRejected, level: .error, CloseReason.overloaded.explaining(what)))
            self.runSends()
            return self.close(
                .overloaded,
                detail: "the event loop is overloaded: connect was not accepted within \(JoinQueue.patienceMs) ms; see limits.lag")
        }
        self.placeMs = self.nowMs
        self.session.acceptConnect()
        self.runRequests()
        self.decided()
    }

    /// Sends the session's last messages before a close, and drops its other requests.
    func runSends() {
        while let output = self.session.nextOutput() {
            if case .send(let message) = output { self.send(message) }
        }
    }

    // MARK: Roles

    func endRoles(clean: Bool) {
        for publishing in self.publishings { self.endPublish(publishing.streamID, clean: clean) }
        for play in self.plays { self.endPlay(play.viewer.streamID) }
    }

    /// Logs the start of a role, and records it for later log lines. The newest of several roles counts.
    func noteRole(_ role: StaticString, _ address: StreamAddress, room: RoomID? = nil, _ line: Logger.Message) {
        self.lastRole = (role, address, room)
        if let channel = self.context?.channel { self.services.connections.rtmpGate.pace.settled(ObjectIdentifier(channel)) }
        guard let held = self.services.connections.roleFlood.pass(nowMs: self.nowMs) else { return }
        self.log.write(line, heldBack: held)
    }
}

// MARK: - ViewerSink

extension RTMPConnection: ViewerSink {
    package var isReady: Bool { self.writer?.isReady == true }
    package var line: DirectLine? { self.writer?.line }

    package func write(_ vectors: UnsafeBufferPointer<IOVector>, bytes: Int) -> Int {
        self.writer?.write(vectors, bytes: bytes) ?? 0
    }

    package func finish(_ message: EncodedMessage, header: UnsafeRawBufferPointer, from offset: Int) {
        self.writer?.finish(message, header: header, from: offset)
    }

    package func notify(_ viewer: Viewer, _ change: StreamChange) {
        switch change {
        case .arrived: self.session.publisherArrived(viewer.streamID, extra: self.way(of: viewer.stream.path))
        case .left: self.session.publisherLeft(viewer.streamID)
        case .dried: self.session.streamDried(viewer.streamID)
        // Does not occur in RTMP's wire format.
        case .changed: break
        }
        self.runRequests()
        self.writer?.flush()
    }

    package func skipped(_ viewer: Viewer, behindMs: Int64) {
        self.traceState("skipped", "to a keyframe, \(behindMs) ms behind live on \(viewer.stream.path)")
    }

    package func fellTooFarBehind(_ viewer: Viewer, ms: Int64) {
        self.traceState("behind", "\(ms) ms")
        self.close(
            .tooSlow,
            detail:
                "\(ms) ms behind live on \(viewer.stream.path); the limit is \(self.services.config.relay.maxBehindMs) ms (relay.maxBehind)"
        )
    }

    package func shed(_ viewer: Viewer) {
        let status = Status(StatusCode.playFailed, level: .error, CloseReason.overloaded.explaining(JoinQueue.refusal))
        self.session.playEnded(viewer.streamID, status)
        self.runRequests()
        self.close(.overloaded, detail: "the event loop has more viewers than it can serve")
    }

    package func unsentBytes() -> Int { self.writer?.unsentBytes() ?? 0 }

    package func setLowWater(_ bytes: Int) { self.writer?.setLowWater(bytes) }
}
