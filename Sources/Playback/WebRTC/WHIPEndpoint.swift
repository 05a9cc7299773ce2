import Access
import DTLSSRTP
package import HTTPServer
import HTTPTypes
package import Hummingbird
import Listening
import Logging
import NIOCore
import RTMP
import Relay
import Rooms
import ServerConfiguration
import Streaming
package import Support
import Synchronization
import WebRTC

/// Takes streams of browsers and encoders by WebRTC: WHIP (RFC 9725). See ``WebRTCExchange``.
///
/// A push by WebRTC is a push like any other: the same credentials, addresses, hooks, rooms, limits, takeovers and grace.
package struct WHIPEndpoint: HTTPPart {
    private let services: WebRTCServices
    private let exchange: WebRTCExchange

    package static let publishRoute = "/whip/{app}/{stream}"
    private static let prefix = "/whip/"

    package init(_ services: WebRTCServices, elsewhere: @escaping WHEPEndpoint.Elsewhere) {
        self.services = services
        self.exchange = WebRTCExchange(services, prefix: Self.prefix, action: .publish, elsewhere: elsewhere)
    }

    package func door(_ request: Request) -> Door? { request.uri.path.hasPrefix(Self.prefix) ? .whip : nil }

    package func respond(to request: Request, _ context: APIContext) async -> Response {
        await self.exchange.respond(to: request, context) { query, page throws(APIError) in
            try await self.open(request, query, page, context)
        }
    }

    private func open(
        _ request: Request, _ query: String, _ page: PageRequest, _ context: APIContext
    ) async throws(APIError) -> Response {
        let playback = self.services.playback
        let path = try LivePath(
            stream: request.uri.path.dropFirst(Self.prefix.count - 1), query: query, limits: RTMP.Limits(playback.config.limits))
        guard !TalkStreamName.isTalk(path.address) else {
            throw APIError(.notFound, .notFound, "Talk is published over RTMP; there is no \(path.address.path) over WebRTC.")
        }
        let text = try await self.exchange.offer(request, context)
        let negotiation: PublishNegotiation
        do throws(SessionDescriptionError) {
            negotiation = try PublishNegotiation(try SessionOffer(text))
        } catch {
            throw WebRTCExchange.refusal(error)
        }
        let (clients, channel) = (playback.clients, context.channel)
        let remote = clients.client(peer: clients.peer(of: channel), request.headers)
        let admitted = AdmissionRequest(
            .whip, action: .publish, address: path.address, remote: remote, session: playback.connections.nextSessionID())
        let pass = try self.check(admitted, page)
        let dtls = try self.services.dtls()
        let transport = try self.exchange.transport(dtls, channel, remote)
        let admission = try await self.admit(admitted, pass)
        let push = WebRTCPublisher.Push(
            request: admitted, admission: admission, negotiation: negotiation, transport: transport,
            token: self.exchange.token(admitted.session),
            client: request.headers[.userAgent].map { String($0.prefix(PlaySession.longestClient)) })
        try await self.begin(push, dtls)
        let answer = negotiation.answer(transport, session: UInt64.random(in: 1...UInt64.max))
        return self.exchange.created(answer, push.token, transport, for: admission.pass.user, request, page, channel)
    }

    // MARK: Admission

    /// The credential and the name, and the rules of pages.
    private func check(_ request: AdmissionRequest, _ page: PageRequest) throws(APIError) -> AdmissionPass {
        let playback = self.services.playback
        let pass: AdmissionPass
        switch playback.admission.check(request) {
        case .success(let checked): pass = checked
        case .failure(let refusal): throw self.refused(refusal, request)
        }
        let shown = playback.admission.rules.showsCredential(request.address.query, .publish)
        _ = try self.exchange.pages.check(page, VerifiedCaller(pass, shown: shown))
        return pass
    }

    /// The same as for a push by RTMP. A publisher's place is held when this returns.
    private func admit(_ request: AdmissionRequest, _ pass: AdmissionPass) async throws(APIError) -> PublishAdmission {
        let playback = self.services.playback
        if let refusal = playback.admission.pushRates.refusal(of: request, pass) { throw self.refused(refusal, request) }
        let limit = playback.config.limits.publishersTotal
        guard playback.connections.admission.enterPublisher(limit: limit) else {
            playback.connections.counters.limits.hit(.publishersTotal)
            let what = "The server already has its maximum of \(limit) publishers (limits.publishersTotal)."
            throw self.refused(AdmissionRefusal(reason: .tooManyPublishers, message: what), request)
        }
        switch await playback.admission.admitPublish(request, pass, page: .mayAsk, isWanted: { true }) {
        case .success(let admission): return admission
        case .failure(let refusal):
            playback.connections.admission.leavePublisher()
            throw self.refused(refusal, request)
        }
    }

    /// Counts and records the refusal; returns its answer.
    private func refused(_ refusal: AdmissionRefusal, _ request: AdmissionRequest) -> APIError {
        let connections = self.services.playback.connections
        connections.countRefused(refusal.reason)
        let text = RefusalText(request.address, refusal.message)
        connections.refusals.note(.publish, text, refusal.reason, from: request.remote)
        if connections.closes.pass(refusal.reason, from: HostKey.of(request.remote), nowMs: LoopSweeper.nowMs) {
            connections.log.info(
                "Publish refused",
                metadata: [
                    "remote": "\(request.remote?.ipAddress ?? "unknown")", "transport": "webrtc", "reason": "\(refusal.reason.rawValue)",
                    "detail": "publish \(text.path): \(text.message)",
                ])
        }
        guard [.nameTaken, .flapping].contains(refusal.reason) else { return APIError(refusal) }
        // Another one pushes: not the caller's fault, and over in a while.
        var error = APIError(.conflict, .conflict, refusal.message)
        error.rule = refusal.reason.rawValue
        return error
    }

    // MARK: Beginning

    /// Begins the publisher's stay, on its loop.
    private func begin(_ push: WebRTCPublisher.Push, _ dtls: DTLSContext) async throws(APIError) {
        let (services, connections) = (self.services, self.services.playback.connections)
        let (id, host) = (push.request.session, HostKey.of(push.request.remote))
        services.count { $0.offers += 1 }
        func giveUp(_ refusal: AdmissionRefusal) -> APIError {
            connections.admission.leavePublisher()
            push.admission.session.ended(.refused)
            return self.refused(refusal, push.request)
        }
        guard let loop = services.loop() else {
            throw giveUp(AdmissionRefusal(reason: .serverShutdown, message: "The server is ending.", retrySeconds: 5))
        }
        if let refusal = services.open(id, host) {
            let reason: CloseReason = refusal == .tooMany ? .tooManyConnections : .tooManyFromAddress
            throw giveUp(
                AdmissionRefusal(reason: reason, message: "Too many clients by WebRTC whose connections are not up yet.", retrySeconds: 5))
        }
        if let reason = connections.admission.enterPlay(id, host) {
            services.opened(id)
            throw giveUp(
                AdmissionRefusal(reason: reason, message: "Too many connections (limits.connections, limits.connectionsPerAddress)."))
        }
        connections.admission.holds(id, host, pushes: true)
        let refusal = await withCheckedContinuation { (done: CheckedContinuation<ClaimRefusal?, Never>) in
            loop.relay.run { _ in
                let path = push.admission.session.path.description
                let inbox = WebRTCInbox(
                    loop, path, user: push.transport.user, remoteUser: push.negotiation.remote.user, isViewer: false)
                services.add(inbox, push.token)
                connections.counters.update { $0.connectionsAccepted += 1 }
                let publisher = WebRTCPublisher(push, inbox, services, dtls, services.run(of: loop), on: loop)
                publisher.claim { done.resume(returning: $0) }
            }
        }
        guard let refusal else { return }
        let path = push.request.address.path
        switch refusal {
        case .nameTaken:
            throw self.refused(
                AdmissionRefusal(reason: .nameTaken, message: "\(path) is being published by another device."), push.request)
        case .flapping:
            throw self.refused(
                AdmissionRefusal(
                    reason: .flapping, message: "\(path) was taken over too often; two devices use the same credential."), push.request)
        }
    }
}
