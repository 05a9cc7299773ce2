internal import Logging
internal import Rooms
import Support
internal import Talk

/// One setting of a server. The table `all` drives reading (file, environment, flags), checking and printing.
package struct ConfigSetting: Sendable {
    /// Dotted, as in the file: `relay.gopCache.maxBytes`.
    package let path: String
    /// One line.
    package let help: String
    /// The setting's own command-line flag, if it has one.
    package let flag: String?
    /// The accepted form, for messages: `a duration, e.g. 5s or 500ms`.
    let expected: String
    let isList: Bool
    /// Whether the value is hidden in `config print` and in messages.
    package let isSecret: Bool
    let applies: Application
    /// Sets the value. Throws `ValueProblem` for an invalid one, and then changes nothing.
    let assign: @Sendable (_ values: [String], _ config: inout ServerConfig) throws(ValueProblem) -> Void
    /// The value in the form that `assign` reads; nil when unset.
    let values: @Sendable (ServerConfig) -> [String]?

    /// Copies the value of another configuration.
    let copy: @Sendable (_ source: ServerConfig, _ config: inout ServerConfig) -> Void

    /// When a changed value takes effect. Connections, rooms, files, talk channels and HLS windows that exist by then keep the former value.
    package enum Application: String, Sendable, CaseIterable {
        /// At a reload, and at a start.
        case reload
        case restart
    }

    /// `EARSHOT_` and the path in capitals, with `_` between words: `EARSHOT_RELAY_GOP_CACHE_MAX_BYTES`.
    package var environmentName: String {
        "EARSHOT_"
            + path.reduce(into: "") { name, character in
                if character.isUppercase { name += "_" }
                name += character == "." ? "_" : character.uppercased()
            }
    }

    /// The flag's name in messages.
    var flagName: String { flag ?? path }
}

// MARK: - The table

extension ConfigSetting {
    static let day: Int64 = 86_400_000

    package static let all: [ConfigSetting] =
        [
            .make("rtmp.listen", \.rtmp.listen, .address, "Where to listen for RTMP.", flag: "--rtmp"),
            .make(
                "rtmp.adviseUplink", \.rtmp.adviseUplink, .onOff,
                "Send publishers whose uplink is too slow a data message (onUplink) with the bit rate that it carried.", applies: .reload),
            .make(
                "rtmps.listen", \.rtmps.listen, .optional(.address),
                "Where to listen for RTMPS. Default once a certificate is set: 127.0.0.1:1936."),
            .make(
                "rtmps.certificate", \.rtmps.certificate, .optional(.path),
                "PEM file: the certificate, then its chain. Turns RTMPS on, at a restart; another file for it applies at a reload.",
                applies: .reload),
            .make("rtmps.key", \.rtmps.key, .optional(.path), "PEM file: the certificate's private key.", applies: .reload),
            .make("http.listen", \.http.listen, .address, "Where to listen for HTTP: API, playing, health checks.", flag: "--http"),
            .make(
                "http.allowOrigin", \.http.allowOrigin, .pageOrigins,
                "Other origins whose pages may play and use the apps: * (all, with a credential), and each by name (also where none is needed).",
                applies: .reload),
            .make(
                "http.hosts", \.http.hosts, .hosts,
                "More host names for players without a credential, besides those in urls, localhost and local addresses. any: every name."),
            .make(
                "http.firstWait", \.http.firstWaitMs, .duration(0...50_000),
                "How long a player's first request waits for a publisher in a room that has none, or for the first segment.",
                applies: .reload),
            .make(
                "https.listen", \.https.listen, .optional(.address),
                "Where to listen for HTTPS, HTTP/2 included. Default once rtmps.certificate is set: 127.0.0.1:8443."),
            .make(
                "data.directory", \.data.directory, .path,
                "Folder for database, keys and, by default, recordings and pictures. Not set: ./earshot-data, /var/lib/earshot or "
                    + "~/.local/share/earshot, the first that is there.",
                flag: "--data"),
            .make(
                "data.minFree", \.data.minFreeBytes, .size(0...(1 << 50)),
                "Free disk space to keep: with less, no room is created and no push begins; running pushes go on.", applies: .reload),
        ] + Self.database + [
            .make(
                "access.publishFrom", \.access.publishFrom, .networks, "Addresses that may push without a credential; others need one.",
                applies: .reload),
            .make(
                "access.playFrom", \.access.playFrom, .networks, "Addresses that may play without a credential; others need one.",
                applies: .reload),
            .make("access.apiFrom", \.access.apiFrom, .networks, "Addresses that may call the HTTP API, with a token.", applies: .reload),
            .make(
                "access.trustedProxies", \.access.trustedProxies, .networks,
                "HTTP proxies whose X-Forwarded-For header is trusted to name the client.", applies: .reload),
            .make(
                "access.proxyProtocolFrom", \.access.proxyProtocolFrom, .networks,
                "TCP proxies that must begin each connection, on any port, with a PROXY protocol header (v1 or v2). Others must not send one.",
                applies: .reload),

            .make("urls.rtmp", \.urls.rtmp, .optional(.url("rtmp")), "Prefix of the RTMP URLs that the server hands out."),
            .make("urls.rtmps", \.urls.rtmps, .optional(.url("rtmps")), "The same, for RTMPS."),
            .make("urls.http", \.urls.http, .optional(.url("http", "https")), "The same, for HTTP."),

            .make(
                "rooms.autoCreate", \.rooms.autoCreate, .choice(ServerConfig.Rooms.AutoCreate.self),
                "Pushes that create a missing room: from this machine (loopback), all (always), none (never). All need their credential.",
                applies: .reload),
            .make(
                "rooms.duplicatePublish", \.rooms.duplicatePublish, .choice(ServerConfig.Rooms.DuplicatePublish.self),
                "A second push to a name takes over: with the same credential (identity), never (reject), with any valid one (takeover).",
                applies: .reload),
            .make(
                "rooms.duplicatePublishByApp", \.rooms.duplicatePublishByApp,
                .byApp(.choice(ServerConfig.Rooms.DuplicatePublish.self), example: "live=reject"),
                "The same for single apps, e.g. [live=reject, talk=takeover].", applies: .reload),
            .make(
                "rooms.history", \.rooms.historyMs, .duration(3_600_000...(400 * day)),
                "How long events, pushes and ended deliveries are kept.", applies: .reload),
            .make(
                "rooms.clockHold", \.rooms.clockHoldMs, .duration(1_000...day),
                "How long a leap of the machine's clock (over a minute) must hold before rooms and recordings follow it."),
            .policy("neverStarted", "Longest time from a room's creation to its first media."),
            .policy("grace", "How long a room waits for a publisher whose connection broke or was dropped."),
            .policy("cleanStop", "How long a room waits for a publisher that stopped cleanly."),
            .policy("mediaIdle", "How long a connected publisher may send nothing before its room is interrupted."),
            .policy("idleGrace", "How long a room waits for a publisher that went silent."),
            .policy("pauseGrace", "How long a room waits for a publisher that announced a pause."),
            .policy("heartbeat", "How often clients send heartbeats."),
            .policy("heartbeatMisses", "Missed heartbeats after which their sender counts as gone."),
            .policy("ownerOffline", "How long a room without an active stream stays open after its owner has left."),
            .policy("maxDuration", "Longest time from a room's first media to its end."),
            .policy("retention", "How long an ended room can be looked up and its id stays taken."),
            .policy("urlLifetime", "Lifetime of a signed URL."),
            .policy("record", "Recording of a room's streams while they are live: always, never, or as recording.apps says (apps)."),

            .make(
                "credentials.key", \.credentials.key, .optional(.secret(8...256)),
                "Key that signs txSecret URLs; generated at the first start if not set.", isSecret: true, applies: .reload),
            .make(
                "credentials.backupKey", \.credentials.backupKey, .optional(.secret(8...256)),
                "Second key that is also accepted in txSecret URLs, for changing keys.", isSecret: true, applies: .reload),
            .make(
                "credentials.playKey", \.credentials.playKey, .optional(.secret(8...256)),
                "Key that signs txSecret URLs that only play; derived from credentials.key if not set.", isSecret: true, applies: .reload),
            .make(
                "credentials.hash", \.credentials.hash, .choice(ServerConfig.Credentials.Hash.self),
                "Hash in the txSecret URLs that the server makes; it accepts both.", applies: .reload),
            .make(
                "credentials.jwtKey", \.credentials.jwtKey, .optional(.secret(32...512)),
                "Key that signs and checks tokens (JWT, HS256); generated at the first start if not set.", isSecret: true, applies: .reload),
            .make(
                "credentials.tokenParameters", \.credentials.tokenParameters, .parameterNames,
                """
                Query parameters of push and play URLs that are read as tokens; the first is in URLs that the server makes. All others reach the \
                authorisation hooks unread. An empty list switches tokens off.
                """, applies: .reload),

            .make(
                "hooks.onPublish", \.hooks.onPublish, .optional(.url("http", "https")),
                "URL that the server asks by POST whether a push may begin; no answer means no.", applies: .reload),
            .make(
                "hooks.onPlay", \.hooks.onPlay, .optional(.url("http", "https")),
                "URL that the server asks by POST whether a play may begin; no answer means no.", applies: .reload),
            .make(
                "hooks.onUnpublish", \.hooks.onUnpublish, .optional(.url("http", "https")), "URL that gets a POST when a push ends.",
                applies: .reload),
            .make(
                "hooks.onStop", \.hooks.onStop, .optional(.url("http", "https")), "URL that gets a POST when a play ends.", applies: .reload
            ),
            .make("hooks.timeout", \.hooks.timeoutMs, .duration(100...60_000), "How long a hook may take to answer.", applies: .reload),

            .make("webhooks.urls", \.webhooks.urls, .urls, "URLs that get every event by POST, signed with HMAC-SHA256.", applies: .reload),
            .make(
                "webhooks.tencentUrls", \.webhooks.tencentURLs, .urls,
                "URLs that get events of streams, recordings, pictures and links in the shape of Tencent's callbacks.", applies: .reload),
            .make(
                "webhooks.key", \.webhooks.key, .optional(.secret(8...256)),
                "Key that signs webhooks and hooks; generated at the first start if not set.", isSecret: true, applies: .reload),
            .make(
                "webhooks.timeout", \.webhooks.timeoutMs, .duration(100...120_000), "How long a target may take to answer.",
                applies: .reload),
            .make(
                "webhooks.retryFor", \.webhooks.retryForMs, .duration(0...(7 * day)),
                "A delivery is tried again until it is so old, then given up. Not for webhooks.tencentUrls: 12 retries, 1 min apart.",
                applies: .reload),
            .make(
                "webhooks.retryInterval", \.webhooks.retryIntervalMs, .duration(100...day),
                "Time from the first try to the second; each further wait is twice as long.", applies: .reload),
            .make(
                "webhooks.maxRetryInterval", \.webhooks.maxRetryIntervalMs, .duration(100...day),
                "The longest time between tries, unless webhooks.retryInterval is longer.", applies: .reload),
            .make(
                "outbound.allowPrivate", \.outbound.allowPrivate, .networks,
                "Private networks that hooks, webhooks and links may connect to, e.g. [127.0.0.0/8].", applies: .reload),
            .make(
                "api.rateLimit", \.api.rateLimit, .count(1...1_000_000), "API requests per second and token; bursts may be twice as large."),
            .make(
                "api.allowOrigins", \.api.allowOrigins, .origins,
                "Origins whose pages may call the API with a token, e.g. [https://console.example.com].", applies: .reload),
            .make(
                "api.auditRetention", \.api.audit.keptMs, .duration(3_600_000...(3_660 * day)),
                "How long a line of the audit trail is kept.", applies: .reload),
            .make(
                "api.auditLines", \.api.audit.lines, .count(1_000...10_000_000),
                "Lines of the audit trail; the oldest go first. Refused calls may have a tenth of this.", applies: .reload),
            .make("console.enabled", \.console.isEnabled, .onOff, "Whether the console is served at /."),
            .make(
                "console.hosts", \.console.hosts, .hostNames,
                "Names under which browsers may open the console, beside addresses, localhost and the host of urls.http."),

            .make("relay.maxBehind", \.relay.maxBehindMs, .duration(100...day), "A viewer further behind live than this is disconnected."),
            .make(
                "relay.skipBehind", \.relay.skipBehindMs, .duration(50...day),
                "A viewer further behind live than this skips video to the next keyframe."),
            .make(
                "relay.gopCache.maxBytes", \.relay.gopCache.maxBytes, .size((64 << 10)...(1 << 30)),
                "Most bytes of video and audio cached since the last keyframe, per stream."),
            .make("relay.gopCache.maxDuration", \.relay.gopCache.maxDurationMs, .duration(100...600_000), "The same limit, in time."),
            .make(
                "relay.coalesce", \.relay.coalesceMs, .duration(0...1_000),
                "Gather messages this long before sending; 0s sends each at once."),
            .make(
                "relay.coalesceByApp", \.relay.coalesceByAppMs, .byApp(.duration(0...1_000), example: "talk=20ms"),
                "The same for single apps, e.g. [live=100ms, talk=0s]."),
            .make(
                "relay.gather", \.relay.gather, .onOff,
                "A core that is woken for single messages thousands of times a second takes several at a time: half a millisecond later, for less CPU."
            ),

            .make(
                "hls.container", \.hls.container, .choice(ServerConfig.HLS.Container.self),
                "Format of segments at .m3u8: fmp4, or ts. At .ts.m3u8 it is always ts.", applies: .reload),
            .make("hls.lowLatency", \.hls.lowLatency, .onOff, "Low-latency HLS; other players are served too.", applies: .reload),
            .make("hls.part", \.hls.partMs, .duration(100...2_000), "Length of a part, in low-latency HLS.", applies: .reload),
            .make(
                "hls.segment", \.hls.segmentMs, .duration(500...20_000), "A segment ends at the first keyframe after this time.",
                applies: .reload),
            .make("hls.window", \.hls.windowMs, .duration(6_000...86_400_000), "How far back a viewer may seek.", applies: .reload),
            .make(
                "hls.maxBytes", \.hls.maxBytes, .size(1 << 20...8 << 30), "Memory that one stream's segments may take.", applies: .reload),
            .make(
                "hls.always", \.hls.always, .onOff, "Make segments also while nobody watches, so that the first viewer need not wait.",
                applies: .reload),

            .make(
                "webrtc.enabled", \.webrtc.isEnabled, .onOff,
                "Whether browsers may play by WebRTC (WHEP), within half a second, and push by it (WHIP)."),
            .make(
                "webrtc.listen", \.webrtc.listen, .optional(.address),
                "Where to listen for WebRTC, by UDP. Default: the address and the port number of http.listen."),
            .make(
                "webrtc.tcp", \.webrtc.acceptsTCP, .onOff,
                "Whether clients whose network lets no UDP through may come by TCP, at the same port number: that of http.listen or https.listen, or one of WebRTC's own."
            ),
            .make(
                "webrtc.addresses", \.webrtc.addresses, .ipAddresses,
                "IP addresses at which clients reach that port, if it is behind NAT or in a container. Default: the one at which their request came.",
                applies: .reload),
            .make(
                "webrtc.bFrames", \.webrtc.bFrames, .choice(ServerConfig.WebRTC.BFrames.self),
                "What to do with B-frames, which WebRTC cannot carry: encode the stream anew (encode), leave them out if no other picture is made from them (drop), the first and otherwise the second (auto), or neither (refuse)."
            ),
            .make(
                "webrtc.encoders", \.webrtc.encoders, .count(0...64),
                "How many streams are encoded anew for WebRTC at a time. One of 720p takes a fifth of a core."),

            .make(
                "recording.apps", \.recording.apps, .apps, "Apps whose streams are recorded whenever they are live; [*] is all.",
                applies: .reload),
            .make(
                "recording.directory", \.recording.directory, .optional(.path),
                "Folder for recordings. Default: recordings in the data directory."
            ),
            .make(
                "recording.fragment", \.recording.fragmentMs, .duration(100...10_000), "Length of a fragment: the most that a crash loses.",
                applies: .reload),
            .make(
                "recording.fsync", \.recording.sync, .sync,
                "When recordings are forced to disk: never, with each fragment (fragment), or at an interval such as 5s.", applies: .reload),
            .make(
                "recording.splitDuration", \.recording.splitDurationMs, .duration(0...(7 * day)),
                "Length after which the next keyframe begins a new file; 0s: never.", applies: .reload),
            .make("recording.splitSize", \.recording.splitBytes, .size(0...(1 << 50)), "The same, by size; 0: never.", applies: .reload),
            .make(
                "recording.retention", \.recording.retentionMs, .duration(0...(3_660 * day)),
                "How long after its end a recording is deleted; 0s: never.", applies: .reload),
            .make(
                "recording.quota", \.recording.quotaBytes, .size(0...(1 << 55)), "Most bytes of all recordings together; 0: no limit.",
                applies: .reload),
            .make(
                "recording.talk", \.recording.talk, .onOff, "Record a room's talk in a file beside that of its stream.", applies: .reload),
            .make(
                "recording.minFree", \.recording.minFreeBytes, .size(0...(1 << 50)),
                "Free disk space to keep: with less, no recording and no picture is written.", applies: .reload),

            .make(
                "snapshots.interval", \.snapshots.intervalMs, .duration(0...day),
                "How often a picture of each live stream is taken; 0s: never.", applies: .reload),
            .make(
                "snapshots.intervalByApp", \.snapshots.intervalByAppMs, .byApp(.duration(0...day), example: "live=10s"),
                "The same for single apps, e.g. [live=10s, talk=0s].", applies: .reload),
            .make(
                "snapshots.keep", \.snapshots.keep, .count(1...1_000), "How many pictures are kept per stream, the newest.",
                applies: .reload),
            .make(
                "snapshots.width", \.snapshots.width, .count(0...3_840), "Width of pictures in pixels; 0: as wide as the stream.",
                applies: .reload),
            .make(
                "snapshots.directory", \.snapshots.directory, .optional(.path),
                "Folder for pictures. Default: snapshots in the data directory."
            ),
            .make(
                "snapshots.quota", \.snapshots.quotaBytes, .size(0...(1 << 50)),
                "Most bytes of all pictures together; the oldest are deleted first. 0: no limit.", applies: .reload),
            .make(
                "snapshots.retention", \.snapshots.retentionMs, .duration(0...(3_660 * day)), "How long a picture is kept; 0s: for ever.",
                applies: .reload),
            .make(
                "talk.mode", \.talk.settings.mode, .choice(TalkSettings.Mode.self), "open: all talkers are heard; ptt: one at a time.",
                applies: .reload),
            .make(
                "talk.talkers", \.talk.settings.talkers, .count(TalkSettings.talkerRange), "Talkers of a room at a time.", applies: .reload),
            .make(
                "talk.listeners", \.talk.settings.listeners, .count(TalkSettings.listenerRange),
                "Listeners of a room's talk channel at a time.", applies: .reload),
            .make(
                "talk.maxOpen", \.talk.settings.maxOpen, .count(TalkSettings.talkerRange),
                "Open microphones of a room at a time, in mode open.", applies: .reload),
            .make(
                "talk.maxHold", \.talk.settings.maxHoldMs, .duration(TalkSettings.holdRange),
                "How long the floor may be held, in mode ptt.", applies: .reload),
            .make(
                "talk.preempts", \.talk.settings.preempts, .onOff, "Let a higher role take the floor at once, in mode ptt.",
                applies: .reload),
            .make("talk.ducks", \.talk.settings.ducks, .onOff, "Lower the volume of the others for whoever is speaking.", applies: .reload),
            .make(
                "talk.idle", \.talk.idleMs, .duration(FloorSettings.idleRange),
                "How long the floor stays with somebody who sends nothing, in mode ptt.", applies: .reload),
            .make("talk.always", \.talk.always, .onOff, "Open the channel in rooms that have not been live yet, too.", applies: .reload),
            .make("talk.bitRate", \.talk.bitRate, .count(16_000...256_000), "Bits per second of a mix.", applies: .reload),
            .make(
                "talk.maxQueue", \.talk.maxQueueMs, .duration(100...10_000),
                "A listener further behind than this skips to what is said now."),

            .make("stats.enabled", \.stats.enabled, .onOff, "Keep figures over time, and finished plays and pushes, in stats.db."),
            .make(
                "stats.keep", \.stats.keepMs, .duration(3_600_000...(400 * day)),
                "How long they are kept; figures by the minute for a day, after that by ten minutes."),
            .make(
                "stats.maxRows", \.stats.maxRows, .count(10_000...100_000_000),
                "Most rows of minutes, of ten minutes, of plays and of pushes, about 150 bytes each; the oldest are deleted first."),
            .make(
                "metrics.streams", \.metrics.streams, .streamPatterns,
                "Streams with figures of their own in /metrics, 200 at most; * stands for any text."),
        ] + Self.apps + Self.ice + Self.limits + [
            .make(
                "drain.timeout", \.drain.timeoutMs, .duration(0...3_600_000),
                "How long running pushes may go on after SIGTERM or a call to drain, while nobody new is let in. A second SIGTERM ends the wait.",
                applies: .reload),
            .make(
                "drain.reconnectTo", \.drain.reconnectTo, .optional(.url("rtmp", "rtmps")),
                "Where Enhanced RTMP clients are asked to connect again at a drain; not set: where they connected before.", applies: .reload
            ),

            .make("log.level", \.log.level, .choice(Logger.Level.self), "Least severe message that is logged.", applies: .reload),
            .make("log.format", \.log.format, .choice(ServerConfig.Log.Format.self), "Lines of text, or of JSON."),
        ]

    package static let byPath = Dictionary(uniqueKeysWithValues: all.map { ($0.path, $0) })
    static let byEnvironmentName = Dictionary(uniqueKeysWithValues: all.map { ($0.environmentName, $0) })

    /// Dotted paths that hold settings: `relay`, `relay.gopCache`, …
    static let sections: Set<String> = Set(
        all.flatMap { setting in
            let parts = setting.path.split(separator: ".")
            return (1..<parts.count).map { parts[..<$0].joined(separator: ".") }
        })
}

extension ConfigSetting {
    static func make<Value: Sendable>(
        _ path: String, _ keyPath: any WritableKeyPath<ServerConfig, Value> & Sendable, _ kind: ConfigValueKind<Value>, _ help: String,
        flag: String? = nil, isSecret: Bool = false, applies: Application = .restart
    ) -> ConfigSetting {
        ConfigSetting(
            path: path, help: help, flag: flag, expected: kind.expected, isList: kind.isList, isSecret: isSecret,
            applies: applies,
            assign: { (values: [String], config: inout ServerConfig) throws(ValueProblem) in
                config[keyPath: keyPath] = try kind.read(values)
            },
            values: { kind.write($0[keyPath: keyPath]) },
            copy: { $1[keyPath: keyPath] = $0[keyPath: keyPath] })
    }

    /// A setting of the rooms' policy, by ``RoomPolicy/Field/name``.
    fileprivate static func policy(_ name: String, _ help: String) -> ConfigSetting {
        guard let field = RoomPolicy.fields.first(where: { $0.name == name }) else { preconditionFailure("no policy field \(name)") }
        let kind: ConfigValueKind<Int64> =
            switch field.kind {
            case .duration: .duration(field.range)
            case .count:
                ConfigValueKind<Int64>("a number") { (text: String) throws(ValueProblem) in
                    Int64(try ConfigValueKind<Int>.count(Int(field.range.lowerBound)...Int(field.range.upperBound)).read([text]))
                } write: {
                    String($0)
                }
            case .words(let words):
                ConfigValueKind<Int64>("one of \(words.joined(separator: ", "))") { (text: String) throws(ValueProblem) in
                    guard let index = words.firstIndex(of: text.lowercased()) else {
                        throw ValueProblem("\"\(text)\" is not one of \(words.joined(separator: ", "))")
                    }
                    return Int64(index)
                } write: {
                    field.word($0) ?? ""
                }
            }
        return ConfigSetting(
            path: "rooms.policy.\(name)", help: help, flag: nil, expected: kind.expected, isList: false, isSecret: false,
            applies: .reload,
            assign: { (values: [String], config: inout ServerConfig) throws(ValueProblem) in
                field.set(&config.rooms.policy, try kind.read(values))
            },
            values: { kind.write(field.get($0.rooms.policy)) },
            copy: { field.set(&$1.rooms.policy, field.get($0.rooms.policy)) })
    }
}
