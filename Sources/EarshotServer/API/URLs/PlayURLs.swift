import Rooms

/// Where a stream is played.
struct PlayURLs: Sendable {
    let rtmp: String
    let rtmps: String?
    let flv: String
    let hls: String
    let mp4: String

    static let shape = Shape<PlayURLs>.object("PlayUrls", Self.fields)

    static let fields: [Field<PlayURLs>] = [
        .field("rtmp", .uri, "Over RTMP.", \.rtmp),
        .field("rtmps", .nullable(.uri), "Over RTMPS, if the server offers it.", \.rtmps),
        .field("flv", .uri, "HTTP-FLV; with ws:// in place of http:// over a WebSocket.", \.flv),
        .field("hls", .uri, "HLS.", \.hls),
        .field("mp4", .uri, "Fragmented MP4 without an end, for a page's MediaSource; with ws:// over a WebSocket.", \.mp4),
    ]

    /// Without a signature: no secret, so fit for lists.
    static func bare(_ path: StreamPath, _ urls: StreamURLs) throws -> PlayURLs {
        let play = try urls.play(path, nowMs: 0)
        return PlayURLs(rtmp: play.rtmp, rtmps: play.rtmps, flv: play.flv, hls: play.hls, mp4: play.mp4)
    }
}

extension APICall {
    /// The maker of URLs, for whoever called.
    func urls() throws -> StreamURLs {
        guard let addresses = self.core.addresses else { throw APIError.unavailable("The server is starting.") }
        let address = PublicAddress(config: self.core.config, addresses: addresses, requestHost: self.host)
        return StreamURLs(address: address, keys: self.core.keys, hash: self.core.config.credentials.hash)
    }
}
