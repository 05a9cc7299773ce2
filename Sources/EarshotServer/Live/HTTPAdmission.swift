import HTTPTypes
import NIOCore
import RTMP
import Relay
import Rooms
import Synchronization

/// Reports the end of an admitted viewer to the back end, exactly once. The back end may count viewers, so this happens whatever becomes of
/// the viewer. Any thread.
final class PlayGrant: Sendable {
    let pass: AdmissionPass
    private let request: AdmissionRequest
    private let admissions: AdmissionRules
    private let hasEnded = Atomic<Bool>(false)

    init(_ request: AdmissionRequest, _ pass: AdmissionPass, _ admissions: AdmissionRules) {
        self.request = request
        self.pass = pass
        self.admissions = admissions
    }

    deinit { self.end(.clientClosed) }

    func end(_ reason: CloseReason) {
        guard !self.hasEnded.exchange(true, ordering: .relaxed) else { return }
        self.admissions.notifyEnded(self.request, pass: self.pass, reason: reason)
    }
}

/// Admission of viewers over HTTP.
extension ServerCore {
    struct HTTPPlay: Sendable {
        let request: AdmissionRequest
        let consent: PlayGrant
        var pass: AdmissionPass { self.consent.pass }
    }

    /// Checks credential and address, the room's state and the hook, as for RTMP. Throws the answer for a refused viewer.
    func admitHTTPPlay(_ address: StreamAddress, from remote: SocketAddress?) async throws(APIError) -> HTTPPlay {
        // A talk listener needs a place in its channel, which viewers over HTTP do not take.
        guard !TalkStreamName.isTalk(address) else {
            throw APIError(.notFound, .notFound, "Talk is played over RTMP; there is no \(address.path) over HTTP.")
        }
        let request = AdmissionRequest(action: .play, address: address, remote: remote, session: self.nextSessionID())
        var answer = self.admissions.check(request, nowSeconds: WallClock.seconds)
        if case .success(let pass) = answer, self.mustWaitToPlay(request, pass) { answer = await self.admitPlay(request, pass) }
        switch answer {
        case .failure(let refusal):
            self.counters.update {
                $0.connectionsAccepted += 1
                $0.closed[refusal.reason, default: 0] += 1
            }
            throw APIError(refusal)
        case .success(let pass):
            let consent = PlayGrant(request, pass, self.admissions)
            if let why = self.rooms.playRefusal(address.path) {
                throw APIError(
                    AdmissionRefusal(
                        reason: why == .forbidden ? .forbidden : .roomClosed,
                        message: why == .forbidden ? "\(address.path) is forbidden." : "The room of \(address.path) is closed."))
            }
            if let refusal = self.keptOut(pass, of: address.path) { throw APIError(refusal) }
            // The first request for a stream of another server starts fetching it.
            if self.relayTasks.wanted(address.path) { await self.waitUntilLive(address.path) }
            return HTTPPlay(request: request, consent: consent)
        }
    }

    private static let fetchLimit = Duration.seconds(8)

    private func waitUntilLive(_ path: String) async {
        let end = ContinuousClock.now + Self.fetchLimit
        while ContinuousClock.now < end {
            let isLive = await self.onHome(of: path) { home, stream in
                home.snapshot(of: stream).map { $0.stream.phase != .idle && $0.stream.meter.messagesIn > 0 } ?? false
            }
            if isLive == true { return }
            // Cancelled because the viewer has gone.
            do { try await Task.sleep(for: .milliseconds(50)) } catch { return }
        }
    }

    /// The kinds of media in a stream that is live, or was a moment ago. Throws if there is none.
    func liveKinds(_ path: String) async throws(APIError) -> (audio: Bool, video: Bool) {
        guard let kinds = await self.media(of: path) else { throw .notFound("live stream", path) }
        // No media has arrived yet, so either kind may.
        return kinds.audio || kinds.video ? kinds : (true, true)
    }

    /// Runs `body` on the stream's home loop; returns nil if there is no such stream.
    func onHome<Value: Sendable>(
        of path: String, _ body: @escaping @Sendable (RelayLoop, Relay.Stream) -> Value
    ) async -> Value? {
        guard let stream = self.registry.find(path) else { return nil }
        return await withCheckedContinuation { done in
            stream.home.run { done.resume(returning: body($0, stream)) }
        }
    }
}

extension APIError {
    /// The HTTP answer to a viewer that is refused.
    init(_ refusal: AdmissionRefusal) {
        switch refusal.reason {
        case .roomClosed: self.init(.gone, .wrongState, refusal.message)
        case .hookUnavailable, .registryUnavailable, .tooManyViewers, .tooManyConnections, .tooManyFromAddress, .overloaded, .memoryLimit:
            self.init(.serviceUnavailable, .unavailable, refusal.message)
        case .credentialThrottled, .rateLimited: self.init(.tooManyRequests, .rateLimited, refusal.message)
        case .badName: self.init(.badRequest, .invalid, refusal.message)
        default: self.init(.forbidden, .forbidden, refusal.message)
        }
        self.rule = refusal.reason.rawValue
        if let seconds = refusal.retrySeconds { self.headers[.retryAfter] = String(seconds) }
    }
}
