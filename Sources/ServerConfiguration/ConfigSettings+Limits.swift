extension ConfigSetting {
    private static let message = 1_024...(64 << 20)

    /// The limits of every number that a peer controls.
    static let limits: [ConfigSetting] = [
        .make("limits.handshake", \.limits.handshakeMs, .duration(100...day), "Time for the handshake.", applies: .reload),
        .make(
            "limits.connect", \.limits.connectMs, .duration(100...day), "Time from the handshake to the connect command.", applies: .reload),
        .make(
            "limits.firstMedia", \.limits.firstMediaMs, .duration(100...day), "Time from publish to the first audio or video.",
            applies: .reload),
        .make(
            "limits.videoMessage", \.limits.videoMessageBytes, .size(message),
            "Largest video message, tag header not counted; a message has 16 MiB at most.", applies: .reload),
        .make(
            "limits.audioMessage", \.limits.audioMessageBytes, .size(message), "Largest audio message, tag header not counted.",
            applies: .reload),
        .make("limits.dataMessage", \.limits.dataMessageBytes, .size(message), "Largest data or command message.", applies: .reload),
        .make(
            "limits.partialMessages", \.limits.partialMessages, .count(1...65_600), "Unfinished messages per connection.", applies: .reload),
        .make(
            "limits.partialBytes", \.limits.partialBytes, .size(message), "Bytes of unfinished messages per connection.", applies: .reload),
        .make(
            "limits.messageBeforePublish", \.limits.messageBytesBeforePublish, .size(message),
            "Largest message of a connection whose publish is not accepted yet.", applies: .reload),
        .make(
            "limits.bytesBeforePublish", \.limits.bytesBeforePublish, .size((16 << 10)...(64 << 20)),
            "Most bytes held for such a connection; while its publish is being decided, the server reads no further.", applies: .reload),
        .make("limits.streamName", \.limits.streamNameBytes, .size(1...4_096), "Longest app or stream name.", applies: .reload),
        .make(
            "limits.memory", \.limits.memoryBytes, .optional(.size((16 << 20)...(1 << 50))),
            "Memory for streams and connections: past it, caches are dropped, then new publishes and plays refused. Default: 60 % of RAM.",
            applies: .reload),
        .make(
            "limits.frameQueue", \.limits.frameQueueBytes, .size((1 << 20)...(1 << 30)),
            "Bytes of one stream's frames queued for remuxing or recording; past it, video is dropped up to the next keyframe.",
            applies: .reload),
        .make("limits.connections", \.limits.connections, .count(1...1_000_000), "RTMP and RTMPS connections at a time.", applies: .reload),
        .make(
            "limits.connectionsPerAddress", \.limits.connectionsPerAddress, .optional(.count(1...1_000_000)),
            "The same, from one address (IPv6: a /64), and HLS players of one. Default: half of all, 64 to 5000.",
            applies: .reload),
        .make("limits.hlsPlayers", \.limits.hlsPlayers, .count(1...1_000_000), "Players over HLS at a time.", applies: .reload),
        .make(
            "limits.viewersPerStream", \.limits.viewersPerStream, .count(1...1_000_000), "Viewers of one stream at a time.",
            applies: .reload),
        .make("limits.publishersTotal", \.limits.publishersTotal, .count(1...1_000_000), "Publishers at a time.", applies: .reload),
        .make(
            "limits.lag", \.limits.lagMs, .duration(50...60_000),
            "Lag of an event loop from which new viewers have to wait; after 2 s they are refused."),
        .make(
            "limits.publishesPerAddress", \.limits.publishesPerAddress, .count(1...1_000_000),
            "Pushes that one address may begin per second; bursts may be ten times as large.", applies: .reload),
        .make(
            "limits.publishesPerCredential", \.limits.publishesPerCredential, .count(1...1_000_000),
            "The same for one credential: a token's subject, or a signed URL's stream.", applies: .reload),
        .make(
            "limits.roomsPerAddress", \.limits.roomsPerAddress, .count(1...1_000_000),
            "Rooms that pushes from one address may create per second; bursts may be twenty times as large.", applies: .reload),
        .make(
            "limits.roomsPerCredential", \.limits.roomsPerCredential, .count(1...1_000_000), "The same for one credential.",
            applies: .reload),
        .make(
            "limits.httpConnections", \.limits.httpConnections, .count(1...1_000_000),
            "HTTP connections at a time, viewers and event feeds included; the last few are reserved for access.apiFrom.", applies: .reload),
        .make(
            "limits.httpPerAddress", \.limits.httpPerAddress, .count(1...1_000_000),
            "HTTP connections of one address, plus requests that trusted proxies forward for it; at most half of all.",
            applies: .reload),
        .make(
            "limits.httpHead", \.limits.httpHeadMs, .duration(100...day), "Time from the connection to the first request's headers.",
            applies: .reload),
        .make(
            "limits.httpBody", \.limits.httpBodyMs, .duration(100...day), "Time from a request's headers to the end of its body.",
            applies: .reload),
        .make(
            "limits.httpIdle", \.limits.httpIdleMs, .duration(100...day), "Time between an answer and the next request's headers.",
            applies: .reload),
    ]
}
