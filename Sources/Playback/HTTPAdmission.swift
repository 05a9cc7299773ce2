package import Access
import HTTPServer
import HTTPTypes
import Listening
import Logging
import NIOCore
import RTMP
import Relay
import Rooms
import Streaming
import Support
import Synchronization

/// Admission of viewers over HTTP.
extension PlaybackServices {
    /// Checks credential and address, the room's state and the hook, as for RTMP. Throws the answer for a refused viewer.
    func admit(_ door: Door, _ address: StreamAddress, from remote: SocketAddress?) async throws(APIError) -> HTTPPlay {
        let request = AdmissionRequest(door, action: .play, address: address, remote: remote, session: self.connections.nextSessionID())
        var answer = self.admission.check(request).map { (request: request, pass: $0) }
        if case .success(let checked) = answer, self.admission.mustWaitToPlay(request, checked.pass) {
            answer = await self.admission.admitPlay(request, checked.pass)
        }
        switch answer {
        case .failure(let refusal):
            throw self.refused(refusal, address, remote)
        case .success(let admitted):
            let path = admitted.request.address.path
            let grant = PlayGrant(admitted.request, admitted.pass, self.admission.rules)
            if let refusal = self.admission.refusal(of: admitted.pass, playing: path) { throw self.refused(refusal, address, remote) }
            // The first request for a stream of another server starts fetching it.
            if self.streams.wanted(path) { await self.waitUntilLive(path) }
            return HTTPPlay(request: admitted.request, grant: grant)
        }
    }

    /// The proof that a credential admitted the viewer, not its address.
    func verifiedCaller(_ play: HTTPPlay) -> VerifiedCaller? {
        VerifiedCaller(play.pass, shown: self.admission.rules.showsCredential(play.request.address.query, .play))
    }

    /// Throws for a page that showed a credential, or what looks like one, although its user's address alone admitted it.
    func checkPage(_ pages: PageRules, _ page: PageRequest, _ play: HTTPPlay) throws(APIError) {
        _ = try pages.check(page, self.verifiedCaller(play))
    }

    /// Counts and records the refusal of a viewer over HTTP; returns its answer.
    func refused(_ refusal: AdmissionRefusal, _ address: StreamAddress, _ remote: SocketAddress?) -> APIError {
        self.connections.countRefused(refusal.reason)
        let text = RefusalText(address, refusal.message)
        self.connections.refusals.note(.play, text, refusal.reason, from: remote)
        if self.connections.closes.pass(refusal.reason, from: HostKey.of(remote), nowMs: LoopSweeper.nowMs) {
            self.log.info(
                "Play refused",
                metadata: [
                    "remote": "\(remote?.ipAddress ?? "unknown")", "reason": "\(refusal.reason.rawValue)",
                    "detail": "play \(text.path): \(text.message)",
                ])
        }
        return APIError(refusal)
    }

    private static let fetchLimit = Duration.seconds(8)

    func waitUntilLive(_ path: String) async {
        let end = ContinuousClock.now + Self.fetchLimit
        while ContinuousClock.now < end {
            let isLive = await self.streams.onHome(of: path) { home, stream in
                home.snapshot(of: stream).map { $0.stream.phase != .idle && $0.stream.meter.messagesIn > 0 } ?? false
            }
            if isLive == true { return }
            // Cancelled because the viewer has gone.
            do { try await Task.sleep(for: .milliseconds(50)) } catch { return }
        }
    }

    /// The kinds of media in a stream that is live, or was a moment ago. Throws if there is none.
    func liveKinds(_ path: String) async throws(APIError) -> (audio: Bool, video: Bool) {
        guard let kinds = await self.streams.media(of: path) else { throw .notFound("live stream", path) }
        // No media has arrived yet, so both kinds are still possible.
        return kinds.audio || kinds.video ? kinds : (true, true)
    }
}

extension APIError {
    /// The HTTP answer to a viewer that is refused.
    package init(_ refusal: AdmissionRefusal) {
        switch refusal.reason {
        case .roomClosed: self.init(.gone, .wrongState, refusal.message)
        case .hookUnavailable, .registryUnavailable, .tooManyViewers, .tooManyPublishers, .tooManyConnections, .tooManyFromAddress,
            .overloaded, .memoryLimit, .diskFull, .serverShutdown:
            self.init(.serviceUnavailable, .unavailable, refusal.message)
        case .credentialThrottled, .rateLimited: self.init(.tooManyRequests, .rateLimited, refusal.message)
        case .badName: self.init(.badRequest, .invalid, refusal.message)
        case .noRoom, .streamEnded: self.init(.notFound, .notFound, refusal.message)
        default: self.init(.forbidden, .forbidden, refusal.message)
        }
        self.rule = refusal.reason.rawValue
        if let seconds = refusal.retrySeconds { self.headers[.retryAfter] = String(seconds) }
    }
}

extension PlaybackServices {
    /// Holds a viewer over HTTP, for two seconds at most, until the loop accepts viewers. Throws the answer if it does not.
    func waitForLoop(_ address: StreamAddress, from remote: SocketAddress?, on eventLoop: any EventLoop) async throws(APIError) {
        guard let loop = self.streams.context(of: eventLoop), loop.relay.pressure.level == .overloaded else { return }
        let isAdmitted = await withCheckedContinuation { done in
            eventLoop.execute {
                guard !loop.joins.isOpen else { return done.resume(returning: true) }
                loop.joins.wait { done.resume(returning: $0) }
            }
        }
        guard !isAdmitted else { return }
        throw self.refused(
            AdmissionRefusal(reason: .overloaded, message: JoinQueue.refusal, retrySeconds: JoinQueue.retrySeconds), address, remote)
    }
}

/// Admission of talk listeners over HTTP.
extension PlaybackServices {
    /// Checks name and credential, and takes a place in the room's channel, as for RTMP. Throws the answer for a refused listener.
    func admitListener(
        _ address: StreamAddress, from remote: SocketAddress?, on eventLoop: any EventLoop
    ) async throws(APIError) -> HTTPPlay {
        do throws(AdmissionRefusal) {
            return try await self.listener(address, from: remote, on: eventLoop)
        } catch {
            throw self.refused(error, address, remote)
        }
    }

    private func listener(
        _ address: StreamAddress, from remote: SocketAddress?, on eventLoop: any EventLoop
    ) async throws(AdmissionRefusal) -> HTTPPlay {
        let name: TalkStreamName
        do throws(TalkStreamNameError) { name = try TalkStreamName(address) } catch {
            throw AdmissionRefusal(reason: .badName, message: "\(address.path): \(error).")
        }
        if let refusal = self.admission.drainRefusal { throw refusal }
        let request = AdmissionRequest(
            .listener, action: .play, address: TalkStreamName.canonical(address), remote: remote, session: self.connections.nextSessionID())
        let checked = try self.talk.check(request, push: nil).get().pass
        if let refusal = await self.admission.memoryRefusal(name.path, isPublish: false) { throw refusal }
        let role = TalkListener(on: eventLoop)
        // Browsers play AAC in every container.
        let (own, named) = await self.talk.resolved(name, request)
        let (pass, listening) = try await self.talk.admitListener(own, named, checked, codec: .aac, role: role).get()
        return HTTPPlay(request: named, grant: PlayGrant(named, pass, self.admission.rules, listening), listener: role)
    }

    /// Returns once there is something to hear: a mix begins with its first listener. Throws the answer if nobody speaks under the name.
    func waitForTalk(_ play: HTTPPlay) async throws(APIError) {
        let address = play.request.address
        let isMix = TalkStreamName.isMix(address.streamPath)
        if isMix { await self.waitUntilLive(address.path) }
        guard await self.streams.media(of: address.path) == nil else { return }
        var error = APIError.notFound("voice", address.path)
        if isMix { error = .unavailable("\(address.path) does not begin; try again in a moment.") }
        error.headers[.retryAfter] = "1"
        throw error
    }
}
