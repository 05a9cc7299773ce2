import Access
import Listening
import Logging
import NIOCore
import RTMP
import Relay
import Rooms
import ServerConfiguration
import Streaming
package import Support

/// Playing: admission, the viewer, and the end.
extension RTMPConnection {
    /// A viewer on one of the connection's message streams, with its admission.
    struct Play {
        let viewer: Viewer
        let session: PlaySession
    }

    func decidePlay(_ streamID: UInt32, _ address: StreamAddress) {
        guard self.hasPlace || self.loop.joins.isOpen else {
            self.input.isDeciding = true
            return self.loop.joins.wait { [weak self] in self?.placeDecided(streamID, address, $0) }
        }
        if TalkStreamName.isTalk(address) { return self.decideTalkPlay(streamID, address) }
        let request = AdmissionRequest(.rtmpPlay, action: .play, address: address, remote: self.remoteAddress, session: self.id)
        switch self.services.admission.check(request) {
        case .failure(let refusal):
            self.refusePlay(streamID, refusal.message, refusal.reason, address)
        case .success(let pass):
            do throws(AdmissionRefusal) { try self.acquirePlayersPlace() } catch {
                return self.refusePlay(streamID, error.message, error.reason, address)
            }
            // Decides at once if nobody else must be asked: a thousand joins must not be a thousand tasks.
            guard self.services.admission.mustWaitToPlay(request, pass) else { return self.play(streamID, request, pass) }
            self.input.isDeciding = true
            let connection = NIOLoopBound(self, eventLoop: self.loop.relay.eventLoop)
            let services = self.services
            Task {
                let answer = await services.admission.admitPlay(request, pass)
                connection.eventLoop.execute { connection.value.playAdmitted(streamID, address, answer) }
            }
        }
    }

    /// Whether the connection has already waited for the loop, or publishes.
    private var hasPlace: Bool {
        !self.publishings.isEmpty || self.placeMs.map { self.nowMs - $0 < Self.placeLimitMs } ?? false
    }

    /// Time in which an admitted connection may begin to play without another wait.
    private static let placeLimitMs: Int64 = 5_000

    private func placeDecided(_ streamID: UInt32, _ address: StreamAddress, _ isAdmitted: Bool) {
        guard !self.isEnding, !self.isGone else { return }
        self.input.isDeciding = false
        if isAdmitted {
            self.placeMs = self.nowMs
            self.decidePlay(streamID, address)
        } else {
            // `connect` was accepted before; clients look for either status.
            let why = CloseReason.overloaded.explaining(JoinQueue.refusal)
            self.session.rejectConnection(Status(StatusCode.connectRejected, level: .error, why))
            self.refusePlay(streamID, JoinQueue.refusal, .overloaded, address)
        }
        if !self.input.isDeciding { self.decided() }
    }

    private func playAdmitted(
        _ streamID: UInt32, _ address: StreamAddress,
        _ answer: Result<(request: AdmissionRequest, pass: AdmissionPass), AdmissionRefusal>
    ) {
        guard !self.isEnding, !self.isGone else { return }
        switch answer {
        case .failure(let refusal): self.refusePlay(streamID, refusal.message, refusal.reason, address)
        case .success(let admitted): self.play(streamID, admitted.request, admitted.pass)
        }
        self.decided()
    }

    /// `listening`: the place in a talk channel, which ends with the play.
    func play(_ streamID: UInt32, _ request: AdmissionRequest, _ pass: AdmissionPass, _ listening: (any TalkListening)? = nil) {
        let address = request.address
        let grant = PlayGrant(request, pass, self.services.rules, listening)
        let marks = self.marks
        let session: PlaySession
        do throws(AdmissionRefusal) {
            if let why = self.services.streams.origins.objection(to: marks, playing: address.path) {
                throw AdmissionRefusal(reason: .loop, message: why)
            }
            session = try self.services.admission.begin(
                grant, by: self.isTLS ? .rtmps : .rtmp, client: self.connect?.flashVersion, on: self.loop, self.services.connections)
        } catch {
            grant.end(error.reason)
            return self.refusePlay(streamID, error.message, error.reason, address)
        }
        self.services.streams.origins.plays(address.path, for: marks, owner: self.owner(streamID))
        self.services.streams.wanted(address.path)
        self.noteRole("play", address, "Play started")
        self.traceState("admitted", "plays \(address.path)")
        self.session.acceptPlay(streamID, extra: self.way(of: address.path))
        self.runRequests()
        let stream = session.stream
        let played = listening?.codec == .opus ? self.services.talk.registry(of: .opus).acquire(address.path, on: self.loop.relay) : stream
        let tracks = request.track.flatMap { TrackChoice($0) } ?? (self.connect?.acceptsTracks == true ? .all : .standard)
        let viewer = Viewer(stream: played, streamID: streamID, tracks: tracks, sink: self, nowMs: self.nowMs)
        self.plays.append(Play(viewer: viewer, session: session))
        // The answer is in the writer already, so the viewer's first media follows it.
        self.loop.relay.attach(viewer)
    }

    func refusePlay(_ streamID: UInt32, _ what: String, _ reason: CloseReason, _ address: StreamAddress) {
        let what = what + self.hint(reason, address)
        self.session.rejectPlay(streamID, Status(StatusCode.playFailed, level: .error, reason.explaining(what)))
        self.settlePlace()
        let text = RefusalText(address, what)
        self.services.connections.refusals.note(.play, text, reason, from: self.remoteAddress)
        self.refused(reason, "play \(text.path): \(text.message)", address)
    }

    func endPlay(_ streamID: UInt32) {
        guard let index = self.plays.firstIndex(where: { $0.viewer.streamID == streamID }) else { return }
        let (viewer, session) = (self.plays[index].viewer, self.plays[index].session)
        self.plays.remove(at: index)
        self.loop.relay.detach(viewer)
        if self.isLink { self.services.streams.origins.playEnded(session.stream.path, owner: self.owner(streamID)) }
        if viewer.stream !== session.stream { self.services.talk.registry(of: .opus).release(viewer.stream) }
        session.end(self.closeReason ?? .clientClosed, PlaySession.Figures(viewer))
        self.settlePlace()
    }

    // MARK: Links from other servers

    /// Whether the peer is an Earshot server, which exchanges the marks of ``LoopDetector``.
    private var isLink: Bool { self.connect?.earshotPath != nil }

    /// The marks that the peer has sent.
    var marks: [String] { LoopDetector.marks(self.connect?.earshotPath) }

    /// Identifies what this connection plays or publishes, among all connections.
    package func owner(_ streamID: UInt32) -> String { "\(self.id)/\(streamID)" }

    /// The stream's marks (``LoopDetector``) if the peer is a link; empty for others.
    func way(of path: String) -> [AMF0Property] {
        guard self.isLink else { return [] }
        return [AMF0Property(name: LoopDetector.property, value: .string(LoopDetector.text(self.services.streams.origins.way(of: path))))]
    }

    /// Whether this connection plays one of these streams as this user.
    package func plays(as user: String, _ paths: Set<ExactText>) -> Bool {
        self.plays.contains { $0.session.pass.user?.exact == user.exact && paths.contains($0.viewer.stream.path.exact) }
    }

    /// Whether it publishes one of them as this user.
    package func publishes(as user: String, _ paths: Set<ExactText>) -> Bool {
        self.publishings.contains { $0.admission.pass.user?.exact == user.exact && paths.contains($0.stream.path.exact) }
    }
}
