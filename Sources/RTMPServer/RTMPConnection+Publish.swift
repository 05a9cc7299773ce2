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
import Support

/// Publishing: admission, the claim on the stream, and the end.
///
/// ```
/// publish --credential--> [hook] --> room --> claim on the stream's home loop --> accepted
/// ```
/// Inbound messages wait in the decoder meanwhile (``InputGate/isDeciding``).
extension RTMPConnection {
    func decidePublish(_ streamID: UInt32, _ address: StreamAddress) {
        if TalkStreamName.isTalk(address) { return self.decideTalkPublish(streamID, address) }
        let request = AdmissionRequest(.rtmpPublish, action: .publish, address: address, remote: self.remoteAddress, session: self.id)
        switch self.services.admission.check(request) {
        case .failure(let refusal):
            self.refusePublish(streamID, refusal.reason, refusal.message, address)
        case .success(let pass):
            if let refusal = self.services.admission.pushRates.refusal(of: request, pass) {
                return self.refusePublish(streamID, refusal.reason, refusal.message, address)
            }
            let limit = self.services.config.limits.publishersTotal
            guard self.services.connections.admission.enterPublisher(limit: limit) else {
                self.services.connections.counters.limits.hit(.publishersTotal)
                let what = "The server already has its maximum of \(limit) publishers (limits.publishersTotal)."
                return self.refusePublish(streamID, .tooManyPublishers, what, address)
            }
            self.holdPlace(pushes: true)
            self.input.isDeciding = true
            let connection = NIOLoopBound(self, eventLoop: self.loop.relay.eventLoop)
            let services = self.services
            let channel = self.context?.channel
            Task {
                let answer = await services.admission.admitPublish(request, pass) { channel?.isActive ?? true }
                connection.eventLoop.execute {
                    connection.value.publishAdmitted(streamID, request, answer)
                }
            }
        }
    }

    func publishAdmitted(_ streamID: UInt32, _ request: AdmissionRequest, _ answer: Result<PublishAdmission, AdmissionRefusal>) {
        switch answer {
        case .failure(let refusal):
            self.services.connections.admission.leavePublisher()
            guard !self.isEnding, !self.isGone else { return }
            self.refusePublish(streamID, refusal.reason, refusal.message, request.address)
            self.decided()
        case .success(let admission):
            guard !self.isEnding, !self.isGone else {
                // The connection closed while it was being admitted.
                self.services.connections.admission.leavePublisher()
                return admission.session.ended(.connectionLost)
            }
            self.claim(streamID, request, admission)
        }
    }

    private func claim(_ streamID: UInt32, _ request: AdmissionRequest, _ admission: PublishAdmission) {
        let publishSession = admission.session
        let stream = self.services.streams.registry.acquire(publishSession.path.description, on: self.loop.relay)
        self.publishings.append(
            Publishing(streamID: streamID, stream: stream, request: request, admission: admission, nowMs: self.nowMs))
        let path = stream.path
        if let why = self.services.streams.origins.objection(to: self.marks, feeding: path) {
            self.endPublish(streamID, clean: true, .refused)
            self.refusePublish(streamID, .loop, why, request.address)
            return self.decided()
        }
        // Before the claim, which notifies the viewers.
        self.services.streams.origins.cameIn(path, self.marks, owner: self.owner(streamID))
        let identity = PublisherIdentity(admission.pass.identity, rank: admission.pass.rank)
        let connection = NIOLoopBound(self, eventLoop: self.loop.relay.eventLoop)
        let delegate = publishSession.delegate(RTMPRole(connection: connection, streamID: streamID))
        stream.home.run { home in
            let verdict: Result<StreamState.Token, ClaimRefusal>
            do throws(ClaimRefusal) {
                verdict = .success(
                    try home.claim(
                        stream, identity: identity, takeover: publishSession.takeover, grace: publishSession.grace,
                        // A voice's listeners have a jitter buffer, which needs the times as sent.
                        evensSound: !publishSession.isAudioOnly, delegate: delegate))
            } catch {
                verdict = .failure(error)
            }
            connection.eventLoop.execute {
                connection.value.publishDecided(streamID, request.address, verdict, on: stream)
            }
        }
    }

    private func publishDecided(
        _ streamID: UInt32, _ address: StreamAddress, _ verdict: Result<StreamState.Token, ClaimRefusal>, on stream: Relay.Stream
    ) {
        guard !self.isEnding, let publishing = self.publishings.first(where: { $0.streamID == streamID && $0.stream === stream })
        else {
            // The connection closed during the claim, and released the stream then.
            if case .success(let token) = verdict { RelayLoop.leave(stream, token: token, clean: false) }
            return
        }
        switch verdict {
        case .success(let token):
            publishing.token = token
            self.publishAccepted()
            self.services.connections.counters.update { $0.publishesStarted += 1 }
            self.services.connections.admission.pushed(self.host)
            self.services.connections.refusals.admitted(address, from: self.remoteAddress)
            publishing.admission.session.began(stream)
            self.noteRole("publish", address, room: publishing.admission.session.roomID, "Publish started")
            self.traceState("admitted", "publishes \(address.path)")
            self.session.acceptPublish(streamID)
            self.runRequests()
        case .failure(let refusal):
            self.endPublish(streamID, clean: true, .refused)
            let (reason, what): (CloseReason, String) =
                switch refusal {
                case .nameTaken:
                    (.nameTaken, "\(address.path) is being published by another device.")
                case .flapping:
                    (.flapping, "\(address.path) was taken over too often; two devices use the same credential.")
                }
            self.refusePublish(streamID, reason, what, address)
        }
        self.decided()
    }

    func refusePublish(_ streamID: UInt32, _ reason: CloseReason, _ what: String, _ address: StreamAddress) {
        let what = what + self.hint(reason, address)
        self.session.rejectPublish(streamID, Status(reason.publishCode, level: .error, reason.explaining(what)))
        self.settlePlace()
        let text = RefusalText(address, what)
        self.services.connections.refusals.note(.publish, text, reason, from: self.remoteAddress)
        self.refused(reason, "publish \(text.path): \(text.message)", address)
    }

    /// Handles a publisher's announcement of a pause.
    func announcePause(_ streamID: UInt32) {
        guard let publishing = self.publishings.first(where: { $0.streamID == streamID && $0.token != nil }) else { return }
        // Media this soon after a pause does not end it, so a repeat means nothing; a flood of repeats would fill the registry.
        if let last = publishing.pausedMs, self.nowMs - last < StreamState.pauseTailMs { return }
        publishing.pausedMs = self.nowMs
        self.publishBatch()
        RelayLoop.announcePause(publishing.stream)
        publishing.admission.session.pauseAnnounced()
    }

    /// Ends a publisher that the stream or the API has released. The log names the caller; the device does not get the name.
    func publishEnded(_ streamID: UInt32, _ token: StreamState.Token, _ end: PushEnd, by actor: Actor?) {
        guard let publishing = self.publishings.first(where: { $0.streamID == streamID && $0.token == token }) else { return }
        let (reason, what) = end.asClose
        if publishing.admission.session.endsAlone { return self.endRole(streamID, reason, what) }
        self.session.publishEnded(streamID, Status(reason.publishCode, level: .error, what))
        self.runRequests()
        self.close(reason, detail: actor.map { "\(what) By \($0.name)." } ?? what)
    }

    /// Warns that new viewers wait for the next keyframe. The operator can change the limit, or the device's keyframe interval.
    func noteCacheOverflow() {
        let cache = self.services.config.relay.gopCache
        self.log.warning(
            "The group of pictures exceeds the cache: joiners wait for the next keyframe",
            metadata: [
                "limits": """
                relay.gopCache.maxBytes \(ConfigUnits.size(bytes: cache.maxBytes)), \
                relay.gopCache.maxDuration \(ConfigUnits.duration(milliseconds: cache.maxDurationMs))
                """
            ])
    }

    /// Sends the publisher the rate that its uplink carried, if `rtmp.adviseUplink` is on.
    func adviseUplink(_ streamID: UInt32, bitsPerSecond: Int) {
        guard self.services.config.rtmp.adviseUplink, !self.isEnding else { return }
        self.session.adviseUplink(streamID, bitsPerSecond: bitsPerSecond)
        self.runRequests()
        self.writer?.flush()
    }

    /// `end`: the reason, if it is not the connection's close reason.
    func endPublish(_ streamID: UInt32, clean: Bool, _ end: PushEnd? = nil) {
        guard let index = self.publishings.firstIndex(where: { $0.streamID == streamID }) else { return }
        self.publishBatch()
        let publishing = self.publishings.remove(at: index)
        let end = end ?? (clean ? .clientStopped : self.closeReason.map(PushEnd.init) ?? .connectionLost)
        if let token = publishing.token {
            self.report(publishing, token, end)
            RelayLoop.leave(publishing.stream, token: token, clean: clean)
        }
        self.services.streams.origins.left(publishing.stream.path, owner: self.owner(streamID))
        publishing.admission.session.ended(end)
        self.services.streams.registry.release(publishing.stream)
        self.services.connections.admission.leavePublisher()
        self.settlePlace()
        if publishing.token != nil {
            self.services.connections.admission.pushed(self.host)
            self.services.rules.notifyEnded(publishing.request, pass: publishing.admission.pass, reason: self.closeReason ?? .clientClosed)
        }
    }
}

extension RTMPConnection {
    /// Words for a client whose credential may have lost its end: ffmpeg and librtmp cut a URL at its third slash, even inside the query, and take
    /// what follows for the name.
    func hint(_ reason: CloseReason, _ address: StreamAddress) -> String {
        switch reason {
        case .credentialMissing, .credentialNoTime, .credentialExpired, .credentialWrong, .hookDenied, .noRoom: break
        default: return ""
        }
        guard let app = self.connect?.app, app.contains("?") else { return "" }
        let parts = app.prefix { $0 != "?" }.split(separator: "/").count
        guard parts > 1, address.path.split(separator: "/").count > parts else { return "" }
        return " If the URL's query holds a slash, write %2F for it: the query was taken to end there."
    }

    private func report(_ publishing: Publishing, _ token: StreamState.Token, _ end: PushEnd) {
        let admission = publishing.admission
        self.services.streams.pushEnded(
            publishing.stream, token, on: self.loop, seen: admission.session.firstMedia,
            FinishedPush(
                path: publishing.stream.path, room: admission.session.roomID?.rawValue, session: self.id, user: admission.pass.user,
                address: self.address, source: self.isTLS ? .rtmps : .rtmp, client: self.connect?.flashVersion,
                durationMs: self.nowMs - publishing.sinceMs, bytes: publishing.bytes, end: end))
    }
}

extension CloseReason {
    /// A refusal's description for the client: the reason's word for programs, then the sentence.
    func explaining(_ what: String) -> String { "[\(self.rawValue)] \(what)" }

    /// The status code for a publisher. Players and devices in the field know these two.
    var publishCode: String {
        switch self {
        case .accessDenied, .credentialMissing, .credentialNoTime, .credentialExpired, .credentialWrong, .credentialThrottled, .rateLimited,
            .hookDenied, .hookUnavailable, .kicked, .serverShutdown:
            "NetStream.Publish.Denied"
        default: StatusCode.publishBadName
        }
    }
}
