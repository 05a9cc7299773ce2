import HTTPAPI
import Listening
import Streaming
import Support
import Trace

/// Requests, limits, and the apps' connections.
extension Metrics {
    mutating func addHTTP() {
        let requests = self.services.figures.requests.current
        let failures = self.services.figures.calls.current.authenticationFailures
        self.page.family("earshot_http_requests_total", .counter, "HTTP requests answered, by route, method and status.")
        for (key, count) in requests.counts.sorted(by: {
            ($0.key.route, $0.key.method, $0.key.status) < ($1.key.route, $1.key.method, $1.key.status)
        }) {
            self.page.sample(
                "earshot_http_requests_total", ["route": key.route, "method": key.method, "status": "\(key.status)"], Double(count))
        }
        self.page.family(
            "earshot_http_request_seconds", .histogram, "Time from a request's head to its answer's, by route; some of HLS wait on purpose."
        )
        for (route, times) in requests.times.sorted(by: { $0.key < $1.key }) {
            self.page.samples("earshot_http_request_seconds", ["route": route], times)
        }
        self.page.counters(
            "earshot_api_authentication_failures_total", "API calls and logins without a valid token, by reason.", "reason",
            CallFigures.AuthenticationFailure.allCases.map { ($0.rawValue, failures[$0] ?? 0) })
    }

    /// Limits whose hits close connections for a reason of their own, under the names of their settings. Fixed limits have names of their own.
    private static let limitsByReason: [(name: String, reason: CloseReason)] = [
        ("limits.connections", .tooManyConnections), ("limits.connectionsPerAddress", .tooManyFromAddress), ("limits.memory", .memoryLimit),
        ("limits.lag", .overloaded), ("pushRates", .rateLimited), ("limits.bytesBeforePublish", .inboundFlood),
        ("limits.handshake", .handshakeTimeout), ("limits.connect", .connectTimeout), ("limits.firstMedia", .firstMediaTimeout),
        ("data.minFree", .diskFull), ("relay.maxBehind", .tooSlow), ("credentials", .credentialThrottled),
    ]

    /// Limits that have counters of their own.
    private static let limitsWithCounters: [(name: String, hits: @Sendable (APIServices, ServerTotals) -> UInt64)] = [
        ("arrivals", { $1.counters.connectionsTurnedAway }),
        ("api.rateLimit", { services, _ in services.figures.calls.current.callsOverRate }),
        ("eventFeeds", { $1.counters.eventFeedsRefused }),
        ("traces", { services, _ in UInt64(clamping: services.connections.traces.store.refused) }),
    ]

    static let limitNames = Array(
        Set(Self.limitsByReason.map(\.name) + Self.limitsWithCounters.map(\.name) + CountedLimit.allCases.map(\.rawValue))
    ).sorted()

    mutating func addLimits(_ totals: ServerTotals) {
        let counted = self.services.connections.counters.limits.current
        var hits = Dictionary(uniqueKeysWithValues: CountedLimit.allCases.map { ($0.rawValue, counted[$0] ?? 0) })
        for (name, reason) in Self.limitsByReason { hits[name, default: 0] += totals.counters.closed[reason] ?? 0 }
        for (name, count) in Self.limitsWithCounters { hits[name, default: 0] += count(self.services, totals) }
        self.page.counters(
            "earshot_limit_hits_total", "Times that a limit was hit, by its setting; a word without a dot is a fixed limit.", "limit",
            (Self.limitNames.map { ($0, hits[$0] ?? 0) } + self.services.others.flatMap { $0.limitHits }).sorted { $0.0 < $1.0 })
    }
}
