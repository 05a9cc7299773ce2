package import Logging
package import Rooms
package import Support

/// All settings of a server. A plain value, made once at start (or in a test), then only read, on any thread.
///
/// A fresh `ServerConfig()` holds the defaults. Durations are milliseconds (`…Ms`), sizes are bytes (`…Bytes`). The table in
/// `ConfigSettings.swift` defines each value's spelling in the file, the environment and flags, and its range.
package struct ServerConfig: Sendable, Equatable {
    package var rtmp = RTMP()
    package var rtmps = RTMPS()
    package var https = HTTPS()
    package var http = HTTP()
    package var data = Data()
    package var database = Database()
    package var cluster = Cluster()
    package var access = Access()
    package var urls = URLs()
    package var rooms = Rooms()
    package var credentials = Credentials()
    package var hooks = Hooks()
    package var webhooks = Webhooks()
    package var outbound = Outbound()
    package var api = API()
    package var console = Console()
    package var relay = Relay()
    package var hls = HLS()
    package var webrtc = WebRTC()
    package var recording = Recording()
    package var snapshots = Snapshots()
    package var talk = Talk()
    package var stats = Stats()
    package var metrics = Metrics()
    package var apps = Apps()
    package var ice = ICE()
    package var limits = Limits()
    package var drain = Drain()
    package var log = Log()

    package init() {}

    /// The server's drain.
    package struct Drain: Sendable, Equatable {
        /// How long pushes may go on after SIGTERM.
        package var timeoutMs: Int64 = 0
        /// The URL to which clients are asked to reconnect; nil: the same address as before.
        package var reconnectTo: String?
    }

    /// The RTMP listener without TLS.
    package struct RTMP: Sendable, Equatable {
        package var listen = HostPort(host: "127.0.0.1", port: 1935)
        /// Sends publishers the rate that their uplink carried while it is too slow.
        package var adviseUplink = false
    }

    /// The RTMP-over-TLS listener; on exactly when a certificate is set.
    package struct RTMPS: Sendable, Equatable {
        /// The address as configured; the server listens on `address`.
        package var listen: HostPort?
        /// Path of a PEM file: the certificate, then its chain.
        package var certificate: String?
        /// Path of a PEM file: the certificate's private key.
        package var key: String?

        package static let defaultListen = HostPort(host: "127.0.0.1", port: 1936)

        /// The address to listen on; nil when RTMPS is off.
        package var address: HostPort? { certificate == nil ? nil : listen ?? Self.defaultListen }

        /// The paths of the certificate and of its key; nil without TLS.
        package var files: (certificate: String, key: String)? {
            guard let certificate, let key else { return nil }
            return (certificate, key)
        }
    }

    /// The HTTP listener: API, event feed, health checks, and playing over HTTP.
    package struct HTTP: Sendable, Equatable {
        package var listen = HostPort(host: "127.0.0.1", port: 8080)
        /// Other origins whose pages may play with a credential, in lower case; "*" for all. A named origin's pages may also play without a credential
        /// where none is needed.
        package var allowOrigin = ["*"]
        /// How long a player's first request waits: for a publisher in a room that has none, the first segment, or the first piece.
        package var firstWaitMs: Int64 = 12_000
        /// More host names and addresses of the server, or "any", for requests without a credential.
        package var hosts: [String] = []
    }

    /// The HTTP listener over TLS, with the certificate of RTMPS; on exactly when there is one.
    package struct HTTPS: Sendable, Equatable {
        /// The address as configured; the server listens on ``ServerConfig/httpsAddress``.
        package var listen: HostPort?

        package static let defaultListen = HostPort(host: "127.0.0.1", port: 8443)
    }

    /// The address to listen on for HTTPS; nil when it is off.
    package var httpsAddress: HostPort? { self.rtmps.certificate == nil ? nil : self.https.listen ?? HTTPS.defaultListen }

    /// Data on disk.
    package struct Data: Sendable, Equatable {
        /// Path of a folder; the server creates it if it is missing. A relative path starts at the working directory.
        package var directory = "./earshot-data"
        /// Free disk space below which no room is created and no push begins. Running pushes go on.
        package var minFreeBytes = 128 << 20
    }

    /// Permissions by source address.
    package struct Access: Sendable, Equatable {
        /// Addresses that may push without a credential.
        package var publishFrom = CIDR.loopback
        /// Addresses that may play without a credential.
        package var playFrom = CIDR.loopback
        /// Addresses that may call the API. They need a token too.
        package var apiFrom = CIDR.loopback
        /// HTTP proxies whose `X-Forwarded-For` is trusted.
        package var trustedProxies: [CIDR] = []
        /// TCP proxies, for any protocol. Each of their connections must begin with a PROXY protocol header, which names the client.
        package var proxyProtocolFrom: [CIDR] = []
        package init() {}
    }

    /// Prefixes of the URLs that the server hands out. Nil: derived from the listener and the request.
    package struct URLs: Sendable, Equatable {
        /// "rtmp://live.example.com"
        package var rtmp: String?
        package var rtmps: String?
        package var http: String?
    }

    /// The room registry.
    package struct Rooms: Sendable, Equatable {
        package enum AutoCreate: String, Sendable, CaseIterable { case loopback, always, never }
        /// The effect of a second push to a name, when its credential is valid.
        package enum DuplicatePublish: String, Sendable, CaseIterable {
            /// A push with the same credential takes over; another is refused.
            case identity
            case reject
            case takeover
        }
        package var autoCreate = AutoCreate.loopback
        package var duplicatePublish = DuplicatePublish.identity
        /// Exceptions, by app.
        package var duplicatePublishByApp: NameTable<DuplicatePublish> = [:]
        /// How long events, pushes and ended deliveries are kept.
        package var historyMs: Int64 = 7 * 86_400_000
        /// How long a leap of the machine's clock must last before the server follows it.
        package var clockHoldMs = RoomClock.defaultHoldMs
        package var policy = RoomPolicy()
    }

    /// Keys that sign push and play URLs. `key` and `jwtKey` are made at the first start if nil, and kept in the data directory.
    package struct Credentials: Sendable, Equatable {
        package enum Hash: String, Sendable, CaseIterable { case md5, sha256 }
        /// Signs and checks `txSecret`.
        package var key: String?
        /// A second key that checks `txSecret`, for key rotation.
        package var backupKey: String?
        package var playKey: String?
        /// The hash of URLs that the server makes; it accepts both.
        package var hash = Hash.md5
        /// HMAC key of tokens, at least 32 bytes.
        package var jwtKey: String?
        /// Query parameters that are read as tokens; the first is in the URLs that the server makes.
        package var tokenParameters = ["token", "jwt"]
    }

    /// URLs that authorize pushes and plays, or learn of their end, by HTTP POST; nil: not called.
    package struct Hooks: Sendable, Equatable {
        package var onPublish: String?
        package var onPlay: String?
        package var onUnpublish: String?
        package var onStop: String?
        package var timeoutMs: Int64 = 5_000
    }

    /// Webhooks: events are sent to other servers.
    package struct Webhooks: Sendable, Equatable {
        /// Numbered events, signed with HMAC-SHA256.
        package var urls: [String] = []
        /// Stream begin and end, in the format of Tencent's callbacks.
        package var tencentURLs: [String] = []
        /// Signs both kinds, and hooks. Nil: made at the first start and kept in the data directory.
        package var key: String?
        package var timeoutMs: Int64 = 20_000
        /// A delivery older than this is not tried again.
        package var retryForMs: Int64 = 86_400_000
        /// From the first try to the second. Each further wait is twice as long, up to `maxRetryIntervalMs`.
        package var retryIntervalMs: Int64 = 10_000
        package var maxRetryIntervalMs: Int64 = 900_000
        /// The cloud's own rule for its callbacks, which no setting changes.
        package var tencentRetries = 12
        package var tencentRetryIntervalMs: Int64 = 60_000
    }

    /// Targets of the server's own connections: hooks, webhooks, links.
    package struct Outbound: Sendable, Equatable {
        /// Private networks, loopback included, where targets are allowed. Public addresses always are.
        package var allowPrivate: [CIDR] = []
    }

    /// The web page.
    package struct Console: Sendable, Equatable {
        package var isEnabled = true
        /// Names under which browsers may open it, beside addresses and localhost, in lower case.
        package var hosts: [String] = []
    }

    /// The HTTP API.
    package struct API: Sendable, Equatable {
        /// Requests per second and token; the burst is twice that.
        package var rateLimit = 200
        /// Origins whose pages may call the API, in lower case: "https://console.example.com".
        package var allowOrigins: [String] = []
        /// How much of the audit trail is kept.
        package var audit = AuditRetention()
    }

    /// Buffering and fan-out of streams.
    package struct Relay: Sendable, Equatable {
        /// Milliseconds behind live past which a viewer is disconnected.
        package var maxBehindMs: Int64 = 5_000
        /// Milliseconds behind live past which a viewer's video skips to the next keyframe.
        package var skipBehindMs: Int64 = 1_000
        package var gopCache = GOPCache()
        /// Milliseconds for which messages are gathered before sending; 0 sends each at once.
        package var coalesceMs: Int64 = 0
        package var coalesceByAppMs: NameTable<Int64> = [:]
        /// A busy loop looks at its sockets at most every half a millisecond.
        package var gather = true
    }

    /// Playing by HLS.
    package struct HLS: Sendable, Equatable {
        package enum Container: String, Sendable, CaseIterable { case fmp4, ts }
        package var container = Container.fmp4
        /// Parts, blocking reload and preload hints (RFC 8216bis).
        package var lowLatency = true
        package var partMs: Int64 = 200
        /// A segment ends at the first keyframe after this.
        package var segmentMs: Int64 = 2_000
        /// How far back a viewer may seek.
        package var windowMs: Int64 = 12_000
        /// Memory for one stream's media.
        package var maxBytes = 64 << 20
        /// Also makes segments without viewers, so that the first one need not wait.
        package var always = false
    }

    /// Playing by WebRTC.
    package struct WebRTC: Sendable, Equatable {
        /// What is done with B-frames, which WebRTC cannot carry.
        package enum BFrames: String, Sendable, CaseIterable {
            /// Encode the pictures anew while an encoder is free; otherwise leave B-frames out if no other picture is made from them.
            case auto
            case drop, encode, refuse
        }

        package var isEnabled = true
        /// The address as configured; nil: that of `http.listen`.
        package var listen: HostPort?
        /// Whether clients may come by TCP too, at the same port number.
        package var acceptsTCP = true
        /// IP addresses at which clients reach the UDP port. Empty: the one at which a client's request came.
        package var addresses: [String] = []
        package var bFrames = BFrames.auto
        /// Streams that are encoded anew at a time.
        package var encoders = 2
    }

    /// Recording streams to files.
    package struct Recording: Sendable, Equatable {
        /// When recordings are forced to the disk.
        package enum Sync: Sendable, Equatable {
            /// Left to the system.
            case never
            case fragment
            case every(ms: Int64)
        }
        /// Apps whose streams are recorded whenever they are live; "*" is all apps.
        package var apps: [String] = []
        /// Nil: the folder "recordings" in the data directory.
        package var directory: String?
        /// Length of a fragment: the most media that is lost when the server is killed.
        package var fragmentMs: Int64 = 1_000
        package var sync = Sync.every(ms: 5_000)
        /// Length after which the next keyframe begins a new file; 0: never.
        package var splitDurationMs: Int64 = 3_600_000
        package var splitBytes = 0
        /// How long after its end a file is deleted; 0: never.
        package var retentionMs: Int64 = 0
        /// Limit of all recordings; 0: none.
        package var quotaBytes = 0
        /// Also records a room's talk, in a file beside that of its stream.
        package var talk = false
        /// Free disk space below which nothing is recorded.
        package var minFreeBytes = 512 << 20
    }

    /// Automatic pictures of live streams.
    package struct Snapshots: Sendable, Equatable {
        /// Time between two pictures of one stream; 0: none are taken.
        package var intervalMs: Int64 = 0
        /// Exceptions, by app.
        package var intervalByAppMs: NameTable<Int64> = [:]
        /// Pictures kept per stream, the newest.
        package var keep = 10
        /// Pixels; the height follows. 0: as wide as the stream.
        package var width = 640
        /// Nil: the folder "snapshots" in the data directory.
        package var directory: String?
        /// Limit of all pictures; the oldest are deleted first. 0: none.
        package var quotaBytes = 1 << 30
        /// How long a picture is kept; 0: for ever.
        package var retentionMs: Int64 = 7 * 86_400_000
    }

    /// Figures over time, and finished plays and pushes.
    package struct Stats: Sendable, Equatable {
        package var enabled = true
        package var keepMs: Int64 = 31 * 86_400_000
        /// Rows of each table: minutes, ten minutes, plays, pushes.
        package var maxRows = 500_000
    }

    /// Settings of `/metrics`.
    package struct Metrics: Sendable, Equatable {
        /// Streams that have figures of their own there.
        package var streams: [StreamPattern] = []
    }

    /// Bounds of one stream's cached group of pictures.
    package struct GOPCache: Sendable, Equatable {
        package var maxBytes = 16 << 20
        package var maxDurationMs: Int64 = 20_000
    }

    /// Limits of every number that a peer controls.
    package struct Limits: Sendable, Equatable {
        /// From accept to the end of the handshake.
        package var handshakeMs: Int64 = 5_000
        /// From the end of the handshake to the connect command.
        package var connectMs: Int64 = 10_000
        /// From publish to the first audio or video message.
        package var firstMediaMs: Int64 = 20_000
        /// Bytes without the tag header; the same holds for `audioMessageBytes`.
        package var videoMessageBytes = 15 << 20
        package var audioMessageBytes = 1 << 20
        /// Data and command messages.
        package var dataMessageBytes = 64 << 10
        /// Unfinished messages per connection.
        package var partialMessages = 64
        /// Bytes of unfinished messages per connection.
        package var partialBytes = 17 << 20
        /// Bytes of one message until a publish is accepted.
        package var messageBytesBeforePublish = 64 << 10
        /// Bytes held for one connection until a publish is accepted.
        package var bytesBeforePublish = 256 << 10
        /// App and stream name, UTF-8.
        package var streamNameBytes = 256
        /// Bytes of media and of peers' input, over the whole process. Nil: ``SystemMemory/usualLimit``.
        package var memoryBytes: Int?
        /// Bytes of one stream's frames queued for remuxing or recording.
        package var frameQueueBytes = 32 << 20
        /// RTMP and RTMPS connections at a time.
        package var connections = 20_000
        /// Nil: half of all, 5,000 at most (``connectionsOfAddress``).
        package var connectionsPerAddress: Int?
        /// Players over HLS at a time, who have no connections.
        package var hlsPlayers = 20_000
        package var viewersPerStream = 20_000
        /// Publishers at a time, over all streams.
        package var publishersTotal = 2_000
        /// Lag from which an event loop accepts no new viewers.
        package var lagMs: Int64 = 500
        /// Admitted push attempts per second; the burst is ten times that.
        package var publishesPerAddress = 50
        package var publishesPerCredential = 20
        /// Rooms made by pushes per second; the burst is twenty times that.
        package var roomsPerAddress = 10
        package var roomsPerCredential = 5
        /// Concurrent HTTP connections, including viewers over HTTP and subscribers of the event feed.
        package var httpConnections = 20_000
        /// Concurrent HTTP connections of one address, including requests that trusted proxies forward for it.
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

        package enum Format: String, Sendable, CaseIterable { case text, json }
    }
}
