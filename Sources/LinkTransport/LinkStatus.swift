/// A link's state. A plain value.
package enum LinkState: Sendable, Equatable {
    /// Never started.
    case idle
    /// From the name lookup to the server's consent; for pulling, to the first frame.
    case connecting
    case running
    /// Waiting for the next attempt, until this time in milliseconds since 1970.
    case waiting(untilMs: Int64)
    case stopped
    /// Given up. `permanent`: only a change of URL, settings or server can help; otherwise the attempts are used up.
    case failed(reason: String, permanent: Bool)

    /// The state's name in the API.
    package var word: String {
        switch self {
        case .idle: "idle"
        case .connecting: "connecting"
        case .running: "running"
        case .waiting: "waiting"
        case .stopped: "stopped"
        case .failed: "failed"
        }
    }
}

/// A snapshot of a link's state and counters, over all its connections. A plain value.
package struct LinkStatus: Sendable, Equatable {
    package var state: LinkState
    /// The start of the state in milliseconds since 1970.
    package var sinceMs: Int64
    /// Connections attempted, and connections that reached `running`.
    package var attempts: UInt64
    package var connections: UInt64
    package var bytesIn: UInt64
    package var bytesOut: UInt64
    package var framesIn: UInt64
    package var framesOut: UInt64
    /// Messages from the server that could not be read and were skipped.
    package var malformed: UInt64
    /// Frames not pushed because the other end was too slow.
    package var droppedVideo: UInt64
    package var droppedAudio: UInt64
    package var queuedBytes: Int
    /// Milliseconds that the oldest queued frame has waited.
    package var queuedMs: Int
    /// The latest error, without credentials. Remains when the link runs again.
    package var lastError: LinkError?
    /// Milliseconds since 1970.
    package var lastErrorMs: Int64?
    /// "192.0.2.1:1935"; nil without a connection.
    package var remoteAddress: String?
    /// "TLSv1.3 TLS_AES_256_GCM_SHA384"; nil without TLS.
    package var tls: String?
}
