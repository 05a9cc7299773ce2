import HTTPServer
import HTTPTypes
import Playback

/// Paths outside `/api/v1` that the server answers itself, and their methods.
enum OtherPaths {
    /// Nil when there is no such path.
    static func methods(of path: String) -> [HTTPRequest.Method]? {
        if let own = ServerPath(rawValue: path) { return own == .events ? [.get] : [.get, .head] }
        return HLSEndpoint.serves(path) || LivePath.format(of: path) != nil ? [.get, .head, .options] : nil
    }
}
