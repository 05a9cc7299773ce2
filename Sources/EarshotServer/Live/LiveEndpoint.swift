import HTTPTypes
import Media
import NIOCore
import NIOHTTP1
import RTMP
import Relay
import Rooms

/// Playing over HTTP and WebSocket: `GET /live/cam.flv`. The connection is taken out of HTTP and becomes a viewer of the stream.
///
/// Who may play is decided as over RTMP, by the query's credential, the address and the hook.
struct LiveEndpoint: HTTPTakeover {
    private let core: ServerCore

    init(core: ServerCore) { self.core = core }

    func claims(_ head: HTTPRequestHead) -> Bool {
        guard head.method == .GET, let format = LivePath.format(of: head) else { return false }
        return format == .flv
    }

    func decide(_ request: HTTPTakeoverRequest) async -> HTTPTakeoverDecision {
        do throws(APIError) {
            return try await self.open(request)
        } catch {
            var error = error
            // So that a page's script can read why.
            for (name, value) in self.core.config.http.corsHeaders { error.headers[name] = value }
            return .refuse(error)
        }
    }

    private func open(_ request: HTTPTakeoverRequest) async throws(APIError) -> HTTPTakeoverDecision {
        let head = request.head
        guard let format = LivePath.format(of: head) else { throw .notFound("stream", String(head.path)) }
        let path = try LivePath(head, format, limits: RTMP.Limits(self.core.config.limits))
        let isWebSocket = head.headers.contains(name: "upgrade") && head.list("upgrade", contains: "websocket")
        if isWebSocket {
            if let refusal = WebSocketHandshake.refusal(of: head) { throw refusal }
        } else if head.version == .http1_0 {
            throw APIError(.httpVersionNotSupported, .invalid, "Streams without an end are sent in chunks, which HTTP/1.0 does not know.")
        }
        let play = try await self.core.admitHTTPPlay(path.address, from: request.remote)
        let kinds = try await self.core.liveKinds(path.address.path)
        let viewer = LiveViewer.Play(
            request: play.request, pass: play.pass, packaging: isWebSocket ? .flvOverWebSocket : .flvOverHTTP,
            transport: .flv(isWebSocket: isWebSocket, isSecure: request.isSecure),
            preface: FLVHeader.bytes(audio: kinds.audio, video: kinds.video),
            client: head.headers.first(name: "user-agent"))
        let answer = isWebSocket ? WebSocketHandshake.response(to: head) : self.answer(type: "video/x-flv")
        let core = self.core
        return .take(answer) { [LiveViewer(viewer, core: core, isSecure: request.isSecure)] }
    }

    private func answer(type: String) -> HTTPResponseHead {
        var headers: HTTPHeaders = [
            "content-type": type, "transfer-encoding": "chunked", "cache-control": "no-store", "connection": "close", "server": "earshot",
            // nginx in front must not gather it first.
            "x-accel-buffering": "no",
        ]
        for (name, value) in self.core.config.http.corsHeaders { headers.add(name: name.rawName, value: value) }
        return HTTPResponseHead(version: .http1_1, status: .ok, headers: headers)
    }
}

/// The first bytes of an FLV file (Adobe FLV 10.1 §E.2) and the size of the tag before the first, which there is none of.
enum FLVHeader {
    static func bytes(audio: Bool, video: Bool) -> ByteBuffer {
        ByteBuffer(bytes: [0x46, 0x4C, 0x56, 1, (audio ? 4 : 0) | (video ? 1 : 0), 0, 0, 0, 9, 0, 0, 0, 0])
    }
}

extension SessionSnapshot.Transport {
    static func flv(isWebSocket: Bool, isSecure: Bool) -> Self {
        isWebSocket ? (isSecure ? .wssFLV : .wsFLV) : (isSecure ? .httpsFLV : .httpFLV)
    }
}
