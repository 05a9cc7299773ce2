import Logging
import NIOCore
import RTMP
import Relay
import Rooms

/// Playing: admission, the viewer, and the end.
extension RTMPConnection {
    /// A viewer on one of the connection's message streams, and who it is.
    struct Play {
        let viewer: Viewer
        let request: AdmissionRequest
        let pass: AdmissionPass
        /// The stream that is counted as played, whatever form of it the viewer is sent.
        let stream: Relay.Stream
        /// Its place in a talk channel.
        let listening: TalkListening?
    }

    func decidePlay(_ streamID: UInt32, _ address: StreamAddress) {
        guard self.hasPlace || self.loop.joins.isOpen else {
            self.isDeciding = true
            return self.loop.joins.wait { [weak self] in self?.placeDecided(streamID, address, $0) }
        }
        if TalkPlace.isTalk(address) { return self.decideTalkPlay(streamID, address) }
        let request = AdmissionRequest(action: .play, address: address, remote: self.remoteAddress, session: self.id)
        switch self.core.admissions.check(request, nowSeconds: WallClock.seconds) {
        case .failure(let refusal):
            self.refusePlay(streamID, refusal.message, refusal.reason, address)
        case .success(let pass):
            // At once when nobody else is to be asked: a thousand joins must not be a thousand tasks.
            guard self.core.mustWaitToPlay(request, pass) else { return self.play(streamID, request, pass) }
            self.isDeciding = true
            let connection = NIOLoopBound(self, eventLoop: self.loop.relay.eventLoop)
            let core = self.core
            Task {
                let answer = await core.admitPlay(request, pass)
                connection.eventLoop.execute { connection.value.playAdmitted(streamID, request, answer) }
            }
        }
    }

    /// It has waited for the loop already, or publishes.
    private var hasPlace: Bool {
        !self.publishings.isEmpty || self.placeMs.map { self.nowMs - $0 < Self.placeLimitMs } ?? false
    }

    /// For so long a connection that was let in may begin to play.
    private static let placeLimitMs: Int64 = 5_000

    private func placeDecided(_ streamID: UInt32, _ address: StreamAddress, _ isAdmitted: Bool) {
        guard self.closeReason == nil, !self.isGone else { return }
        self.isDeciding = false
        if isAdmitted {
            self.placeMs = self.nowMs
            self.decidePlay(streamID, address)
        } else {
            // It had its answer to connect before; clients look for either.
            let why = CloseReason.overloaded.explaining(ServerCore.overloadMessage)
            self.session.rejectConnection(Status(StatusCode.connectRejected, level: .error, why))
            self.refusePlay(streamID, ServerCore.overloadMessage, .overloaded, address)
        }
        if !self.isDeciding { self.decided() }
    }

    private func playAdmitted(_ streamID: UInt32, _ request: AdmissionRequest, _ answer: Result<AdmissionPass, AdmissionRefusal>) {
        guard self.closeReason == nil, !self.isGone else { return }
        switch answer {
        case .failure(let refusal): self.refusePlay(streamID, refusal.message, refusal.reason, request.address)
        case .success(let pass): self.play(streamID, request, pass)
        }
        self.decided()
    }

    /// `listening`: admitted to a talk channel, and ended with the play.
    func play(_ streamID: UInt32, _ request: AdmissionRequest, _ pass: AdmissionPass, _ listening: TalkListening? = nil) {
        let address = request.address
        if let why = self.core.rooms.playRefusal(address.path) {
            listening?.end()
            let isForbidden = why == .forbidden
            return self.refusePlay(
                streamID, isForbidden ? "\(address.path) is forbidden." : "The room of \(address.path) is closed.",
                isForbidden ? .forbidden : .roomClosed, address)
        }
        if let refusal = self.core.keptOut(pass, of: address.path) {
            listening?.end()
            return self.refusePlay(streamID, refusal.message, refusal.reason, address)
        }
        let marks = self.marks
        if let why = self.core.origins.objection(to: marks, playing: address.path) {
            listening?.end()
            return self.refusePlay(streamID, why, .loop, address)
        }
        let limit = self.core.config.limits.viewersPerStream
        let stream = self.core.registry.acquire(address.path, on: self.loop.relay)
        guard stream.enterViewer(limit: limit) else {
            self.core.registry.release(stream)
            listening?.end()
            let what = "\(address.path) has its \(limit) viewers already (limits.viewersPerStream)."
            return self.refusePlay(streamID, what, .tooManyViewers, address)
        }
        self.core.counters.update { $0.playsStarted += 1 }
        self.core.origins.plays(address.path, for: marks, owner: self.owner(streamID))
        self.core.relayTasks.wanted(address.path)
        self.noteRole("play", address, "Play started")
        self.session.acceptPlay(streamID, extra: self.way(of: address.path))
        self.performRequests()
        let played = listening?.codec == .opus ? self.core.talk.opusMixes.acquire(address.path, on: self.loop.relay) : stream
        let viewer = Viewer(stream: played, streamID: streamID, sink: self, nowMs: self.nowMs)
        self.plays.append(Play(viewer: viewer, request: request, pass: pass, stream: stream, listening: listening))
        // The answer waits in the writer, so the viewer's first media comes behind it.
        self.loop.relay.attach(viewer)
    }

    func refusePlay(_ streamID: UInt32, _ what: String, _ reason: CloseReason, _ address: StreamAddress) {
        self.session.rejectPlay(streamID, Status(StatusCode.playFailed, level: .error, reason.explaining(what)))
        self.refused(reason, "play \(address.path): \(what)", address)
    }

    func endPlay(_ streamID: UInt32) {
        guard let index = self.plays.firstIndex(where: { $0.viewer.streamID == streamID }) else { return }
        let play = self.plays.remove(at: index)
        self.loop.relay.detach(play.viewer)
        play.stream.leaveViewer()
        if self.isLink { self.core.origins.playEnded(play.stream.path, owner: self.owner(streamID)) }
        if play.viewer.stream !== play.stream { self.core.talk.opusMixes.release(play.viewer.stream) }
        self.core.registry.release(play.stream)
        play.listening?.end()
        self.core.admissions.tellEnded(play.request, pass: play.pass, reason: self.closeReason ?? .clientClosed)
    }

    // MARK: Links of other servers

    /// It comes from a server that tells and heeds the ways of streams.
    private var isLink: Bool { self.connect?.earshotPath != nil }

    /// What such a server has told.
    var marks: [String] { StreamOrigins.marks(self.connect?.earshotPath) }

    /// What this connection plays or publishes there, among all that do.
    func owner(_ streamID: UInt32) -> String { "\(self.id)/\(streamID)" }

    /// The way of a stream, for a server that heeds it.
    func way(of path: String) -> [AMF0Property] {
        guard self.isLink else { return [] }
        return [AMF0Property(name: StreamOrigins.property, value: .string(StreamOrigins.text(self.core.origins.way(of: path))))]
    }

    /// Whether this connection plays one of these streams as this user.
    func plays(as user: String, _ paths: Set<String>) -> Bool {
        self.plays.contains { $0.pass.user == user && paths.contains($0.viewer.stream.path) }
    }

    /// Whether it publishes one of them as this user.
    func publishes(as user: String, _ paths: Set<String>) -> Bool {
        self.publishings.contains { $0.admission.pass.user == user && paths.contains($0.stream.path) }
    }
}
