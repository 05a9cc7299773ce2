package import Logging
package import Rooms

/// Everything that can be set about a server: a plain value, made once at start (or in a test) and then only read, on any thread.
///
/// A fresh `ServerConfig()` holds the defaults. Durations are milliseconds (`…Ms`), sizes are bytes (`…Bytes`); how each value is
/// written in the file, the environment and flags, and the range it must lie in, is in the table of `ConfigSettings.swift`.
package struct ServerConfig: Sendable, Equatable {
    package var rtmp = RTMP()
    package var rtmps = RTMPS()
    package var https = HTTPS()
    package var http = HTTP()
    package var data = Data()
    package var access = Access()
    package var urls = URLs()
    package var rooms = Rooms()
    package var credentials = Credentials()
    package var hooks = Hooks()
    package var webhooks = Webhooks()
    package var outbound = Outbound()
    package var api = API()
    package var relay = Relay()
    package var hls = HLS()
    package var recording = Recording()
    package var snapshots = Snapshots()
    package var talk = Talk()
    package var limits = Limits()
    package var log = Log()

    package init() {}

    /// The plain RTMP listener.
    package struct RTMP: Sendable, Equatable {
        package var listen = HostPort(host: "127.0.0.1", port: 1935)
        package init() {}
    }

    /// The RTMP-over-TLS listener; on exactly when a certificate is set.
    package struct RTMPS: Sendable, Equatable {
        /// As configured; `address` is what to listen on.
        package var listen: HostPort?
        /// Path of a PEM file: the certificate, then its chain.
        package var certificate: String?
        /// Path of a PEM file: the certificate's private key.
        package var key: String?
        package init() {}

        package static let defaultListen = HostPort(host: "127.0.0.1", port: 1936)

        /// Where to listen; nil when RTMPS is off.
        package var address: HostPort? { certificate == nil ? nil : listen ?? Self.defaultListen }
    }

    /// The HTTP listener: API, event feed, health checks, and playing over HTTP.
    package struct HTTP: Sendable, Equatable {
        package var listen = HostPort(host: "127.0.0.1", port: 8080)
        /// Which origin's pages may play with a credential: "*" for all, one origin, or empty for none but the server's own. One that is
        /// named may also play where none is needed.
        package var allowOrigin = "*"
        /// How long a player's first request waits for what it wants: a publisher in a room that waits for one, the first segment, the first
        /// piece.
        package var firstWaitMs: Int64 = 12_000
        /// More names and addresses of the server's own, or "any", for requests without a credential.
        package var hosts: [String] = []
        package init() {}
    }

    /// The same over TLS, with the certificate of RTMPS; on exactly when there is one.
    package struct HTTPS: Sendable, Equatable {
        /// As configured; ``ServerConfig/httpsAddress`` is what to listen on.
        package var listen: HostPort?
        package init() {}

        package static let defaultListen = HostPort(host: "127.0.0.1", port: 8443)
    }

    /// Where to listen for HTTPS; nil when it is off.
    package var httpsAddress: HostPort? { self.rtmps.certificate == nil ? nil : self.https.listen ?? HTTPS.defaultListen }

    /// What is kept on disk.
    package struct Data: Sendable, Equatable {
        /// Path of a folder; made by the server when it is missing. A relative path starts at the working directory.
        package var directory = "./earshot-data"
        /// Of the disk; with less no room is made and no push begins, while what runs goes on.
        package var minFreeBytes = 128 << 20
        package init() {}
    }

    /// Who may do what, by source address.
    package struct Access: Sendable, Equatable {
        /// May push without a credential.
        package var publishFrom = CIDR.loopback
        /// May play without a credential.
        package var playFrom = CIDR.loopback
        /// May call the API at all; a token is needed as well.
        package var apiFrom = CIDR.loopback
        /// Proxies whose word is taken for whom they forward HTTP requests (`X-Forwarded-For`).
        package var trustedProxies: [CIDR] = []
        /// Proxies of connections, whatever those speak: each of theirs must begin with a PROXY protocol header, which says whose it is.
        package var proxyProtocolFrom: [CIDR] = []
        package init() {}
    }

    /// How others reach the server: the beginnings of the URLs that it hands out. Nil: from the listener and the request.
    package struct URLs: Sendable, Equatable {
        /// "rtmp://live.example.com"
        package var rtmp: String?
        package var rtmps: String?
        package var http: String?
        package init() {}
    }

    /// The room registry.
    package struct Rooms: Sendable, Equatable {
        package enum AutoCreate: String, Sendable, CaseIterable { case loopback, always, never }
        /// What a push to a name that is being published does, when its credential is good.
        package enum DuplicatePublish: String, Sendable, CaseIterable {
            /// The same credential takes over, another is refused.
            case identity
            case reject
            case takeover
        }
        package var autoCreate = AutoCreate.loopback
        package var duplicatePublish = DuplicatePublish.identity
        /// "app=policy", for apps that differ.
        package var duplicatePublishByApp: [String: DuplicatePublish] = [:]
        /// How long events, pushes and delivered notices are kept.
        package var historyMs: Int64 = 7 * 86_400_000
        /// A leap of the machine's clock is followed when it has held so long.
        package var clockHoldMs = RoomClock.defaultHoldMs
        package var policy = RoomPolicy()
        package init() {}
    }

    /// What signs push and play URLs. What is nil is made at the first start and kept in the data directory.
    package struct Credentials: Sendable, Equatable {
        package enum Hash: String, Sendable, CaseIterable { case md5, sha256 }
        /// Signs and checks `txSecret`.
        package var key: String?
        /// Checks `txSecret` too, while keys are being changed.
        package var backupKey: String?
        package var playKey: String?
        /// Of the URLs made here; both are accepted.
        package var hash = Hash.md5
        /// HMAC key of tokens, at least 32 bytes.
        package var jwtKey: String?
        package init() {}
    }

    /// Questions asked of another server by HTTP POST; nil: not asked.
    package struct Hooks: Sendable, Equatable {
        package var onPublish: String?
        package var onPlay: String?
        package var onUnpublish: String?
        package var onStop: String?
        package var timeoutMs: Int64 = 5_000
        package init() {}
    }

    /// Notices of what happened, to other servers.
    package struct Webhooks: Sendable, Equatable {
        /// Numbered events, signed with HMAC-SHA256.
        package var urls: [String] = []
        /// Stream begin and end in the shape of Tencent's callbacks.
        package var tencentURLs: [String] = []
        /// Signs both kinds. Nil: made at the first start and kept in the data directory.
        package var key: String?
        package var timeoutMs: Int64 = 20_000
        package var retries = 12
        package var retryIntervalMs: Int64 = 60_000
        package init() {}
    }

    /// Where the server may connect to by itself (hooks, webhooks).
    package struct Outbound: Sendable, Equatable {
        /// Private networks, loopback included, that targets may lie in; public addresses always may.
        package var allowPrivate: [CIDR] = []
        package init() {}
    }

    /// The HTTP API.
    package struct API: Sendable, Equatable {
        /// Requests per second and token; twice as many at once.
        package var rateLimit = 200
        /// Origins whose pages may call it, in lower case: "https://console.example.com".
        package var allowOrigins: [String] = []
        package init() {}
    }

    /// How streams are kept and fanned out.
    package struct Relay: Sendable, Equatable {
        /// Milliseconds behind live past which a viewer is disconnected.
        package var maxBehindMs: Int64 = 5_000
        /// Milliseconds behind live past which a viewer's video skips to the next keyframe.
        package var skipBehindMs: Int64 = 1_000
        package var gopCache = GOPCache()
        /// Milliseconds that messages are gathered before they are sent; 0 sends each at once.
        package var coalesceMs: Int64 = 0
        package var coalesceByAppMs: [String: Int64] = [:]
        package init() {}
    }

    /// Playing by HLS.
    package struct HLS: Sendable, Equatable {
        package enum Container: String, Sendable, CaseIterable { case fmp4, ts }
        package var container = Container.fmp4
        /// Parts, blocking reload and preload hints (RFC 8216bis).
        package var lowLatency = true
        package var partMs: Int64 = 200
        /// Cut at the first keyframe from there on.
        package var segmentMs: Int64 = 2_000
        /// How far back a viewer may go.
        package var windowMs: Int64 = 12_000
        /// Of one stream's media in memory.
        package var maxBytes = 64 << 20
        /// Also while nobody watches: the first viewer need not wait.
        package var always = false
        package init() {}
    }

    /// Recording streams to files.
    package struct Recording: Sendable, Equatable {
        /// When what is written is forced to the disk.
        package enum Sync: Sendable, Equatable {
            /// Whenever the system likes.
            case never
            case fragment
            case every(ms: Int64)
        }
        /// Recorded whenever they are live; "*" is all apps.
        package var apps: [String] = []
        /// Nil: the folder "recordings" in the data directory.
        package var directory: String?
        /// What a kill may cost.
        package var fragmentMs: Int64 = 1_000
        package var sync = Sync.every(ms: 5_000)
        /// From there on the next keyframe begins a file; 0: never.
        package var splitDurationMs: Int64 = 3_600_000
        package var splitBytes = 0
        /// Files are deleted so long after their end; 0: never.
        package var retentionMs: Int64 = 0
        /// Of all recordings; 0: no limit.
        package var quotaBytes = 0
        /// The room's talk too, in a file beside.
        package var talk = false
        /// Of the disk; with less nothing is recorded.
        package var minFreeBytes = 512 << 20
        package init() {}
    }

    /// Pictures of live streams, taken by themselves.
    package struct Snapshots: Sendable, Equatable {
        /// Between two of one stream; 0: none are taken.
        package var intervalMs: Int64 = 0
        /// For apps that differ.
        package var intervalByAppMs: [String: Int64] = [:]
        /// Of one stream, the newest.
        package var keep = 10
        /// Pixels; the height follows. 0: as wide as the stream.
        package var width = 640
        /// Nil: the folder "snapshots" in the data directory.
        package var directory: String?
        /// Of all pictures; the oldest go. 0: no limit.
        package var quotaBytes = 1 << 30
        /// Files are deleted so long after they were made; 0: never.
        package var retentionMs: Int64 = 7 * 86_400_000
        package init() {}
    }

    /// Bounds of one stream's cached group of pictures.
    package struct GOPCache: Sendable, Equatable {
        package var maxBytes = 16 << 20
        package var maxDurationMs: Int64 = 20_000
        package init() {}
    }

    /// Every number that a peer controls.
    package struct Limits: Sendable, Equatable {
        /// From accept to the end of the handshake.
        package var handshakeMs: Int64 = 5_000
        /// From the end of the handshake to the connect command.
        package var connectMs: Int64 = 10_000
        /// From publish to the first audio or video message.
        package var firstMediaMs: Int64 = 20_000
        /// Without the tag header, as the next one.
        package var videoMessageBytes = 15 << 20
        package var audioMessageBytes = 1 << 20
        /// Data and command messages.
        package var dataMessageBytes = 64 << 10
        /// Messages begun and not ended, per connection.
        package var partialMessages = 64
        /// Bytes held by messages begun and not ended, per connection.
        package var partialBytes = 17 << 20
        /// Of any one message until a publish is accepted.
        package var messageBytesBeforePublish = 64 << 10
        /// Held for one connection until a publish is accepted.
        package var bytesBeforePublish = 256 << 10
        /// App and stream name, UTF-8.
        package var streamNameBytes = 256
        /// Bytes of media and of what peers have sent, over the whole process. Nil: ``SystemMemory/usualLimit``.
        package var memoryBytes: Int?
        /// Of one stream's frames, where they wait to be remuxed or recorded.
        package var frameQueueBytes = FrameMailbox.usualLimitBytes
        /// RTMP and RTMPS connections at a time.
        package var connections = 20_000
        package var connectionsPerAddress = 5_000
        package var viewersPerStream = 20_000
        /// Publishers at a time, over all streams.
        package var publishersTotal = 2_000
        /// Lag of an event loop from which on it takes no new viewers.
        package var lagMs: Int64 = 500
        /// Pushes tried per second, let in by their credentials; ten times as many at once.
        package var publishesPerAddress = 50
        package var publishesPerCredential = 20
        /// Rooms that pushes make per second; twenty times as many at once.
        package var roomsPerAddress = 10
        package var roomsPerCredential = 5
        /// HTTP connections at a time, viewers over HTTP and subscribers of the event feed among them.
        package var httpConnections = 20_000
        /// Of one address; with requests that trusted proxies forward for it.
        package var httpPerAddress = 5_000
        /// From the connection to the end of the first request's head.
        package var httpHeadMs: Int64 = 10_000
        /// From a request's head to the end of its body.
        package var httpBodyMs: Int64 = 10_000
        /// Between an answer and the next request.
        package var httpIdleMs: Int64 = 60_000
        package init() {}
    }

    /// The log on standard error.
    package struct Log: Sendable, Equatable {
        package var level: Logger.Level = .info
        package var format = Format.text
        package init() {}

        package enum Format: String, Sendable, CaseIterable { case text, json }
    }
}
