import Access
import DTLSSRTP
package import HTTPServer
import HTTPTypes
package import Hummingbird
import Listening
import Logging
import NIOCore
import Packaging
import RTMP
import Relay
import Rooms
import ServerConfiguration
import Sockets
import Streaming
package import Support
import Synchronization
import WebRTC

/// Plays streams to browsers by WebRTC: WHEP (draft-ietf-wish-whep), the sibling of RFC 9725. See ``WebRTCExchange``.
///
/// Admission works as for every play: by the query's credential, or the same as `Authorization: Bearer`, the address and the hook.
package struct WHEPEndpoint: HTTPPart {
    /// Another node's answer to a request at the address of a session with this number; nil if no other node has it.
    package typealias Elsewhere = @Sendable (_ number: UInt64, Request, ByteBuffer) async throws(APIError) -> Response?

    private let services: WebRTCServices
    private let exchange: WebRTCExchange

    package static let playRoute = "/whep/{app}/{stream}"
    private static let prefix = "/whep/"

    package init(_ services: WebRTCServices, elsewhere: @escaping Elsewhere) {
        self.services = services
        self.exchange = WebRTCExchange(services, prefix: Self.prefix, action: .play, elsewhere: elsewhere)
    }

    package func door(_ request: Request) -> Door? { request.uri.path.hasPrefix(Self.prefix) ? .whep : nil }

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
            throw APIError(.notFound, .notFound, "Talk is played over RTMP, .flv and .mp4; there is no \(path.address.path) over WebRTC.")
        }
        let text = try await self.exchange.offer(request, context)
        var negotiation: Negotiation
        do throws(SessionDescriptionError) {
            negotiation = try Negotiation(try SessionOffer(text))
        } catch {
            throw WebRTCExchange.refusal(error)
        }
        let (clients, channel) = (playback.clients, context.channel)
        let remote = clients.client(peer: clients.peer(of: channel), request.headers)
        let play = try await playback.admit(.whep, path.address, from: remote)
        try playback.checkPage(self.exchange.pages, page, play)
        // Throws 404 for a stream that nobody will publish; a session may wait for one that somebody may.
        let waits = try await playback.mustWait(play)
        let streamPath = play.request.address.path
        if let problem = self.services.packets.problem(streamPath) { throw Self.unplayable(streamPath, "\(problem)") }
        let packets = waits ? nil : await self.services.packets.use(streamPath)
        if !waits, packets == nil { throw .notFound("live stream", streamPath) }
        if let problem = packets?.problem { throw Self.unplayable(streamPath, "\(problem)") }
        if negotiation.wantsVideo, let profile = packets?.video {
            guard negotiation.narrow(to: profile) else {
                let advice = profile.codec == .h264 ? "" : "push H.264, or "
                throw Self.unplayable(
                    streamPath,
                    "its video is \(profile.text), and the client's codecs are \(negotiation.offered("video")): \(advice)play it by HLS, .flv or .mp4"
                )
            }
        } else if negotiation.wantsVideo, !negotiation.hasVideo {
            let kinds = waits ? nil : await playback.streams.media(of: streamPath)
            guard kinds?.video == false else {
                throw Self.unplayable(
                    streamPath,
                    "the client's video codecs are \(negotiation.offered("video")), and this server sends H.264 with packetization-mode=1, H.265,"
                        + " VP9 and AV1")
            }
        }
        let source = UInt32.random(in: 1...(UInt32.max - 2))
        let dtls = try self.services.dtls()
        let transport = try self.exchange.transport(dtls, channel, remote)
        let own = Negotiation.Own(transport, videoSource: source, repeatSource: source + 1, soundSource: source + 2)
        let token = self.exchange.token(play.request.session)
        try await self.begin(play, negotiation, own, dtls, token, packets, client: request.headers[.userAgent])
        let answer = negotiation.answer(own, session: UInt64.random(in: 1...UInt64.max))
        return self.exchange.created(answer, token, transport, for: play.pass.user, request, page, channel)
    }

    private static func unplayable(_ path: String, _ why: String) -> APIError {
        var error = APIError(.notAcceptable, .wrongState, "\(path) cannot be played by WebRTC: \(why).")
        error.rule = CloseReason.unplayable.rawValue
        return error
    }

    /// Begins the viewer's stay, on its loop.
    private func begin(
        _ play: HTTPPlay, _ negotiation: Negotiation, _ own: Negotiation.Own, _ dtls: DTLSContext, _ token: String,
        _ packets: PacketStream?, client: String?
    ) async throws(APIError) {
        let (services, playback) = (self.services, self.services.playback)
        let (id, host) = (play.request.session, HostKey.of(play.request.remote))
        services.count { $0.offers += 1 }
        guard let loop = services.loop() else { throw .unavailable("The server is ending.") }
        try await playback.waitForLoop(play.request.address, from: play.request.remote, on: loop.relay.eventLoop)
        if let refusal = services.open(id, host) {
            let reason: CloseReason = refusal == .tooMany ? .tooManyConnections : .tooManyFromAddress
            play.grant.end(reason)
            throw playback.refused(
                AdmissionRefusal(reason: reason, message: "Too many viewers by WebRTC whose connections are not up yet.", retrySeconds: 5),
                play.request.address, play.request.remote)
        }
        if let reason = playback.connections.admission.enterPlay(id, host) {
            services.opened(id)
            play.grant.end(reason)
            throw playback.refused(
                AdmissionRefusal(reason: reason, message: "Too many players (limits.connections, limits.connectionsPerAddress)."),
                play.request.address, play.request.remote)
        }
        let made = await withCheckedContinuation { (done: CheckedContinuation<AdmissionRefusal?, Never>) in
            loop.relay.run { _ in
                let session: PlaySession
                do throws(AdmissionRefusal) {
                    session = try playback.admission.begin(play.grant, by: .webrtc, client: client, on: loop, playback.connections)
                } catch {
                    return done.resume(returning: error)
                }
                let inbox = WebRTCInbox(
                    loop, session.stream.path, user: own.transport.user, remoteUser: negotiation.remote.user, isViewer: true)
                services.add(inbox, token)
                playback.connections.counters.update { $0.connectionsAccepted += 1 }
                let stay = WebRTCViewer.Play(
                    session: session, negotiation: negotiation, own: own, token: token,
                    client: client.map { String($0.prefix(PlaySession.longestClient)) }, packets: packets)
                let viewer = WebRTCViewer(stay, inbox, services, dtls, services.run(of: loop), on: loop)
                if let held = playback.connections.roleFlood.pass(nowMs: loop.relay.nowMs) {
                    playback.log.write("Play started", viewer.metadata, heldBack: held)
                }
                done.resume(returning: nil)
            }
        }
        guard let made else { return }
        services.opened(id)
        playback.connections.admission.leave(id)
        throw playback.refused(made, play.request.address, play.request.remote)
    }
}
