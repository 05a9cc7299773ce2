// swift-tools-version:6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

let nioCore: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioPosix: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")
let nioEmbedded: Target.Dependency = .product(name: "NIOEmbedded", package: "swift-nio")
let nioSSL: Target.Dependency = .product(name: "NIOSSL", package: "swift-nio-ssl")
let deque: Target.Dependency = .product(name: "DequeModule", package: "swift-collections")
let heap: Target.Dependency = .product(name: "HeapModule", package: "swift-collections")
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")
let httpClient: Target.Dependency = .product(name: "AsyncHTTPClient", package: "async-http-client")
let webSocket: Target.Dependency = .product(name: "NIOWebSocket", package: "swift-nio")
let nioHTTP1: Target.Dependency = .product(name: "NIOHTTP1", package: "swift-nio")
let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types")
let hummingbird: Target.Dependency = .product(name: "Hummingbird", package: "hummingbird")
let hummingbirdCore: Target.Dependency = .product(name: "HummingbirdCore", package: "hummingbird")
let lifecycle: Target.Dependency = .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")

// What the fuzz targets drive.
let fuzzed = [
    "Support", "Media", "RTMP", "HLS", "Talk", "FFmpeg", "LinkTransport", "Rooms", "ServerConfiguration", "Listening", "HTTPServer", "Apps",
    "Access", "Relay", "DTLSSRTP", "WebRTC",
    "LibC",
]
let fuzzPackages: [Target.Dependency] = [
    nioCore, nioEmbedded, nioHTTP1, httpTypes, logging, .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
    .product(name: "NIOHTTP2", package: "swift-nio-http2"), .product(name: "NIOHPACK", package: "swift-nio-http2"),
    .product(name: "JWTKit", package: "jwt-kit"),
]

/// What the targets of `Sources`, programs and tests have in common. `own`: targets of this package, `others`: products of other packages.
func dependencies(_ own: String, _ others: [Target.Dependency]) -> [Target.Dependency] {
    own.split(separator: " ").map { .byName(name: String($0)) } + others
}
func library(
    _ name: String, _ own: String = "", _ others: [Target.Dependency] = [], path: String? = nil, exclude: [String] = []
) -> Target {
    .target(name: name, dependencies: dependencies(own, others), path: path, exclude: exclude, swiftSettings: settings)
}
func program(_ name: String, _ own: String, _ others: [Target.Dependency] = [], path: String? = nil, exclude: [String] = []) -> Target {
    .executableTarget(name: name, dependencies: dependencies(own, others), path: path, exclude: exclude, swiftSettings: settings)
}
func tests(_ name: String, _ own: String, _ others: [Target.Dependency] = [], resources: [Resource]? = nil) -> Target {
    .testTarget(name: name, dependencies: dependencies(own, others), resources: resources, swiftSettings: settings)
}

let package = Package(
    name: "earshot",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "earshot", targets: ["earshot"])
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio.git", exact: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl.git", exact: "2.37.6"),
        .package(url: "https://github.com/apple/swift-nio-http2.git", exact: "1.46.0"),
        .package(url: "https://github.com/apple/swift-http-types.git", exact: "1.8.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", exact: "2.28.1"),
        .package(url: "https://github.com/apple/swift-nio-extras.git", exact: "1.35.2"),
        .package(url: "https://github.com/groue/GRDB.swift.git", exact: "7.10.0"),
        .package(url: "https://github.com/swift-server/async-http-client.git", exact: "1.37.0"),
        .package(url: "https://github.com/vapor/jwt-kit.git", exact: "5.7.1"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", exact: "2.13.0"),
        .package(url: "https://github.com/apple/swift-argument-parser.git", exact: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log.git", exact: "1.16.2"),
        .package(url: "https://github.com/apple/swift-crypto.git", exact: "4.5.2"),
        .package(url: "https://github.com/jpsim/Yams.git", exact: "6.2.2"),
        .package(url: "https://github.com/apple/swift-collections.git", exact: "1.6.0"),
    ],
    targets: [
        // The C library by one name on every system.
        library("LibC"),
        // Floor 0: no sockets; pure values but for Support, which is what every service needs: JSON, clocks, addresses, secrets, rates.
        library("Support", "CFileStatus LibC", [logging, nioCore]),
        library("Media", "", [nioCore]),
        library("RTMP", "Support", [nioCore, crypto]),
        // How a stream does, and why: judged from seconds of figures; no clock.
        library("Health", "Media"),
        // Flight recorders: what a session said and did last; no clock, no socket.
        library("Trace"),
        // Messages between apps' clients: gatherings of people, the mesh, the cloud's API; no sockets, no clock, no store.
        library("Apps", "Rooms Support", [crypto]),
        // Floor 1
        // Event loops, and connections' sockets on them as channels for NIO's handlers.
        library(
            "Sockets", "LibC Support", [nioCore, .product(name: "NIOConcurrencyHelpers", package: "swift-nio"), deque, heap]),
        library("Relay", "Health LibC Media RTMP Support", [nioCore, deque]),
        // The fence around libssl for datagrams: DTLS, SRTP, and the integrity of STUN; no sockets.
        library("DTLSSRTP", "COpenSSL"),
        // Browsers as viewers: STUN and ICE-lite, offers and answers, RTP and RTCP; no sockets, no clock.
        library("WebRTC", "CZlib DTLSSRTP Support", [nioCore, deque]),
        // Rooms: values, states and rules; no clock, no store.
        library("Rooms", "Support", [crypto]),
        // The database of rooms: connections to SQLite and PostgreSQL, schemas, the place among the nodes that share one, copies.
        library("Store", "CLibPQ LibC Rooms Support", [grdb]),
        // The registry of rooms: transactions and their statements, by concern.
        library("RoomRegistry", "LibC Rooms Store Support", [crypto]),
        // Packets in containers, and decoding and encoding of what must be: all that there is of libav.
        library("FFmpeg", "CFFmpeg LibC Media", [nioCore]),
        // Voices: their addresses, buffers, mixes, the floor; no codecs, no sockets, no clock.
        library("Talk", "LibC"),
        // Playlists and what they list; no sockets, no clock.
        library("HLS", "Support", [nioCore]),
        // Clients of other RTMP servers, for links: librtmp, with TLS by OpenSSL. RTMP reads and writes the commands.
        library("LinkTransport", "CLibRTMP COpenSSL LibC Media RTMP Support", [nioCore]),
        .systemLibrary(
            name: "CFFmpeg", pkgConfig: "libavformat",
            providers: [.apt(["libavformat-dev", "libavcodec-dev", "libavutil-dev", "libswresample-dev", "libswscale-dev"])]),
        .systemLibrary(name: "CLibRTMP", pkgConfig: "librtmp", providers: [.apt(["librtmp-dev"])]),
        .systemLibrary(name: "CLibPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CFileStatus"),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CQREncode", pkgConfig: "libqrencode", providers: [.apt(["libqrencode-dev"])]),
        // Floor 2: services, each fenced
        library("ServerConfiguration", "LibC Rooms Support Talk", [logging, .product(name: "Yams", package: "Yams")]),
        // The server's own HTTP requests, and the addresses that they may go to.
        library(
            "Outbound", "LibC ServerConfiguration Support", [httpClient, crypto, logging, nioCore, nioPosix, nioSSL, lifecycle, nioHTTP1]),
        // Permission to push and play: keys, credentials, hooks, rates, signed URLs.
        library(
            "Access", "CQREncode CZlib LibC Outbound RTMP Rooms ServerConfiguration Support Talk",
            [crypto, logging, nioCore, .product(name: "JWTKit", package: "jwt-kit")]),
        // Ports: who may connect now, TLS certificates, the PROXY protocol, clients' addresses, counts.
        library("Listening", "LibC Sockets Support", [logging, nioCore, nioPosix, nioSSL, httpTypes, nioHTTP1]),
        // HTTP/1, HTTP/2, WebSocket, files and errors; it does not know what is served.
        library(
            "HTTPServer", "CZlib Listening ServerConfiguration Support",
            [
                hummingbird, hummingbirdCore, httpTypes, logging, nioCore, nioHTTP1, nioPosix, nioSSL, lifecycle, crypto,
                .product(name: "NIOTLS", package: "swift-nio"), .product(name: "NIOHTTP2", package: "swift-nio-http2"),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
                .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras"),
                .product(name: "NIOHTTPTypesHTTP2", package: "swift-nio-extras"),
            ]),
        // Notifications of back ends: the event feed and webhooks.
        library(
            "Notifications", "Access HTTPServer Listening Outbound RoomRegistry Rooms ServerConfiguration Store Support",
            [logging, nioCore, lifecycle, crypto]),
        // Live streams: who may use them, on which loop they live, memory and limits, and what rooms decide about them.
        library(
            "Streaming", "Access Health LibC Listening Media RTMP Relay Rooms ServerConfiguration Sockets Support Trace",
            [crypto, logging, nioCore, nioPosix, lifecycle]),
        // RTMP's port and connections.
        library(
            "RTMPServer", "Access Listening Media RTMP Relay Rooms ServerConfiguration Streaming Support Talk Trace",
            [logging, nioCore, nioPosix, nioSSL, lifecycle]),
        // Streams in containers: remuxers for HLS and MP4, recordings, pictures.
        library(
            "Packaging", "FFmpeg HLS LibC Media RTMP Relay Rooms ServerConfiguration Streaming Support WebRTC",
            [logging, nioCore, nioPosix, lifecycle]),
        // The rooms' talk channels: admission, clocks, mixes as streams.
        library(
            "Talkback",
            "Access FFmpeg LibC Media Notifications RTMP Relay RoomRegistry Rooms ServerConfiguration Sockets Streaming Support Talk",
            [logging, nioCore]),
        // Figures over time, and the plays and pushes that are over, in a file of their own.
        library("Statistics", "Access Relay Rooms Streaming Support", [grdb, lifecycle, logging, nioCore]),
        // How a call of the HTTP API is declared, read, checked, answered and documented; it knows no call.
        library(
            "HTTPAPI", "Access HTTPServer Health Listening Outbound RTMP RoomRegistry Rooms ServerConfiguration Support",
            [hummingbird, httpTypes, crypto, logging, nioCore]),
        // Streams pulled from other servers and pushed to them.
        library(
            "Links",
            "Access HTTPAPI HTTPServer LinkTransport Media Outbound Relay RoomRegistry Rooms ServerConfiguration Streaming Support",
            [httpTypes, logging, nioCore, lifecycle]),
        // Playing over HTTP: FLV, MP4 and HLS.
        library(
            "Playback",
            "Access DTLSSRTP HLS HTTPServer LibC Listening Media Packaging RTMP Relay Rooms ServerConfiguration Sockets Streaming Support Trace WebRTC",
            [hummingbird, httpTypes, logging, nioCore, nioHTTP1, nioPosix, lifecycle]),
        // The files of the apps' pages as bytes.
        .target(name: "CAppAssets"),
        // Endpoints of apps' clients: the mesh, the channel, the cloud's API, the push heartbeat.
        library(
            "AppServer",
            "Access Apps CAppAssets HTTPAPI HTTPServer Listening Media Playback RTMP Relay RoomRegistry Rooms ServerConfiguration Streaming Support",
            [hummingbird, httpTypes, logging, nioCore, nioHTTP1, lifecycle], exclude: ["Assets"]),
        // The calls of the HTTP API about rooms, streams, sessions and the server; events, metrics.
        library(
            "ControlAPI",
            "Access HTTPAPI HTTPServer Health Listening Media Notifications Packaging Relay RoomRegistry Rooms ServerConfiguration Statistics Streaming Support Talk Talkback Trace",
            [hummingbird, httpTypes, logging, nioCore, nioHTTP1, .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras")]),
        // The console's files as bytes.
        .target(name: "CConsoleAssets"),
        // The console: its page, its files, logging in and out. Its data comes from the API.
        library(
            "Console",
            "Access CConsoleAssets ControlAPI HTTPAPI HTTPServer Listening RoomRegistry Rooms ServerConfiguration Streaming Support",
            [hummingbird, httpTypes, logging, nioCore], exclude: ["Assets"]),
        // Wiring only: makes the services and hands each what it needs.
        library(
            "EarshotServer",
            "Access AppServer Console ControlAPI HTTPAPI HTTPServer LibC Links Listening Notifications Outbound Packaging Playback RTMPServer Relay RoomRegistry Rooms ServerConfiguration ServerData Sockets Statistics Store Streaming Support Talkback",
            [
                hummingbird, httpTypes, logging, nioCore, nioPosix, lifecycle,
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ]),
        // A server without rooms, to show that a frame's way needs none.
        program(
            "RelayExample",
            "Access HTTPServer Listening Outbound Packaging Playback RTMPServer ServerConfiguration Sockets Streaming Support",
            [hummingbird, lifecycle, logging]),
        // What a data directory holds besides the rooms, and where settings say that the rooms are.
        library("ServerData", "Access LibC RoomRegistry Rooms ServerConfiguration Store Support", [logging]),
        // Floor 3: the command line. The commands stand beside the server, which they know by its API, its settings and its files alone.
        // What they share: options, calls of the API, tables, times.
        library(
            "CommandSupport", "FFmpeg LibC LinkTransport Media Rooms ServerConfiguration Support",
            [
                httpClient, webSocket, nioCore, nioPosix, nioSSL, nioHTTP1,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        // Checks of a server and of its machine.
        library(
            "Doctor",
            "CommandSupport DTLSSRTP FFmpeg LibC LinkTransport Listening Media ServerConfiguration ServerData Sockets Store Support WebRTC",
            [
                httpClient, webSocket, nioCore, nioPosix, nioSSL, nioHTTP1,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        library(
            "Commands", "CommandSupport Doctor FFmpeg LibC Listening RoomRegistry Rooms ServerConfiguration ServerData Store Support",
            [nioCore, nioPosix, .product(name: "ArgumentParser", package: "swift-argument-parser")]),
        program(
            "earshot", "CommandSupport Commands EarshotServer HTTPAPI LibC ServerConfiguration Support",
            [logging, nioCore, nioPosix, .product(name: "ArgumentParser", package: "swift-argument-parser")]),
        // The load generator is a root target so that it sees `package` declarations and one release build serves both.
        program(
            "earshot-load", "LibC RTMP RoomRegistry Rooms Sockets Store Support WebRTC",
            [nioCore, httpClient, nioHTTP1, .product(name: "ArgumentParser", package: "swift-argument-parser")], path: "Benchmarks/Load"),
        // The program whose instructions and allocations budget.sh counts.
        program(
            "earshot-budget", "LibC RTMP Media MediaClips Relay FFmpeg Sockets Trace", [nioCore, nioEmbedded], path: "Benchmarks/Budget"),
        // RFC 8216bis's demands on playlists, for the tests of all that makes or serves them.
        library("HLSCheck", path: "Tests/HLSCheck"),
        // Tones and voices recognised in samples, for the tests of all that makes or plays sound.
        library("SignalCheck", path: "Tests/SignalCheck"),
        // Files of media as a publisher's messages, and the muxers' pieces, for tests and budgets.
        library("MediaClips", "FFmpeg Media", [nioCore], path: "Tests/MediaClips"),
        // Clocks that the tests of rooms set.
        library("RoomTestSupport", "Rooms", path: "Tests/RoomTestSupport"),
        // The PostgreSQL that tests run on where they are told to.
        library("PostgresTestSupport", "Store", path: "Tests/PostgresTestSupport"),
        // Shared by most tests: waiting, seeds, clients as processes, files of media.
        library("TestSupport", "LibC Media", [nioCore, nioPosix], path: "Tests/TestSupport"),
        // Shared by the tests of the services: logs, JSON, credentials, targets of requests, voices.
        library(
            "ServerTestSupport", "Access CZlib FFmpeg LibC Media RTMP RoomRegistry Rooms Sockets Support TestSupport",
            [crypto, grdb, logging, nioCore, nioHTTP1, nioPosix, nioSSL, .product(name: "NIOHPACK", package: "swift-nio-http2")],
            path: "Tests/ServerTestSupport"),
        // Whole servers without ports, and calls of their API with every answer and event compared with the document.
        library(
            "APITestSupport",
            "Access ControlAPI EarshotServer HTTPAPI HTTPServer Notifications PostgresTestSupport RoomRegistry Rooms ServerConfiguration ServerTestSupport Store Streaming Support TestSupport",
            [hummingbird, httpTypes, lifecycle, logging, nioCore, nioEmbedded], path: "Tests/APITestSupport"),
        // RTMP connections in memory to a server without ports; a canary beside bad deeds, a room that talks.
        library(
            "RTMPTestSupport",
            "APITestSupport ControlAPI EarshotServer FFmpeg Listening Media RTMP RTMPServer Relay RoomRegistry Rooms ServerConfiguration ServerTestSupport SignalCheck Sockets Streaming Support TestSupport",
            [nioCore, nioPosix], path: "Tests/RTMPTestSupport"),
        // A whole server without ports whose clients connect to it in memory, by HTTP, WebSocket and RTMP.
        library(
            "PortlessTestSupport",
            "APITestSupport EarshotServer HTTPServer PostgresTestSupport RTMPServer RTMPTestSupport RoomRegistry Rooms ServerConfiguration ServerTestSupport Streaming Support TestSupport",
            [lifecycle, logging, nioCore], path: "Tests/PortlessTestSupport"),
        tests("SupportTests", "Support TestSupport"),
        tests("MediaTests", "Media TestSupport", [nioCore]),
        tests("HealthTests", "Health Media"),
        tests("RTMPTests", "RTMP", [nioCore], resources: [.copy("Vectors")]),
        tests("SocketsTests", "LibC Sockets Support TestSupport", [nioCore, nioPosix]),
        tests("DTLSSRTPTests", "DTLSSRTP"),
        tests("WebRTCTests", "COpenSSL DTLSSRTP Support WebRTC", [nioCore], resources: [.copy("Offers")]),
        tests("RelayTests", "Health LibC Media RTMP Relay Sockets Support TestSupport", [nioCore]),
        tests("FFmpegTests", "FFmpeg Media MediaClips TestSupport", [nioCore]),
        tests("TalkTests", "SignalCheck Talk"),
        tests("TraceTests", "TestSupport Trace"),
        tests("HLSTests", "HLS HLSCheck", [nioCore]),
        tests("LinkTransportTests", "LinkTransport Media RTMP Support TestSupport", [nioCore, nioPosix]),
        tests("AppsTests", "Apps Rooms Support", [crypto]),
        tests("RoomsTests", "RoomTestSupport Rooms Support"),
        tests("RoomRegistryTests", "LibC PostgresTestSupport RoomRegistry RoomTestSupport Rooms Store Support TestSupport", [grdb]),
        tests("ServerConfigurationTests", "Rooms ServerConfiguration ServerTestSupport Support", [logging, nioCore]),
        tests("OutboundTests", "LinkTransport Outbound ServerConfiguration ServerTestSupport Support TestSupport", [nioCore, nioSSL]),
        tests("AccessTests", "Access Outbound RTMP Rooms ServerConfiguration ServerTestSupport Support TestSupport", [logging, nioCore]),
        tests(
            "ListeningTests", "LibC Listening Relay ServerConfiguration ServerTestSupport Sockets Support TestSupport",
            [logging, nioCore, nioPosix]),
        tests(
            "HTTPServerTests",
            "EarshotServer HTTPServer Listening PortlessTestSupport RTMPTestSupport Relay RoomRegistry Rooms ServerConfiguration ServerTestSupport Streaming Support TestSupport",
            [httpTypes, nioCore, nioHTTP1]),
        tests(
            "NotificationsTests",
            "APITestSupport Access EarshotServer Listening Notifications Relay RoomRegistry Rooms ServerConfiguration ServerTestSupport Streaming Support TestSupport",
            [logging, nioCore]),
        tests(
            "StreamingTests", "Access Listening RTMP Relay Rooms ServerConfiguration ServerTestSupport Streaming Support TestSupport Trace",
            [nioCore]),
        tests(
            "RTMPServerTests",
            "APITestSupport Access EarshotServer Listening Media RTMP RTMPServer RTMPTestSupport Relay RoomRegistry Rooms ServerConfiguration ServerTestSupport Streaming Support TestSupport",
            [nioCore]),
        tests(
            "PackagingTests",
            "EarshotServer FFmpeg HLS HLSCheck HTTPServer Media Packaging Relay RoomRegistry Rooms ServerConfiguration Store Streaming Support TestSupport WebRTC",
            [logging, nioCore, nioEmbedded, nioPosix]),
        tests(
            "TalkbackTests",
            "APITestSupport Access EarshotServer FFmpeg LibC Media RTMP RTMPTestSupport Relay RoomRegistry Rooms ServerConfiguration ServerTestSupport SignalCheck Sockets Streaming Support Talk Talkback TestSupport",
            [nioCore]),
        tests(
            "LinksTests", "LinkTransport Links Media PortlessTestSupport Rooms ServerTestSupport Streaming Support TestSupport",
            [nioCore]),
        tests("StatisticsTests", "Relay Rooms ServerTestSupport Statistics Streaming Support TestSupport", [grdb, logging]),
        tests(
            "PlaybackTests",
            "Access EarshotServer HTTPServer Listening Media Packaging PortlessTestSupport Playback RTMP RTMPTestSupport ServerConfiguration ServerTestSupport Streaming Support TestSupport WebRTC",
            [httpTypes, nioCore]),
        tests(
            "AppServerTests",
            "Access AppServer Apps EarshotServer HTTPServer Media PortlessTestSupport RTMP Relay RoomRegistry Rooms ServerConfiguration ServerTestSupport Streaming Support TestSupport",
            [crypto, logging, nioCore, nioPosix]),
        tests(
            "ControlAPITests",
            "APITestSupport Access Apps ControlAPI EarshotServer HTTPAPI HTTPServer LinkTransport Links Listening Media Notifications Playback PostgresTestSupport RTMP Relay RoomRegistry Rooms ServerConfiguration ServerData ServerTestSupport Store Streaming Support Talk Talkback TestSupport",
            [crypto, httpTypes, nioCore, nioEmbedded]),
        tests(
            "EarshotServerTests",
            "EarshotServer Packaging PortlessTestSupport RoomRegistry Rooms ServerConfiguration ServerTestSupport Sockets Store Streaming Support TestSupport",
            [logging]),
        // The command line, without its process.
        tests(
            "EarshotCommandTests", "CommandSupport Commands Doctor LibC RTMP ServerTestSupport Support TestSupport earshot",
            [.product(name: "ArgumentParser", package: "swift-argument-parser")]),
        // The inputs that fuzzing has kept. EARSHOT_FUZZ makes a program of the same files, for libFuzzer.
        .testTarget(
            name: "FuzzTests", dependencies: fuzzed.map { .byName(name: $0) } + fuzzPackages, path: "Tests/Fuzz",
            exclude: ["Corpus", "Crashers", "README.md", "FuzzProgram.swift", "main.swift"], swiftSettings: settings),
        tests(
            "ConsoleTests",
            "APITestSupport Access Console ControlAPI EarshotServer HTTPAPI HTTPServer RoomRegistry Rooms ServerConfiguration ServerTestSupport Support TestSupport",
            [httpTypes, nioCore]),
        // Whole servers with real clients.
        tests(
            "EndToEndTests",
            "APITestSupport Access AppServer ControlAPI Doctor EarshotServer FFmpeg HLSCheck HTTPAPI HTTPServer LibC LinkTransport Links Listening Media MediaClips Notifications Packaging Playback PostgresTestSupport RTMP RTMPServer RTMPTestSupport Relay RoomRegistry Rooms ServerConfiguration ServerTestSupport SignalCheck Sockets Store Streaming Support Talk Talkback TestSupport Trace WebRTC",
            [crypto, httpClient, httpTypes, lifecycle, logging, nioCore, nioHTTP1, nioPosix, nioSSL]),
    ]
)

let whole = package.targets

// EARSHOT_CORE names the only targets to build, with their tests, so that a sanitizer's build stays small: "Media,Relay". Dependencies are
// not added by themselves: name them too.
if let core = Context.environment["EARSHOT_CORE"], !core.isEmpty {
    let names = core.split(separator: ",").map(String.init)
    let kept = Set(names + names.map { "\($0)Tests" })
    package.targets.removeAll { !kept.contains($0.name) }
    package.products.removeAll()
}

// EARSHOT_FAST names targets that a debug build optimises all the same, with its checks: "Talk,TalkTests" where a sanitizer makes hours of
// simulated talk too slow.
if let fast = Context.environment["EARSHOT_FAST"], !fast.isEmpty {
    let names = Set(fast.split(separator: ",").map(String.init))
    for target in package.targets where names.contains(target.name) {
        target.swiftSettings = settings + [.unsafeFlags(["-O", "-assert-config", "Debug"])]
    }
}

// EARSHOT_FUZZ=1 adds the program of the fuzz targets (scripts/fuzz.sh). libFuzzer sees which edges of the targets below an input reaches.
if let fuzz = Context.environment["EARSHOT_FUZZ"], !fuzz.isEmpty {
    package.targets.removeAll { $0.name == "FuzzTests" }
    // As fast as a release, with the checks of a debug build.
    let seen: [SwiftSetting] = settings + [.unsafeFlags(["-O", "-assert-config", "Debug", "-sanitize=address,fuzzer"])]
    // Without their tests, which EARSHOT_CORE would bring and which need more; Access follows.
    for target in whole where fuzzed.contains(target.name) && !["Access", "LibC"].contains(target.name) {
        target.swiftSettings = seen
        if !package.targets.contains(where: { $0.name == target.name }) { package.targets.append(target) }
    }
    // Keys and credentials, without the hooks that ask other servers.
    let access = Target.target(
        name: "Access",
        dependencies: [
            "LibC", "ServerConfiguration", "Rooms", "RTMP", "Support", "Talk", crypto, .product(name: "JWTKit", package: "jwt-kit"),
        ],
        path: "Sources/Access",
        sources: [
            "Admission/Admission.swift", "Keys/ClusterKey.swift", "Keys/KeyFile.swift", "Keys/KeyRing.swift", "Keys/SecretFile.swift",
            "Tokens/AccessToken.swift", "Tokens/ChannelToken.swift", "Tokens/SignedToken.swift", "URLs/QueryParameters.swift",
            "URLs/TalkStreamName.swift", "URLs/TxSecret.swift",
        ], swiftSettings: seen)
    package.targets.append(access)
    package.targets.append(
        .executableTarget(
            name: "earshot-fuzz",
            dependencies: fuzzed.map { .byName(name: $0) } + fuzzPackages,
            path: "Tests/Fuzz", exclude: ["Corpus", "Crashers", "README.md", "KeptInputTests.swift"], swiftSettings: seen,
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer", "-use-ld=lld"])]))
}
