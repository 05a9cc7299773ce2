import Access
import HLS
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
import Streaming
package import Support

/// Serves HLS through the router. The multivariant playlist opens a session, whose token is in the URIs of all that follows.
///
/// ```
/// /live/cam.m3u8?txSecret=…          admission is decided here
/// /live/cam.ts.m3u8?txSecret=…       the same, for segments of MPEG-TS
/// /live/cam.hls/media.m3u8?s=TOKEN   the playlist, with blocking reload (RFC 8216bis §6.2.5.2)
/// /live/cam.hls/ts.m3u8?s=TOKEN      that of MPEG-TS: a cache must not mix them
/// /live/cam.hls/NAME?s=TOKEN         initialization, segments, parts: their bytes never change, so caches may ignore the query
/// ```
package struct HLSEndpoint: HTTPPart {
    let services: PlaybackServices
    private let pages: PageRules

    /// The route of a playlist's files, for the figures.
    package static let fileRoute = "/{app}/{stream}.hls/{file}"

    static func mediaName(_ container: ServerConfig.HLS.Container) -> String { container == .ts ? "ts.m3u8" : "media.m3u8" }

    package init(services: PlaybackServices) {
        self.services = services
        self.pages = PageRules(services.config)
    }

    /// Answers preflights for players of every form.
    package func door(_ request: Request) -> Door? {
        switch request.method {
        case .options: Self.serves(request.uri.path) || LivePath.format(of: request.uri.path) != nil ? .hls : nil
        case .get, .head: Self.serves(request.uri.path) ? .hls : nil
        default: nil
        }
    }

    package func respond(to request: Request, _ context: APIContext) async -> Response {
        let isFile = Self.isHLS(request.uri.path)
        let isPreflight = request.method == .options
        let access: [(HTTPField.Name, String)]
        do throws(APIError) {
            let page = PageRequest(request, context.channel)
            access = try self.access(page, request.uri.query ?? "", isFile: isFile ?? false)
        } catch {
            return error.response(context).readable([])
        }
        guard !isPreflight, let isFile else { return Response(status: .noContent, headers: Self.preflight).readable(access) }
        let response: Response
        do throws(APIError) {
            response =
                isFile
                ? try await self.file(request)
                : try await self.multivariant(request, context)
        } catch {
            response = error.response(context)
        }
        return response.readable(access)
    }

    private static let preflight: HTTPFields = [
        .accessControlAllowMethods: "GET, HEAD, OPTIONS", .accessControlAllowHeaders: "range", .accessControlMaxAge: "86400",
    ]

    /// Checks the page before admission; one that shows a credential is checked again once that is verified. Later requests count as their first
    /// playlist did. An unknown session is refused anyway, and its page may read why.
    func access(_ page: PageRequest, _ query: String, isFile: Bool) throws(APIError) -> [(HTTPField.Name, String)] {
        guard isFile else {
            let shows = self.services.admission.rules.showsCredential(query, .play)
            return shows ? self.pages.withCredential(page) : try self.pages.check(page, nil)
        }
        return try self.access(page, QueryParameters(query).all("s").first.flatMap { self.services.sessions.find($0) })
    }

    /// The same for a file of this session; nil: an unknown one.
    func access(_ page: PageRequest, _ session: HLSSession?) throws(APIError) -> [(HTTPField.Name, String)] {
        guard let session else { return self.pages.withCredential(page) }
        return try self.pages.check(page, session.caller)
    }

    /// Whether the path is a playlist's, or that of a file in a playlist.
    package static func serves(_ path: String) -> Bool { self.isHLS(path) != nil }

    /// Returns false for a multivariant playlist, true for a file that it leads to, otherwise nil.
    private static func isHLS(_ path: String) -> Bool? {
        if self.folder(of: path[...]) != nil { return true }
        return switch LivePath.format(of: path) {
        case .m3u8, .tsM3U8: false
        case .flv, .mp4, .fmp4, nil: nil
        }
    }

    /// The folder "/live/cam.hls" of "/live/cam.hls/NAME".
    private static func folder(of path: Substring) -> String? {
        let slash = UInt8(ascii: "/")
        guard let end = path.utf8.lastIndex(of: slash) else { return nil }
        let folder = path.utf8[..<end]
        guard folder.suffix(LivePath.folderEnding.utf8.count).elementsEqual(LivePath.folderEnding.utf8) else { return nil }
        return folder.split(separator: slash).count >= 2 ? String(path[..<end]) : nil
    }

    // MARK: The first playlist

    private func multivariant(_ request: Request, _ context: APIContext) async throws(APIError) -> Response {
        let (clients, channel) = (self.services.clients, context.channel)
        let remote = clients.client(peer: clients.peer(of: channel), request.headers)
        let format = LivePath.format(of: request.uri.path) ?? .m3u8
        let path = try LivePath(request.uri.path, query: request.uri.query, format, limits: RTMP.Limits(self.services.config.limits))
        let container = format == .tsM3U8 ? .ts : self.services.config.hls.container
        // A listener's place in its channel belongs to a connection, and HLS has none.
        guard !TalkStreamName.isTalk(path.address) else {
            throw APIError(.notFound, .notFound, "Talk is played over RTMP, .flv and .mp4; there is no \(path.address.path) over HLS.")
        }
        let play = try await self.services.admit(.hls, path.address, from: remote)
        try self.services.checkPage(self.pages, PageRequest(request, channel), play)
        let streamPath = play.request.address.path
        if request.method == .head {
            try await self.services.checkIsLive(play)
        } else if try await self.services.mustWait(play) {
            try await self.services.waitForPublisher(play, on: channel)
        }
        guard let remuxer = try await self.remuxer(streamPath, container), !remuxer.isOver else {
            throw .notFound("live stream", streamPath)
        }
        // A HEAD request plays nothing: its text, which nobody gets, is as long as a player's.
        let session = request.method == .head ? nil : try await self.open(play, container, client: request.headers[.userAgent])
        let token = session?.token ?? String(repeating: "0", count: HLSSession.tokenLength)
        // Relative, so that it works behind any path prefix of a proxy.
        let last = path.address.name.split(separator: "/").last ?? ""
        let uri = "\(StreamURLs.encode(String(last)))\(LivePath.folderEnding)/\(Self.mediaName(container))?s=\(token)"
        let isVLC = request.headers[.userAgent]?.contains("VLC/") == true
        let waitMs = Int(self.services.config.http.firstWaitMs)
        guard let text = await remuxer.multivariantPlaylist(mediaURI: uri, waitMs: waitMs, isVLC: isVLC) else {
            if let session { await self.close(session, .streamEnded) }
            var error = APIError.unavailable("\(streamPath) has no complete segment yet; try again in a moment.")
            error.headers[.retryAfter] = "1"
            throw error
        }
        guard let session else { return Self.multivariantPlaylist(text) }
        session.touch()
        session.trace(request.method.rawValue, request.uri.string, 200)
        return Self.multivariantPlaylist(text)
    }

    private static func multivariantPlaylist(_ text: String) -> Response {
        var response = Self.playlist(ByteBuffer(string: text))
        // Each viewer gets its own token.
        response.headers[.cacheControl] = "no-store"
        return response
    }

    private func remuxer(_ path: String, _ container: ServerConfig.HLS.Container) async throws(APIError) -> StreamRemuxer? {
        do throws(HLSError) {
            return try await self.services.remuxers.use(path, as: container)
        } catch {
            throw APIError(.internalServerError, .internal, "\(error)")
        }
    }

    private func open(_ play: HTTPPlay, _ container: ServerConfig.HLS.Container, client: String?) async throws(APIError) -> HLSSession {
        let services = self.services
        let path = play.request.address.path
        if let home = services.streams.registry.find(path)?.home {
            do throws(APIError) {
                try await services.waitForLoop(play.request.address, from: play.request.remote, on: home.eventLoop)
            } catch {
                play.grant.end(.overloaded)
                throw error
            }
        }
        try self.acquirePlace(play)
        let made = await services.streams.onHome(of: path) { home, _ -> Result<HLSSession, AdmissionRefusal> in
            guard let loop = services.streams.context(of: home.eventLoop) else { return .failure(Self.hasEnded(path)) }
            let begun: PlaySession
            do throws(AdmissionRefusal) {
                begun = try services.admission.begin(play.grant, by: .hls, client: client, on: loop, services.connections)
            } catch {
                return .failure(error)
            }
            let session = HLSSession(
                begun, container, client: client.map { String($0.prefix(PlaySession.longestClient)) },
                caller: services.verifiedCaller(play), sessions: services.sessions, connections: services.connections, loop: loop)
            loop.add(session)
            services.sessions.add(session)
            services.connections.counters.update { $0.connectionsAccepted += 1 }
            if let held = services.connections.roleFlood.pass(nowMs: home.nowMs) {
                services.log.write("Play started", session.metadata, heldBack: held)
            }
            return .success(session)
        }
        do throws(AdmissionRefusal) {
            return try (made ?? .failure(Self.hasEnded(path))).get()
        } catch {
            services.connections.hls.leave(play.request.session)
            play.grant.end(error.reason)
            throw services.refused(error, play.request.address, play.request.remote)
        }
    }

    /// The stream ended while the player was admitted.
    private static func hasEnded(_ path: String) -> AdmissionRefusal {
        AdmissionRefusal(reason: .streamEnded, message: "\(path) has just ended; try again in a moment.")
    }

    /// Acquires a player's place, that of one that no longer asks if need be. Throws the answer if there is none.
    private func acquirePlace(_ play: HTTPPlay) throws(APIError) {
        let services = self.services
        let host = HostKey.of(play.request.remote)
        let (refusal, shed) = services.connections.hls.enter(
            play.request.session, host, nowMs: LoopSweeper.nowMs, idleMs: HLSPlaces.idleMs(segmentMs: services.config.hls.segmentMs))
        for id in shed { services.sessions.session(id)?.end(.clientClosed) }
        guard let refusal else { return }
        let reason: CloseReason = refusal == .tooMany ? .tooManyViewers : .tooManyFromAddress
        if refusal == .tooMany { services.connections.counters.limits.hit(.hlsPlayers) }
        play.grant.end(reason)
        throw services.refused(
            AdmissionRefusal(reason: reason, message: "Too many HLS players (limits.hlsPlayers, limits.connectionsPerAddress)."),
            play.request.address, play.request.remote)
    }

    private func close(_ session: HLSSession, _ reason: CloseReason) async {
        _ = await self.services.streams.onHome(of: session.path) { _, _ in session.close(reason, detail: nil) }
    }

    // MARK: Playlists and media

    /// The session of a request for a file, and the file's name. Every way to a file begins here.
    func file(_ path: Substring, _ query: QueryParameters) throws(APIError) -> (session: HLSSession, name: String) {
        guard let folder = Self.folder(of: path), let token = query.all("s").first, let session = self.services.sessions.find(token) else {
            throw APIError(.forbidden, .forbidden, "This session is unknown or has ended; load the stream's .m3u8 again.")
        }
        guard try self.isFolder(folder, of: session) else { throw Self.isNoLonger }
        try self.check(session)
        return (session, String(path[path.utf8.index(path.startIndex, offsetBy: folder.utf8.count + 1)...]))
    }

    private static let isNoLonger = APIError(
        .forbidden, .forbidden, "This session is for another stream or has ended; load the stream's .m3u8 again.")

    /// Throws if the session has ended, or its stream may no longer be played: for each request, and again for one that has waited.
    func check(_ session: HLSSession) throws(APIError) {
        guard !session.isOver else { throw Self.isNoLonger }
        if let why = self.services.rooms.playRefusal(session.path) {
            session.end(why == .forbidden ? .forbidden : .roomClosed)
            guard why == .forbidden else { throw APIError(.forbidden, .forbidden, "\(session.path) may no longer be played.") }
            throw APIError(AdmissionRefusal.forbidden(session.path, self.services.rooms.playBan(session.path)))
        }
    }

    /// A player asks with one spelling of its folder, so that is read once.
    private func isFolder(_ folder: String, of session: HLSSession) throws(APIError) -> Bool {
        if session.folder == folder { return true }
        let live = try LivePath(
            "\(folder.dropLast(LivePath.folderEnding.count)).m3u8", query: nil, .m3u8, limits: RTMP.Limits(self.services.config.limits))
        guard live.address.path.exact == session.asked.exact else { return false }
        session.folder = folder
        return true
    }

    private func file(_ request: Request) async throws(APIError) -> Response {
        let query = QueryParameters(request.uri.query ?? "")
        let (session, name) = try self.file(request.uri.path[...], query)
        session.touch()
        do throws(APIError) {
            let response = try await self.file(name, request, query, of: session)
            session.trace(request.method.rawValue, request.uri.string, response.status.code)
            return response
        } catch {
            session.trace(request.method.rawValue, request.uri.string, error.status.code)
            throw error
        }
    }

    private func file(
        _ name: String, _ request: Request, _ query: QueryParameters, of session: HLSSession
    ) async throws(APIError) -> Response {
        guard let remuxer = try await self.remuxer(session.path, session.container) else { throw .notFound("live stream", session.path) }
        let response =
            name == Self.mediaName(session.container)
            ? try await self.media(remuxer, query, session, request) : try await self.resource(remuxer, name, request)
        session.touch(bytes: request.method == .head ? 0 : response.body.contentLength ?? 0)
        return response
    }

    private func media(
        _ remuxer: StreamRemuxer, _ query: QueryParameters, _ session: HLSSession, _ request: Request
    ) async throws(APIError) -> Response {
        let asked = try Self.directives(query)
        switch await remuxer.mediaPlaylist(asked, after: asked.isBlocking ? nil : session.lastListed, hasStart: session.hasStart) {
        case .badRequest(let why): throw APIError(.badRequest, .invalid, why)
        case .notYet: throw Self.paused
        case .playlist(let text, let cache, let last, let isFinal, let hasStart):
            let isGet = request.method == .get
            if isGet { session.gotPlaylist(hasStart: hasStart, isFinal: isFinal) }
            var response = Self.playlist(text.bytes(query: "s=\(session.token)"))
            response.headers[.cacheControl] = asked.isBlocking ? cache.directives : "no-store"
            if !asked.isBlocking, isGet { session.listed(last) }
            return response
        }
    }

    private static func playlist(_ bytes: ByteBuffer) -> Response {
        Response(status: .ok, headers: [.contentType: MediaWindow.playlistContentType], body: .init(byteBuffer: bytes))
    }

    private func resource(_ remuxer: StreamRemuxer, _ name: String, _ request: Request) async throws(APIError) -> Response {
        switch await remuxer.resource(name) {
        case .found(let resource):
            let etag = Self.etag(name)
            var headers = HTTPFields(Self.fields(of: resource, name).map { HTTPField(name: $0.name, value: $0.value) })
            let size = Int64(resource.byteCount)
            guard let part = try ByteRange.asked(by: request, of: size, etag: etag, what: name) else {
                return Response(status: .ok, headers: headers, body: Self.body(resource.pieces))
            }
            headers[.contentRange] = ByteRange.contentRange(part, of: size)
            return Response(status: .partialContent, headers: headers, body: Self.body(Self.pieces(resource.pieces, in: part)))
        case .pending: throw Self.partPending
        case .gone, .unknown: throw .notFound("media", name)
        }
    }
}

extension HLSEndpoint {
    static func directives(_ query: QueryParameters) throws(APIError) -> PlaylistRequest {
        do throws(HLSError) {
            return try PlaylistRequest.parse(
                msn: query.all("_HLS_msn").first, part: query.all("_HLS_part").first, skip: query.all("_HLS_skip").first)
        } catch {
            throw APIError(.badRequest, .invalid, "\(error)")
        }
    }

    static let paused = Self.again("The stream has paused; try again in a moment.")
    static let partPending = Self.again("This part is not available yet; try again in a moment.")

    private static func again(_ message: String) -> APIError {
        var error = APIError.unavailable(message)
        error.headers[.retryAfter] = "1"
        return error
    }

    /// A name's content never changes, so the name is its own tag.
    private static func etag(_ name: String) -> String { "\"\(name)\"" }

    static func fields(of resource: Resource, _ name: String) -> [(name: HTTPField.Name, value: String)] {
        [
            (.contentType, resource.contentType), (.cacheControl, resource.cache.directives), (.acceptRanges, "bytes"),
            (.eTag, Self.etag(name)),
        ]
    }

    private static func body(_ pieces: [ByteBuffer]) -> ResponseBody {
        if pieces.count == 1 { return ResponseBody(byteBuffer: pieces[0]) }
        return ResponseBody(contentLength: pieces.reduce(0) { $0 + $1.readableBytes }) { writer in
            for piece in pieces { try await writer.write(piece) }
            try await writer.finish(nil)
        }
    }

    /// The slices of `pieces` within `part`, without copying.
    private static func pieces(_ pieces: [ByteBuffer], in part: Range<Int64>) -> [ByteBuffer] {
        var start: Int64 = 0
        return pieces.compactMap { piece in
            let own = start..<start + Int64(piece.readableBytes)
            start = own.upperBound
            let wanted = own.clamped(to: part)
            guard !wanted.isEmpty else { return nil }
            return piece.getSlice(at: piece.readerIndex + Int(wanted.lowerBound - own.lowerBound), length: wanted.count)
        }
    }
}
