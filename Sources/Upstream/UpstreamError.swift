/// Why a link is not up. Scope: one connection of one link, unless ``isPermanent``.
///
/// The words are for logs and the API: they hold host and port at most, never a stream name, query or password.
package enum UpstreamError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What is wrong with it.
    case badURL(String)
    /// The host has only addresses that the server may not connect to.
    case forbidden(host: String, address: String, why: String)
    case resolve(host: String, why: String)
    case connect(origin: String, why: String)
    /// No TLS: the certificate, or the handshake.
    case tls(origin: String, why: String)
    /// Connected, but the other end does not speak RTMP.
    case handshake(origin: String, why: String)
    /// The server's own words.
    case refused(command: String, code: String, description: String)
    /// The stream that was to be played is not there.
    case notFound(description: String)
    /// The server wants us elsewhere; that is not followed.
    case redirected(to: String)
    /// What is pulled has come from where it would go.
    case loop(String)
    /// The server said that the stream is over.
    case ended(code: String)
    /// The connection broke.
    case closed(while: String)
    /// The server accepted and then said nothing.
    case silent(waitingFor: String, ms: Int)
    /// It lets the stream be played, and sends nothing of it.
    case noMedia(ms: Int)
    /// The other end does not take what is sent.
    case stalled(ms: Int)
    /// What came breaks RTMP, or our limits.
    case protocolViolation(String)
    /// The system refused something: a socket, a thread.
    case system(String)
    /// Stopped by us.
    case cancelled

    /// Trying again cannot help until somebody changes the URL, the settings or the server.
    package var isPermanent: Bool {
        switch self {
        case .badURL, .forbidden, .redirected: true
        default: false
        }
    }

    /// One word for the API and events.
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
            "\(host == address ? host : "\(host) (\(address))") is \(why), where this server may not connect to; allow that network in its settings, or use another address"
        case .resolve(let host, let why): "no address for \(host): \(why); check the name, and this machine's name servers"
        case .connect(let origin, let why): "no connection to \(origin): \(why); check host, port and firewall"
        case .tls(let origin, let why): "no TLS with \(origin): \(why)"
        case .handshake(let origin, let why):
            "\(origin) does not answer as an RTMP server: \(why); check the port, and rtmp:// against rtmps://"
        case .refused(let command, let code, let description):
            "the server refused \(command): \(code)\(description.isEmpty ? "" : " (\(description))"); check app, stream name and key"
        case .notFound(let description):
            "the server does not have this stream\(description.isEmpty ? "" : " (\(description))"); check app and stream name, and that it is being published"
        case .redirected(let target): "the server redirects to \(target), which is not followed; use that address if you trust it"
        case .loop(let why): why
        case .ended(let code): "the server ended the stream (\(code))"
        case .closed(let what): "the connection was lost \(what)"
        case .silent(let what, let ms): "\(what) did not come within \(ms) ms; the server accepts connections and says nothing"
        case .noMedia(let ms): "the server lets it be played, but no audio or video came in \(ms) ms; does anybody publish it there?"
        case .stalled(let ms): "the server took nothing for \(ms) ms; its network or the server is too slow"
        case .protocolViolation(let what): "the server broke the protocol: \(what)"
        case .system(let what): "the system refused: \(what)"
        case .cancelled: "stopped"
        }
    }
}
