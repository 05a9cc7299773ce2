import HTTPTypes
import Playback

/// Paths outside `/api/v1` that the server answers itself, and their methods.
enum OtherPaths {
    /// Nil when there is no such path.
    static func methods(of path: String) -> [HTTPRequest.Method]? {
        switch path {
        case "/healthz", "/readyz", "/readyz/publish", "/readyz/play", "/metrics": return [.get, .head]
        case "/events": return [.get]
        default:
            if HLSEndpoint.serves(path) { return [.get, .head, .options] }
            return LivePath.format(of: path) == nil ? nil : [.get, .head, .options]
        }
    }
}
