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

/// Plays streams to browsers by WebRTC: WHEP (draft-ietf-wish-whep), the sibling of RFC 9725.
///
/// ```
/// POST   /whep/live/cam?txSecret=…   an offer; 201 with the answer, and the session's address as Location
/// PATCH  /whep/resource/TOKEN        204: candidates of the client are not needed
/// DELETE /whep/resource/TOKEN        200: the session ends
/// ```
/// TOKEN is the session's number and a secret: nodes that share their rooms send what they do not know on to the node that gave the number out.
/// Admission works as for every play: by the query's credential, or the same as `Authorization: Bearer`, the address and the hook.
package struct WHEPEndpoint: HTTPPart {
    /// Another node's answer to a request at the address of a session with this number; nil if no other node has it.
    package typealias Elsewhere = @Sendable (_ number: UInt64, Request, ByteBuffer) async throws(APIError) -> Response?

    private let services: WebRTCServices
    private let pages: PageRules
    private let elsewhere: Elsewhere

    package static let playRoute = "/whep/{app}/{stream}"
    private static let prefix = "/whep/"
    private static let resources = "/whep/resource/"
    private static let sdp = "application/sdp"
    private static let fragment = "application/trickle-ice-sdpfrag"
    /// Of a session's secret.
    private static let secretBytes = 16
    /// Requests at other nodes' sessions that are under way: whoever makes up numbers waits for nobody else's turn.
    private static let mostElsewhere = 32

    package init(_ services: WebRTCServices, elsewhere: @escaping Elsewhere) {
        self.services = services
        self.elsewhere = elsewhere
        self.pages = PageRules(services.playback.config)
    }

    package func door(_ request: Request) -> Door? { request.uri.path.hasPrefix(Self.prefix) ? .whep : nil }

    package func respond(to request: Request, _ context: APIContext) async -> Response {
        let page = PageRequest(request, context.channel)
        var access: [(HTTPField.Name, String)] = self.pages.withCredential(page)
        do throws(APIError) {
            guard self.services.isOn else {
                throw APIError(.notFound, .notFound, "WebRTC is switched off on this server (webrtc.enabled).")
            }
            if request.method == .options { return Self.preflight().readable(access) }
            if let token = Self.token(request.uri.path), request.method != .post {
                let response = try await self.change(token, request, context)
                return self.exposing(response).readable(access)
            }
            guard request.method == .post else { throw Self.notAllowed("POST, OPTIONS") }
            let query = try self.query(of: request)
            let shows = self.services.playback.admission.rules.showsCredential(query, .play)
            // Without anything to verify, the page is refused before a hook is asked.
            if !shows { access = try self.pages.check(page, nil) }
            return self.exposing(try await self.open(request, query, page, context)).readable(access)
        } catch {
            var error = error
            for (name, value) in access { error.headers[name] = value }
            return self.exposing(error.response(context)).readable(access)
        }
    }

    // MARK: CORS

    private static let allowedMethods = "POST, DELETE, PATCH, OPTIONS"

    private static func preflight() -> Response {
        var headers: HTTPFields = [
            .accessControlAllowMethods: Self.allowedMethods, .accessControlAllowHeaders: "authorization, content-type, if-match",
            .accessControlMaxAge: "86400",
        ]
        if let name = HTTPField.Name("Accept-Post") { headers[name] = Self.sdp }
        return Response(status: .noContent, headers: headers)
    }

    private func exposing(_ response: Response) -> Response {
        var response = response
        response.headers[.accessControlExposeHeaders] = "Location, ETag, Link, Retry-After"
        return response
    }

    private static func notAllowed(_ methods: String) -> APIError {
        var error = APIError(.methodNotAllowed, .methodNotAllowed, "Only \(methods) are supported here.")
        error.headers[.allow] = methods
        return error
    }

    /// The session that a path names, whatever its form.
    private static func token(_ path: String) -> String? {
        path.hasPrefix(Self.resources) ? String(path.dropFirst(Self.resources.count)) : nil
    }

    /// The query, with a bearer token as the parameter that it would be otherwise.
    private func query(of request: Request) throws(APIError) -> String {
        let query = request.uri.query ?? ""
        guard let header = request.headers[.authorization] else { return query }
        let words = header.split(separator: " ", omittingEmptySubsequences: true)
        guard words.count == 2, words[0].lowercased() == "bearer" else {
            throw APIError(.unauthorized, .unauthorized, "The header Authorization has another form than \"Bearer TOKEN\".")
        }
        guard let name = self.services.playback.config.credentials.tokenParameters.first else { return query }
        return (query.isEmpty ? "" : query + "&") + "\(name)=\(StreamURLs.encode(String(words[1])))"
    }

    // MARK: Opening

    private func open(
        _ request: Request, _ query: String, _ page: PageRequest, _ context: APIContext
    ) async throws(APIError) -> Response {
        let playback = self.services.playback
        let path = try LivePath(
            stream: request.uri.path.dropFirst(Self.prefix.count - 1), query: query, limits: RTMP.Limits(playback.config.limits))
        let type = request.headers[.contentType]?.split(separator: ";").first.map { $0.lowercased() } ?? ""
        guard type.filter({ $0 != " " }) == Self.sdp else {
            throw APIError(.unsupportedMediaType, .invalid, "The body is an offer of SDP, with Content-Type: \(Self.sdp).")
        }
        guard !TalkStreamName.isTalk(path.address) else {
            throw APIError(.notFound, .notFound, "Talk is played over RTMP, .flv and .mp4; there is no \(path.address.path) over WebRTC.")
        }
        var body = try await BodyReader(request, context, self.services.ledger, atMost: SessionOffer.longest).collect()
        let text = body.readString(length: body.readableBytes) ?? ""
        var negotiation: Negotiation
        do throws(SessionDescriptionError) {
            negotiation = try Negotiation(try SessionOffer(text))
        } catch {
            var refusal = APIError(Self.status(of: error), .invalid, "\(error)")
            refusal.field = "body"
            throw refusal
        }
        let (clients, channel) = (playback.clients, context.channel)
        let remote = clients.client(peer: clients.peer(of: channel), request.headers)
        let play = try await playback.admit(.whep, path.address, from: remote)
        try playback.checkPage(self.pages, page, play)
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
        let candidates = self.services.candidates(arrived: channel.localAddress, client: remote)
        guard !candidates.isEmpty else {
            throw APIError(
                .serviceUnavailable, .unavailable,
                "The server knows no address at which this client could reach its UDP port: set webrtc.addresses (or webrtc.listen) to the public one."
            )
        }
        let source = UInt32.random(in: 1...(UInt32.max - 2))
        let dtls = try self.services.dtls()
        var own = Negotiation.Own(
            user: SecretText.hex(Self.random(8)), password: SecretText.hex(Self.random(16)), fingerprint: dtls.fingerprint,
            candidates: candidates, videoSource: source, repeatSource: source + 1, soundSource: source + 2)
        own.acceptsStreams = self.services.port.acceptsStreams
        let token = "\(play.request.session)-\(SecretText.hex(Self.random(Self.secretBytes)))"
        try await self.begin(play, negotiation, own, dtls, token, packets, client: request.headers[.userAgent])
        let base = self.base(of: request, page, channel)
        var headers: HTTPFields = [
            .contentType: Self.sdp, .location: "\(base)\(Self.resources)\(token)", .eTag: "\"\(own.user)\"", .cacheControl: "no-store",
        ]
        for link in playback.config.ice.links(for: play.pass.user, nowSeconds: WallClock.seconds) {
            if let name = HTTPField.Name("Link") { headers.append(HTTPField(name: name, value: link)) }
        }
        let answer = negotiation.answer(own, session: UInt64.random(in: 1...UInt64.max))
        return Response(status: .created, headers: headers, body: .init(byteBuffer: ByteBuffer(string: answer)))
    }

    /// What a session's address begins with: `urls.http`, or the name by which the client asked if it is one of this server's.
    private func base(of request: Request, _ page: PageRequest, _ channel: any Channel) -> String {
        let playback = self.services.playback
        let config = playback.config.current
        if config.urls.http == nil, let host = request.head.authority, !host.isEmpty {
            do throws(APIError) {
                try self.pages.checkHost(page)
                return "\(request.head.scheme ?? "http")://\(host)"
            } catch {
                // A name that anybody may have made up goes into no address.
            }
        }
        guard let addresses = playback.connections.addresses else { return "" }
        return PublicAddress(forOthers: config, addresses: addresses, arrivedAt: channel.localAddress).http
    }

    private static func random(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255) } }

    private static func status(of error: SessionDescriptionError) -> HTTPResponse.Status {
        switch error {
        case .tooLong: .contentTooLarge
        case .unsupported: .notAcceptable
        case .tooMany, .invalid, .missing: .badRequest
        }
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
                let inbox = WebRTCViewer.Inbox(loop, session.stream.path, user: negotiation.user)
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

    // MARK: A session's address

    private func askElsewhere(_ token: String, _ request: Request, _ body: ByteBuffer) async throws(APIError) -> Response {
        if let number = UInt64(token.prefix { $0 != "-" }) {
            guard self.services.asked.add(1, ordering: .relaxed).newValue <= Self.mostElsewhere else {
                self.services.asked.subtract(1, ordering: .relaxed)
                throw .unavailable("Too many requests at other nodes' sessions are under way.")
            }
            defer { self.services.asked.subtract(1, ordering: .relaxed) }
            if let answer = try await self.elsewhere(number, request, body) { return answer }
        }
        throw APIError(.notFound, .notFound, "There is no such session; it has ended, or never began.")
    }

    private func change(_ token: String, _ request: Request, _ context: APIContext) async throws(APIError) -> Response {
        let inbox = self.services.session(token)
        switch request.method {
        case .delete:
            guard let inbox else { return try await self.askElsewhere(token, request, ByteBuffer()) }
            inbox.end(.clientClosed)
            // Some clients take any other code of success for a failure.
            return Response(status: .ok, headers: [.contentLength: "0"])
        case .patch:
            let body = try await BodyReader(request, context, self.services.ledger, atMost: SessionOffer.longest).collect()
            guard let inbox else { return try await self.askElsewhere(token, request, body) }
            let type = request.headers[.contentType]?.split(separator: ";").first.map { $0.lowercased() } ?? ""
            guard type.filter({ $0 != " " }) == Self.fragment else {
                throw APIError(.unsupportedMediaType, .invalid, "The body has candidates, with Content-Type: \(Self.fragment).")
            }
            // A restart of ICE has credentials of its own (RFC 9725 §4.3.3). Candidates are not needed: this side waits for the client's checks.
            let text = String(buffer: body)
            let user = text.split(whereSeparator: { $0.isNewline }).first { $0.hasPrefix("a=ice-ufrag:") }?.dropFirst(12)
            if let user, String(user) != inbox.user {
                throw APIError(.unprocessableContent, .invalid, "ICE cannot be restarted here; end this session and open another.")
            }
            return Response(status: .noContent)
        default: throw Self.notAllowed("DELETE, PATCH, OPTIONS")
        }
    }
}
