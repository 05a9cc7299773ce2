/// The answer of another server. A plain value.
package struct OutboundAnswer: Sendable, Equatable {
    /// HTTP status; a redirect is not followed and shows as 3xx.
    package let status: Int
    /// At most 64 KiB.
    package let body: [UInt8]
}

/// The reason why there is no answer. The text is for logs and the delivery log, so it names host and port at most, never path, query or
/// body.
package enum OutboundError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The text explains what is wrong with the URL.
    case badURL(String)
    /// The host has only addresses that the server may not connect to.
    case forbiddenTarget(host: String, address: String, why: String)
    case unresolved(host: String, why: String)
    case connectFailed(origin: String, why: String)
    case timedOut(origin: String, milliseconds: Int64)
    case answerTooLarge(origin: String, limit: Int)
    /// Connected, but the answer was not HTTP, or broke off.
    case broken(origin: String, why: String)
    /// The server is shutting down, or the caller was cancelled.
    case cancelled

    package var description: String {
        switch self {
        case .badURL(let problem): "the URL \(problem)"
        case .forbiddenTarget(let host, let address, let why):
            "\(host == address ? host : "\(host) (\(address))") is \(why); the setting outbound.allowPrivate: [\(address)] would allow it"
        case .unresolved(let host, let why): "no address for \(host): \(why)"
        case .connectFailed(let origin, let why): "no connection to \(origin): \(why)"
        case .timedOut(let origin, let milliseconds): "no answer from \(origin) within \(milliseconds) ms"
        case .answerTooLarge(let origin, let limit): "the answer of \(origin) has more than \(limit) bytes"
        case .broken(let origin, let why): "the answer of \(origin) broke off: \(why)"
        case .cancelled: "given up: the server is stopping"
        }
    }
}
