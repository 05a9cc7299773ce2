/// The server's own paths besides those of the API and of the console.
package enum ServerPath: String, CaseIterable, Sendable {
    case alive = "/healthz"
    case ready = "/readyz"
    case readyToPublish = "/readyz/publish"
    case readyToPlay = "/readyz/play"
    /// Prometheus' default.
    case metrics = "/metrics"
    case events = "/events"

    /// Whether it needs no token, and is answered when the server is full: it reveals the server's health alone.
    package var isHealthCheck: Bool {
        switch self {
        case .alive, .ready, .readyToPublish, .readyToPlay: true
        case .metrics, .events: false
        }
    }

    /// First components of paths that lead to no stream, whatever the path ends in.
    package static let reserved: Set<String> = Set(
        ["api", "console", "whep", "whip"] + Self.allCases.compactMap { $0.rawValue.split(separator: "/").first.map(String.init) })
}
