import Rooms

/// Where a stream is played.
struct PlayURLs: Sendable {
    let rtmp: String
    let rtmps: String?

    static let shape = Shape<PlayURLs>.object("PlayUrls", Self.fields)

    static let fields: [Field<PlayURLs>] = [
        .field("rtmp", .uri, "Over RTMP.", \.rtmp),
        .field("rtmps", .nullable(.uri), "Over RTMPS, if the server offers it.", \.rtmps),
    ]

    /// Without a signature: no secret, so fit for lists.
    static func bare(_ path: StreamPath, _ urls: StreamURLs) throws -> PlayURLs {
        let play = try urls.play(path, nowMs: 0)
        return PlayURLs(rtmp: play.rtmp, rtmps: play.rtmps)
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
