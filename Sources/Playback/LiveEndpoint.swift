import Access
import HLS
package import HTTPServer
import HTTPTypes
import NIOCore
package import NIOHTTP1
import Packaging
import RTMP
import Relay
import Rooms
import ServerConfiguration
import Streaming
package import Support

/// Plays streams over HTTP and WebSocket: `GET /live/cam.flv`, `/live/cam.mp4`. The connection leaves HTTP and becomes a viewer of the stream.
///
/// Admission works as over RTMP: by the query's credential, the address and the hook. The same applies to the mixes and voices of a talk channel:
/// `GET /talk/room/mix.mp4`.
package struct LiveEndpoint: HTTPHandoff {
    private let services: PlaybackServices
    private let pages: PageRules

    package init(services: PlaybackServices) {
        self.services = services
        self.pages = PageRules(services.config)
    }

    package func door(_ head: HTTPRequestHead) -> Door? {
        guard head.method == .GET || head.method == .HEAD else { return nil }
        return switch LivePath.format(of: head.path) {
        case .flv, .mp4, .fmp4: TalkStreamName.isTalk(path: String(head.path.dropFirst())) ? .listener : .player
        case .m3u8, .tsM3U8, nil: nil
        }
    }

    package func route(_ head: HTTPRequestHead) -> String {
        "/{app}/{stream}.\(LivePath.format(of: head.path)?.rawValue ?? "")"
    }

    package func decide(_ request: HTTPHandoffRequest) async -> HTTPHandoffDecision {
        let page = PageRequest(request)
        let shows = self.services.admission.rules.showsCredential(request.head.query.map(String.init) ?? "", .play)
        let access: [(HTTPField.Name, String)]
        // Without anything to verify, the page is refused before a hook is asked.
        do throws(APIError) {
            access = shows ? self.pages.withCredential(page) : try self.pages.check(page, nil)
        } catch {
            return .refuse(error)
        }
        do throws(APIError) {
            return try await self.open(request, page, access)
        } catch {
            var error = error
            // Lets a page's script read the reason.
            for (name, value) in access { error.headers[name] = value }
            return .refuse(error)
        }
    }

    /// `access`: headers that allow the requesting page to play.
    private func open(
        _ request: HTTPHandoffRequest, _ page: PageRequest, _ access: [(HTTPField.Name, String)]
    ) async throws(APIError) -> HTTPHandoffDecision {
        let head = request.head
        guard let format = LivePath.format(of: head.path) else { throw .notFound("stream", String(head.path)) }
        let path = try LivePath(head.path, query: head.query.map(String.init), format, limits: RTMP.Limits(self.services.config.limits))
        let isWebSocket = head.list("upgrade", contains: "websocket")
        if isWebSocket {
            if let refusal = WebSocketHandshake.refusal(of: head) { throw refusal }
            guard self.pages.letsSocket(page) else {
                throw APIError(
                    .forbidden, .forbidden,
                    "Pages of this origin may not play here; the server's setting http.allowOrigin names those that may.")
            }
        } else if head.version == .http1_0 {
            throw APIError(
                .httpVersionNotSupported, .invalid, "Live streams are sent in chunks, which HTTP/1.0 does not support; use HTTP/1.1.")
        }
        let client = self.services.clients.client(of: request)
        try await self.services.waitForLoop(path.address, from: client, on: request.channel.eventLoop)
        let play = try await self.admit(path.address, from: client, request)
        try self.services.checkPage(self.pages, page, play)
        let services = self.services
        if head.method == .HEAD {
            try await services.checkIsLive(play)
            let answer = self.answer(type: try await self.type(of: play.request.address.path, format), access)
            return .accept(answer) { [HeadAnswerEnd()] }
        }
        let (isSecure, isMultiplexed) = (request.isSecure, request.isMultiplexed)
        if try await services.mustWait(play) {
            if isWebSocket {
                return .accept(WebSocketHandshake.response(to: head)) {
                    let socket = AwaitingSocket(play, services: services, isSecure: isSecure) { () async throws(APIError) in
                        try await services.waitForPublisher(play)
                        return try await self.viewer(play, format, request, isWebSocket: true).viewer
                    }
                    return [socket]
                }
            }
            try await services.waitForPublisher(play, on: request.channel)
        }
        let (viewer, type) = try await self.viewer(play, format, request, isWebSocket: isWebSocket)
        let answer = isWebSocket ? WebSocketHandshake.response(to: head) : self.answer(type: type, access)
        return .accept(answer) { [LiveViewer(viewer, services: services, isSecure: isSecure, isMultiplexed: isMultiplexed)] }
    }

    /// Admits the viewer or listener. A listener's talk channel has begun by then; a viewer's stream may not have.
    private func admit(
        _ address: StreamAddress, from client: SocketAddress?, _ request: HTTPHandoffRequest
    ) async throws(APIError) -> HTTPPlay {
        guard TalkStreamName.isTalk(address) else { return try await self.services.admit(.player, address, from: client) }
        guard request.head.method != .HEAD else { throw Self.noHead }
        let play = try await self.services.admitListener(address, from: client, on: request.channel.eventLoop)
        try await self.services.waitForTalk(play)
        return play
    }

    private static var noHead: APIError {
        var error = APIError(.methodNotAllowed, .methodNotAllowed, "A listener takes a place in its talk channel; only GET is supported.")
        error.headers[.allow] = "GET, OPTIONS"
        return error
    }

    /// The media type of a stream that is live.
    private func type(of stream: String, _ format: LivePath.Format) async throws(APIError) -> String {
        format == .flv ? Self.flvType : try await self.mimeType(stream)
    }

    private static let flvType = "video/x-flv"

    /// How an admitted viewer plays a stream that is live, and the media type.
    private func viewer(
        _ play: HTTPPlay, _ format: LivePath.Format, _ request: HTTPHandoffRequest, isWebSocket: Bool
    ) async throws(APIError) -> (viewer: LiveViewer.Play, type: String) {
        let stream = play.request.address.path
        let wireFormat: WireFormat
        let transport: SessionSnapshot.Transport
        let preface: ByteBuffer
        let type: String
        if format == .flv {
            wireFormat = isWebSocket ? .flvOverWebSocket : .flvOverHTTP
            transport = isWebSocket ? (request.isSecure ? .wssFLV : .wsFLV) : (request.isSecure ? .httpsFLV : .httpFLV)
            let kinds = play.listener == nil ? try await self.services.liveKinds(stream) : (audio: true, video: false)
            let header = FLVHeader.bytes(audio: kinds.audio, video: kinds.video)
            preface = isWebSocket ? WebSocketWriter.binary(header) : header
            type = Self.flvType
        } else {
            type = try await self.mimeType(stream)
            wireFormat = isWebSocket ? .payloadOverWebSocket : .payloadOverHTTP
            transport = isWebSocket ? (request.isSecure ? .wssMP4 : .wsMP4) : (request.isSecure ? .httpsMP4 : .httpMP4)
            // WebSockets get the type in the stream; HTTP gets it in the answer's head.
            preface = ByteBuffer()
        }
        let viewer = LiveViewer.Play(
            request: play.request, grant: play.grant, listener: play.listener, wireFormat: wireFormat, transport: transport,
            preface: preface, client: request.head.headers.first(name: "user-agent"))
        return (viewer, type)
    }

    /// Starts remuxing the stream and waits until its media type is known.
    private func mimeType(_ path: String) async throws(APIError) -> String {
        // Tries twice: a mix that has just ended with its last listener may have begun again, and its remuxer may not know yet.
        for _ in 0..<2 {
            let remuxer: StreamRemuxer?
            do throws(HLSError) {
                remuxer = try await self.services.remuxers.use(path, as: .fmp4)
            } catch {
                throw APIError(.internalServerError, .internal, "\(error)")
            }
            guard let remuxer, !remuxer.isOver else { throw .notFound("live stream", path) }
            if let type = await remuxer.openPieces(waitMs: Int(self.services.config.http.firstWaitMs)) { return type }
            guard remuxer.isOver else { break }
        }
        var error = APIError.unavailable("\(path) has no media yet that MP4 can carry; try again in a moment.")
        error.headers[.retryAfter] = "1"
        throw error
    }

    private func answer(type: String, _ access: [(HTTPField.Name, String)]) -> HTTPResponseHead {
        var headers: HTTPHeaders = [
            "content-type": type, "transfer-encoding": "chunked", "cache-control": "no-store", "connection": "close", "server": "earshot",
            // Stops an nginx in front from buffering the body.
            "x-accel-buffering": "no",
        ]
        for (name, value) in access { headers.add(name: name.rawName, value: value) }
        return HTTPResponseHead(version: .http1_1, status: .ok, headers: headers)
    }
}

/// The header of an FLV file (Adobe FLV 10.1 §E.2). Ends with the size of the tag before the first, which is 0.
enum FLVHeader {
    static func bytes(audio: Bool, video: Bool) -> ByteBuffer {
        ByteBuffer(bytes: [0x46, 0x4C, 0x56, 1, (audio ? 4 : 0) | (video ? 1 : 0), 0, 0, 0, 9, 0, 0, 0, 0])
    }
}
