import Logging
import Media
import NIOCore
import RTMP
import Relay

/// Performing what the session asks for: who may publish and play, and what becomes of it.
extension RTMPConnection {
    /// Drains the session's outputs, in order.
    func performRequests() {
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
                    self.take(.data, timestamp, payload, from: publishing)
                }
            case .clearData(let streamID):
                if let publishing = self.publishings.first(where: { $0.streamID == streamID }), let token = publishing.token {
                    self.publishBatch()
                    RelayLoop.clearMetadata(of: publishing.stream, token: token)
                }
            case .pause(let streamID, let paused): self.change(streamID) { $0.setPaused($1, paused) }
            case .receiveAudio(let streamID, let wanted): self.change(streamID) { $0.setAudio($1, wanted) }
            case .receiveVideo(let streamID, let wanted): self.change(streamID) { $0.setVideo($1, wanted) }
            case .pong: break
            case .badName(let error): self.close(.badName, detail: "\(error)")
            }
        }
    }

    private func send(_ message: Message) {
        // RTMP 1.0 §5.4: protocol control on chunk stream 2; commands on 3, those of a message stream on 5 as Adobe's server does.
        let chunkStream: UInt32 = message.type.rawValue <= 6 ? 2 : (message.streamID == 0 ? 3 : 5)
        let encoder = self.encoder
        self.writer?.writeControl { encoder.encode(message, chunkStream: chunkStream, into: &$0) }
    }

    private func change(_ streamID: UInt32, _ body: (RelayLoop, Viewer) -> Void) {
        guard let viewer = self.viewers.first(where: { $0.streamID == streamID }) else { return }
        body(self.loop.relay, viewer)
    }

    private func decideConnect(_ request: ConnectRequest) {
        guard !request.app.prefix(while: { $0 != "?" }).isEmpty else {
            self.session.rejectConnect(
                Status(StatusCode.connectInvalidApp, level: .error, "The app is empty; expected rtmp://host/app/name."))
            self.performSends()
            return self.close(.badName, detail: "connect with an empty app")
        }
        let limits = RTMP.Limits(self.core.config.limits)
        guard request.app.utf8.count <= limits.nameBytes + limits.queryBytes else {
            self.session.rejectConnect(Status(StatusCode.connectInvalidApp, level: .error, "The app is too long."))
            self.performSends()
            return self.close(.badName, detail: "connect with an app of \(request.app.utf8.count) bytes")
        }
        self.connect = request
        self.session.acceptConnect()
    }

    /// The session's last words before a close: only what is to be sent.
    private func performSends() {
        while let output = self.session.nextOutput() {
            if case .send(let message) = output { self.send(message) }
        }
    }

    // MARK: Publish

    private func decidePublish(_ streamID: UInt32, _ address: StreamAddress) {
        let config = self.core.config
        guard self.mayReach(config.access.publishFrom) else {
            let what = "Publishing is not allowed from \(self.addressKey); the server's setting access.publishFrom says from where."
            return self.refusePublish(streamID, "NetStream.Publish.Denied", what, .accessDenied, address)
        }
        guard self.core.admission.enterPublisher(limit: config.limits.publishersTotal) else {
            let what = "The server has its \(config.limits.publishersTotal) publishers already (limits.publishersTotal)."
            return self.refusePublish(streamID, StatusCode.publishBadName, what, .tooManyPublishers, address)
        }
        let stream = self.core.registry.acquire(address.path, on: self.loop.relay)
        self.publishings.append(Publishing(streamID: streamID, stream: stream, nowMs: self.nowMs))
        // Without a credential the address says who it is; with one, the same device may come back from another network.
        let identity = PublisherIdentity(address.query.isEmpty ? "address \(self.addressKey)" : "query \(address.query)")
        let delegate = PublishEndRelay(connection: NIOLoopBound(self, eventLoop: self.loop.relay.eventLoop), streamID: streamID)
        self.isDeciding = true
        stream.home.run { home in
            let verdict: Result<StreamState.Token, ClaimRefusal>
            do throws(ClaimRefusal) {
                verdict = .success(try home.claim(stream, identity: identity, delegate: delegate))
            } catch {
                verdict = .failure(error)
            }
            delegate.connection.eventLoop.execute {
                delegate.connection.value.publishDecided(streamID, address, verdict, on: stream)
            }
        }
    }

    private func publishDecided(
        _ streamID: UInt32, _ address: StreamAddress, _ verdict: Result<StreamState.Token, ClaimRefusal>, on stream: Relay.Stream
    ) {
        guard self.closeReason == nil, let publishing = self.publishings.first(where: { $0.streamID == streamID && $0.stream === stream })
        else {
            // The connection went while the claim was on its way; its use of the stream was given back then.
            if case .success(let token) = verdict { RelayLoop.leave(stream, token: token, clean: false) }
            return
        }
        switch verdict {
        case .success(let token):
            publishing.token = token
            self.core.counters.update { $0.publishesStarted += 1 }
            self.noteRole("publish", address, "Publish started")
            self.session.acceptPublish(streamID)
            self.performRequests()
        case .failure(let refusal):
            self.endPublish(streamID, clean: true)
            let (reason, what): (CloseReason, String) =
                switch refusal {
                case .nameTaken:
                    (.nameTaken, "\(address.path) is being published by another device.")
                case .flapping:
                    (.flapping, "\(address.path) was taken over too often; two devices use the same credential.")
                }
            self.refusePublish(streamID, StatusCode.publishBadName, what, reason, address)
        }
        self.decided()
    }

    private func refusePublish(_ streamID: UInt32, _ code: String, _ what: String, _ reason: CloseReason, _ address: StreamAddress) {
        self.session.rejectPublish(streamID, Status(code, level: .error, what))
        self.performSends()
        self.close(reason, detail: "publish \(address.path): \(what)")
    }

    /// The stream let go of this publisher.
    fileprivate func publishEndedByStream(_ streamID: UInt32, _ token: StreamState.Token, _ reason: PublishEndReason) {
        guard self.publishings.contains(where: { $0.streamID == streamID && $0.token == token }) else { return }
        let (closeReason, what): (CloseReason, String) =
            switch reason {
            case .takenOver: (.takenOver, "The same publisher came back on another connection.")
            case .mediaIdle: (.mediaIdle, "No audio or video for \(self.core.config.relay.grace.mediaIdleMs / 1_000) s.")
            }
        self.session.publishEnded(streamID, Status(StatusCode.publishBadName, level: .error, what))
        self.performRequests()
        self.close(closeReason, detail: what)
    }

    func endPublish(_ streamID: UInt32, clean: Bool) {
        guard let index = self.publishings.firstIndex(where: { $0.streamID == streamID }) else { return }
        self.publishBatch()
        let publishing = self.publishings.remove(at: index)
        if let token = publishing.token { RelayLoop.leave(publishing.stream, token: token, clean: clean) }
        self.core.registry.release(publishing.stream)
        self.core.admission.leavePublisher()
    }

    // MARK: Play

    private func decidePlay(_ streamID: UInt32, _ address: StreamAddress) {
        let config = self.core.config
        guard self.mayReach(config.access.playFrom) else {
            let what = "Playing is not allowed from \(self.addressKey); the server's setting access.playFrom says from where."
            return self.refusePlay(streamID, what, .accessDenied, address)
        }
        let stream = self.core.registry.acquire(address.path, on: self.loop.relay)
        guard stream.enterViewer(limit: config.limits.viewersPerStream) else {
            self.core.registry.release(stream)
            let what = "\(address.path) has its \(config.limits.viewersPerStream) viewers already (limits.viewersPerStream)."
            return self.refusePlay(streamID, what, .tooManyViewers, address)
        }
        self.core.counters.update { $0.playsStarted += 1 }
        self.noteRole("play", address, "Play started")
        self.session.acceptPlay(streamID)
        self.performRequests()
        let viewer = Viewer(stream: stream, streamID: streamID, sink: self, nowMs: self.nowMs)
        self.viewers.append(viewer)
        // The answer waits in the writer, so the viewer's first media comes behind it.
        self.loop.relay.attach(viewer)
    }

    private func refusePlay(_ streamID: UInt32, _ what: String, _ reason: CloseReason, _ address: StreamAddress) {
        self.session.rejectPlay(streamID, Status(StatusCode.playFailed, level: .error, what))
        self.performSends()
        self.close(reason, detail: "play \(address.path): \(what)")
    }

    func endPlay(_ streamID: UInt32) {
        guard let index = self.viewers.firstIndex(where: { $0.streamID == streamID }) else { return }
        let viewer = self.viewers.remove(at: index)
        self.loop.relay.detach(viewer)
        viewer.stream.leaveViewer()
        self.core.registry.release(viewer.stream)
    }

    // MARK: Both

    func endRoles(clean: Bool) {
        for publishing in self.publishings { self.endPublish(publishing.streamID, clean: clean) }
        for viewer in self.viewers { self.endPlay(viewer.streamID) }
    }

    private func mayReach(_ allowed: [CIDR]) -> Bool {
        guard let address = self.remoteAddress else { return false }
        return allowed.contains { $0.contains(address) }
    }

    /// Said in every later line of this connection; of several roles the newest counts.
    private func noteRole(_ role: String, _ address: StreamAddress, _ line: Logger.Message) {
        self.log[metadataKey: "role"] = "\(role)"
        self.log[metadataKey: "app"] = "\(address.app)"
        self.log[metadataKey: "stream"] = "\(address.name)"
        guard let held = self.core.roleFlood.pass(nowMs: self.nowMs) else { return }
        self.log.info(line, metadata: held > 0 ? ["linesHeldBack": "\(held)"] : [:])
    }
}

/// Brings a stream's word to its publisher's connection, from the stream's home loop to the connection's own.
private final class PublishEndRelay: PublisherDelegate {
    let connection: NIOLoopBound<RTMPConnection>
    private let streamID: UInt32

    init(connection: NIOLoopBound<RTMPConnection>, streamID: UInt32) {
        self.connection = connection
        self.streamID = streamID
    }

    func publishEnded(_ token: StreamState.Token, reason: PublishEndReason) {
        let connection = self.connection
        let streamID = self.streamID
        connection.eventLoop.execute { connection.value.publishEndedByStream(streamID, token, reason) }
    }
}

// MARK: - ViewerSink

extension RTMPConnection: ViewerSink {
    var isReady: Bool { self.closeReason == nil && self.writer?.isReady == true }

    func write(_ vectors: UnsafeBufferPointer<IOVector>, bytes: Int) -> Int {
        self.writer?.write(vectors, bytes: bytes) ?? 0
    }

    func finish(_ message: EncodedMessage, header: UnsafeRawBufferPointer, from offset: Int) {
        self.writer?.finish(message, header: header, from: offset)
    }

    func tell(_ viewer: Viewer, _ notice: StreamNotice) {
        switch notice {
        case .arrived: self.session.publisherArrived(viewer.streamID)
        case .left: self.session.publisherLeft(viewer.streamID)
        case .dried: self.session.streamDried(viewer.streamID)
        }
        self.performRequests()
        self.writer?.flush()
    }

    func fellTooFarBehind(_ viewer: Viewer, ms: Int64) {
        self.close(.tooSlow, detail: "\(ms) ms behind live on \(viewer.stream.path); the limit is \(self.core.config.relay.maxBehindMs) ms")
    }

    func unsentBytes() -> Int { self.writer?.unsentBytes() ?? 0 }

    func setLowWater(_ bytes: Int) { self.writer?.setLowWater(bytes) }
}
