/// The reason why a link is down. Scope: one connection of one link, unless ``isPermanent``.
///
/// The texts are for logs and the API: they hold host and port at most, never a stream name, query or password.
package enum LinkError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The URL is invalid in this way.
    case badURL(String)
    /// All addresses of the host are forbidden for this server.
    case forbidden(host: String, address: String, why: String)
    case resolve(host: String, why: String)
    case connect(origin: String, why: String)
    /// TLS failed: the certificate or the handshake.
    case tls(origin: String, why: String)
    /// Connected, but the other end does not speak RTMP.
    case handshake(origin: String, why: String)
    /// The server's own code and text.
    case refused(command: String, code: String, description: String)
    /// The stream to play does not exist.
    case notFound(description: String)
    /// The server redirects to another one, which the link does not follow.
    case redirected(to: String)
    /// The pulled stream already passed through its destination.
    case loop(String)
    /// The server said that the stream ended.
    case ended(code: String)
    /// The connection broke.
    case closed(while: String)
    /// The server accepted the connection and then sent nothing.
    case silent(waitingFor: String, ms: Int)
    /// The server accepted play, but sends no media.
    case noMedia(ms: Int)
    /// The other end does not accept data.
    case stalled(ms: Int)
    /// The received data violates RTMP or our limits.
    case protocolViolation(String)
    /// The system denied a resource: a socket, a thread.
    case system(String)
    /// We stopped the link.
    case cancelled

    /// Whether a retry is pointless until the URL, the settings or the server change.
    package var isPermanent: Bool {
        switch self {
        case .badURL, .forbidden, .redirected: true
        default: false
        }
    }

    /// The error's code for the API and events.
    package var code: String {
        switch self {
        case .badURL: "bad_url"
        case .forbidden: "forbidden"
        case .resolve: "resolve"
        case .connect: "connect"
        case .tls: "tls"
        case .handshake: "handshake"
        case .refused: "refused"
        case .notFound: "not_found"
        case .redirected: "redirected"
        case .loop: "loop"
        case .ended: "ended"
        case .closed: "closed"
        case .silent, .noMedia: "silent"
        case .stalled: "stalled"
        case .protocolViolation: "protocol"
        case .system: "system"
        case .cancelled: "cancelled"
        }
    }

    package var description: String {
        switch self {
        case .badURL(let problem): "the URL \(problem)"
        case .forbidden(let host, let address, let why):
            "\(host == address ? host : "\(host) (\(address))") is \(why)"
                + "; this server does not connect to such addresses; allow the network (outbound.allowPrivate), or use another address"
        case .resolve(let host, let why): "no address for \(host): \(why); check the name, and this machine's name servers"
        case .connect(let origin, let why): "no connection to \(origin): \(why); check host, port and firewall"
        case .tls(let origin, let why): "no TLS with \(origin): \(why)"
        case .handshake(let origin, let why):
            "\(origin) does not answer as an RTMP server: \(why); check the port, and whether it expects rtmp:// or rtmps://"
        case .refused(let command, let code, let description):
            "the server refused \(command): \(code)\(description.isEmpty ? "" : " (\(description))"); check app, stream name and key"
        case .notFound(let description):
            "the server does not have this stream\(description.isEmpty ? "" : " (\(description))"); check app and stream name, and that it is being published"
        case .redirected(let target): "the server redirects to \(target); links do not follow redirects; use that address if you trust it"
        case .loop(let why): why
        case .ended(let code): "the server ended the stream (\(code))"
        case .closed(let what): "the connection was lost \(what)"
        case .silent(let what, let ms): "\(what) did not arrive within \(ms) ms; the connection is open but silent"
        case .noMedia(let ms):
            "the server accepted play, but no audio or video arrived within \(ms) ms; check that the stream is being published there"
        case .stalled(let ms): "the server accepted no data for \(ms) ms; its network or the server is too slow"
        case .protocolViolation(let what): "the server broke the protocol: \(what)"
        case .system(let what): "the system refused: \(what)"
        case .cancelled: "stopped"
        }
    }
}
