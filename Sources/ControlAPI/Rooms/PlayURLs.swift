import Access
import HTTPAPI
import HTTPServer
import Rooms
import ServerConfiguration
import Streaming
import Support

/// A stream's play URLs, one per protocol.
struct PlayURLs: Sendable {
    let rtmp: String
    let rtmps: String?
    let flv: String
    let hls: String
    let hlsTS: String
    let mp4: String
    let whep: String?

    static let outputType = OutputType<PlayURLs>.object("PlayUrls", Self.fields)

    static let fields: [Field<PlayURLs>] = [
        .field("rtmp", .uri, "RTMP.", \.rtmp),
        .field("rtmps", .nullable(.uri), "RTMPS, if the server offers it.", \.rtmps),
        .field("flv", .uri, "HTTP-FLV; with ws:// in place of http:// over a WebSocket.", \.flv),
        .field("hls", .uri, "HLS.", \.hls),
        .field("hlsTs", .uri, "HLS with segments of MPEG-TS, for old players.", \.hlsTS),
        .field("mp4", .uri, "Endless fragmented MP4, for a page's MediaSource; with ws:// in place of http:// over a WebSocket.", \.mp4),
        .field("whep", .nullable(.uri), "WebRTC, for a WHEP client's POST; null while it is off.", \.whep),
    ]

    /// URLs without a signature: they hold no secret, so lists may show them.
    static func bare(_ path: StreamPath, _ urls: StreamURLs) throws -> PlayURLs {
        let play = try urls.play(path, nowMs: 0)
        return PlayURLs(rtmp: play.rtmp, rtmps: play.rtmps, flv: play.flv, hls: play.hls, hlsTS: play.hlsTS, mp4: play.mp4, whep: play.whep)
    }
}

extension APICall {
    /// The URL maker for this caller's host name. Throws 503 while the server starts.
    func urls() throws -> StreamURLs {
        StreamURLs(address: try self.publicAddress(), keys: self.services.keys, credentials: self.services.config.credentials)
    }
}
