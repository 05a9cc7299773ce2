import Hummingbird
import Media
import Relay

/// The routes: health checks for load balancers, and `/api/v1` for ops.
struct APIRouter {
    let core: ServerCore

    func router() -> Router<APIContext> {
        let router = Router(context: APIContext.self)
        router.add(middleware: APIErrors())
        let core = self.core
        // Health checks answer everybody: they tell nothing but that the server is there.
        router.get("/healthz") { _, _ in "ok\n" }
        router.get("/readyz") { _, _ in
            core.draining ? Response(status: .serviceUnavailable, body: .init(byteBuffer: .init(string: "draining\n"))) : "ready\n".plain
        }
        let api = router.group("/api/v1").add(middleware: APIGate(allowed: core.config.access.apiFrom))
        api.get("/streams") { _, context in
            let streams = try await core.streams()
            return Envelope(StreamList(total: streams.count, list: streams), context)
        }
        api.get("/sessions") { _, context in
            let sessions = try await core.sessions()
            return Envelope(SessionList(total: sessions.count, list: sessions), context)
        }
        api.get("/counters") { _, context in
            Envelope(CounterBody(core.counters.current), context)
        }
        for path: RouterPath in ["", "/**"] {
            for method: HTTPRequest.Method in [.get, .post, .put, .patch, .delete] {
                api.on(path, method: method) { _, _ -> Response in throw HTTPError(.notFound) }
            }
        }
        return router
    }
}

extension String {
    fileprivate var plain: Response { Response(status: .ok, body: .init(byteBuffer: .init(string: self))) }
}

struct StreamList: Encodable, Sendable {
    let total: Int
    let list: [StreamBody]
}

struct SessionList: Encodable, Sendable {
    let total: Int
    let list: [SessionBody]
}

/// A stream, as `GET /api/v1/streams` lists it.
struct StreamBody: Encodable, Sendable {
    struct Video: Encodable, Sendable {
        let codec: String
        let profile: String?
        let level: String?
        let width: Int?
        let height: Int?
        /// Measured, by the second.
        let fps: Double
        let bitsPerSecond: Int
        let keyframeIntervalMs: Int64?
    }
    struct Audio: Encodable, Sendable {
        let codec: String
        let profile: String?
        let sampleRate: Int?
        let channels: Int?
        let bitsPerSecond: Int
    }
    struct Publisher: Encodable, Sendable {
        let session: UInt64
        let address: String
        let client: String?
    }

    let app: String
    let name: String
    /// "live", "interrupted" (its publisher is away, within the grace period) or "waiting" (viewers only).
    let state: String
    let publisher: Publisher?
    let video: Video?
    let audio: Audio?
    let viewers: Int
    let uptimeSeconds: Double?
    let bytesIn: UInt64
    let bytesOut: UInt64
}

/// A connection, as `GET /api/v1/sessions` lists it.
struct SessionBody: Encodable, Sendable {
    struct Play: Encodable, Sendable {
        let stream: String
        let behindMs: Int64
        let framesSkipped: Int
        let bytesSent: UInt64
        let messagesSent: UInt64
        let paused: Bool
    }

    let id: UInt64
    let transport: String
    let address: String
    let app: String?
    let client: String?
    let seconds: Int64
    let bytesIn: UInt64
    let bytesOut: UInt64
    let publishing: [String]
    let playing: [Play]
}

struct CounterBody: Encodable, Sendable {
    let connectionsAccepted: UInt64
    let publishesStarted: UInt64
    let playsStarted: UInt64
    /// By close reason.
    let closed: [String: UInt64]

    init(_ values: Counters.Values) {
        self.connectionsAccepted = values.connectionsAccepted
        self.publishesStarted = values.publishesStarted
        self.playsStarted = values.playsStarted
        self.closed = Dictionary(uniqueKeysWithValues: CloseReason.allCases.map { ($0.rawValue, values.closed[$0] ?? 0) })
    }
}

extension ServerCore {
    func streams() async throws -> [StreamBody] {
        let streams = try await self.collect { $0.relay.streamSnapshots() }
        let sessions = try await self.collect { $0.sessionSnapshots() }
        var publishers: [String: SessionSnapshot] = [:]
        var bytesOut: [String: UInt64] = [:]
        for session in sessions {
            for path in session.publishing { publishers[path] = session }
            for viewer in session.viewers { bytesOut[viewer.path, default: 0] += viewer.bytesSent }
        }
        return streams.sorted { $0.path < $1.path }.map { stream in
            StreamBody(stream, publisher: publishers[stream.path], bytesOut: bytesOut[stream.path] ?? 0)
        }
    }

    func sessions() async throws -> [SessionBody] {
        try await self.collect { $0.sessionSnapshots() }.sorted { $0.id < $1.id }.map(SessionBody.init)
    }
}

extension StreamBody {
    init(_ stream: StreamSnapshot, publisher: SessionSnapshot?, bytesOut: UInt64) {
        let parts = stream.path.split(separator: "/", maxSplits: 1)
        let meter = stream.meter
        let state =
            switch stream.phase {
            case .idle: "waiting"
            case .live: "live"
            case .grace: "interrupted"
            }
        self.init(
            app: parts.first.map(String.init) ?? "", name: parts.count > 1 ? String(parts[1]) : "", state: state,
            publisher: publisher.map { Publisher(session: $0.id, address: $0.remote, client: $0.client) },
            video: meter.video.map {
                Video(
                    codec: $0.codec.name, profile: $0.profile, level: $0.level, width: $0.width, height: $0.height,
                    fps: meter.framesPerSecond, bitsPerSecond: meter.videoBitsPerSecond, keyframeIntervalMs: meter.keyframeIntervalMs)
            },
            audio: meter.audio.map {
                Audio(
                    codec: $0.codec.name, profile: $0.profile, sampleRate: $0.sampleRate, channels: $0.channels,
                    bitsPerSecond: meter.audioBitsPerSecond)
            },
            viewers: stream.viewers, uptimeSeconds: stream.liveForMs.map { Double($0) / 1_000 }, bytesIn: meter.bytesIn,
            bytesOut: bytesOut)
    }
}

extension SessionBody {
    init(_ session: SessionSnapshot) {
        self.init(
            id: session.id, transport: session.isTLS ? "rtmps" : "rtmp", address: session.remote, app: session.app,
            client: session.client, seconds: session.seconds, bytesIn: session.bytesIn, bytesOut: session.bytesOut,
            publishing: session.publishing,
            playing: session.viewers.map {
                Play(
                    stream: $0.path, behindMs: $0.behindMs, framesSkipped: $0.skippedFrames, bytesSent: $0.bytesSent,
                    messagesSent: $0.messagesSent, paused: $0.isPaused)
            })
    }
}
