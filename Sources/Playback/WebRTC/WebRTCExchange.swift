import Access
import DTLSSRTP
import HTTPServer
import HTTPTypes
import Hummingbird
import Listening
import NIOCore
import RTMP
import ServerConfiguration
import Streaming
import Support
import Synchronization
import WebRTC

/// What WHEP and WHIP have in common: offers come in, answers go out, and a session has an address of its own.
///
/// ```
/// POST   /whep/live/cam?txSecret=…   an offer; 201 with the answer, and the session's address as Location
/// PATCH  /whep/resource/TOKEN        204: candidates of the client are not needed
/// DELETE /whep/resource/TOKEN        200: the session ends
/// ```
/// TOKEN is the session's number and a secret: nodes that share their rooms send what they do not know on to the node that gave the number out.
struct WebRTCExchange: Sendable {
    let services: WebRTCServices
    let pages: PageRules
    let elsewhere: WHEPEndpoint.Elsewhere
    /// "/whep/"
    let prefix: String
    let action: AdmissionRequest.Action

    private var resources: String { self.prefix + "resource/" }
    static let sdp = "application/sdp"
    private static let fragment = "application/trickle-ice-sdpfrag"
    /// Of a session's secret.
    private static let secretBytes = 16
    /// Requests at other nodes' sessions that are under way: whoever makes up numbers waits for nobody else's turn.
    private static let mostElsewhere = 32

    init(_ services: WebRTCServices, prefix: String, action: AdmissionRequest.Action, elsewhere: @escaping WHEPEndpoint.Elsewhere) {
        self.services = services
        self.pages = PageRules(services.playback.config)
        self.elsewhere = elsewhere
        self.prefix = prefix
        self.action = action
    }

    /// Answers a request; `open` opens a session.
    func respond(
        to request: Request, _ context: APIContext,
        open: (_ query: String, PageRequest) async throws(APIError) -> Response
    ) async -> Response {
        let page = PageRequest(request, context.channel)
        var access: [(HTTPField.Name, String)] = self.pages.withCredential(page)
        do throws(APIError) {
            guard self.services.isOn else {
                throw APIError(.notFound, .notFound, "WebRTC is switched off on this server (webrtc.enabled).")
            }
            if request.method == .options { return Self.preflight().readable(access) }
            if let token = self.token(request.uri.path), request.method != .post {
                let response = try await self.change(token, request, context)
                return self.exposing(response).readable(access)
            }
            guard request.method == .post else { throw Self.notAllowed("POST, OPTIONS") }
            let query = try self.query(of: request)
            let shows = self.services.playback.admission.rules.showsCredential(query, self.action)
            // Without anything to verify, the page is refused before a hook is asked.
            if !shows { access = try self.pages.check(page, nil) }
            return self.exposing(try await open(query, page)).readable(access)
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
    private func token(_ path: String) -> String? {
        path.hasPrefix(self.resources) ? String(path.dropFirst(self.resources.count)) : nil
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

    // MARK: Offers and answers

    /// The offer in the body.
    func offer(_ request: Request, _ context: APIContext) async throws(APIError) -> String {
        let type = request.headers[.contentType]?.split(separator: ";").first.map { $0.lowercased() } ?? ""
        guard type.filter({ $0 != " " }) == Self.sdp else {
            throw APIError(.unsupportedMediaType, .invalid, "The body is an offer of SDP, with Content-Type: \(Self.sdp).")
        }
        var body = try await BodyReader(request, context, self.services.ledger, atMost: SessionOffer.longest).collect()
        return body.readString(length: body.readableBytes) ?? ""
    }

    static func refusal(_ error: SessionDescriptionError) -> APIError {
        let status: HTTPResponse.Status =
            switch error {
            case .tooLong: .contentTooLarge
            case .unsupported: .notAcceptable
            case .tooMany, .invalid, .missing: .badRequest
            }
        var refusal = APIError(status, .invalid, "\(error)")
        refusal.field = "body"
        return refusal
    }

    /// This server's side for a client that asked from `remote`.
    func transport(_ dtls: DTLSContext, _ channel: any Channel, _ remote: SocketAddress?) throws(APIError) -> OwnTransport {
        let candidates = self.services.candidates(arrived: channel.localAddress, client: remote)
        guard !candidates.isEmpty else {
            throw APIError(
                .serviceUnavailable, .unavailable,
                "The server knows no address at which this client could reach its UDP port: set webrtc.addresses (or webrtc.listen) to the public one."
            )
        }
        var transport = OwnTransport(
            user: SecretText.hex(Self.random(8)), password: SecretText.hex(Self.random(16)), fingerprint: dtls.fingerprint,
            candidates: candidates)
        transport.acceptsStreams = self.services.port.acceptsStreams
        return transport
    }

    /// A session's TOKEN.
    func token(_ session: UInt64) -> String { "\(session)-\(SecretText.hex(Self.random(Self.secretBytes)))" }

    private static func random(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255) } }

    /// 201 with the answer.
    func created(
        _ answer: String, _ token: String, _ transport: OwnTransport, for user: String?, _ request: Request, _ page: PageRequest,
        _ channel: any Channel
    ) -> Response {
        var headers: HTTPFields = [
            .contentType: Self.sdp, .location: "\(self.base(of: request, page, channel))\(self.resources)\(token)",
            .eTag: "\"\(transport.user)\"", .cacheControl: "no-store",
        ]
        for link in self.services.playback.config.ice.links(for: user, nowSeconds: WallClock.seconds) {
            if let name = HTTPField.Name("Link") { headers.append(HTTPField(name: name, value: link)) }
        }
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
            if let user, String(user) != inbox.remoteUser {
                throw APIError(.unprocessableContent, .invalid, "ICE cannot be restarted here; end this session and open another.")
            }
            return Response(status: .noContent)
        default: throw Self.notAllowed("DELETE, PATCH, OPTIONS")
        }
    }
}
