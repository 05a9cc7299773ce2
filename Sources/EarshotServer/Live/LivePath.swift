import HTTPTypes
import RTMP

/// What a media URL asks for: "/live/cam.flv?txSecret=…".
struct LivePath: Sendable, Equatable {
    enum Format: String, Sendable, CaseIterable {
        case flv
        case mp4
        /// The same as ``mp4``, over a WebSocket.
        case fmp4
        case m3u8
    }

    let address: StreamAddress
    let format: Format

    /// Of the folder that holds a stream's segments: what is in there is no stream.
    static let folderEnding = ".hls"
    /// Paths that are the server's own, whatever they end in.
    private static let reserved: Set<String> = ["api", "events", "healthz", "readyz", "metrics", "console"]

    /// The format that the path's ending names; nil: the path is no media URL.
    static func format(of path: some StringProtocol) -> Format? {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count >= 3, parts[0].isEmpty, !self.reserved.contains(String(parts[1])), let last = parts.last,
            let dot = last.lastIndex(of: "."), !parts[parts.count - 2].hasSuffix(Self.folderEnding)
        else { return nil }
        return Format(rawValue: last[last.index(after: dot)...].lowercased())
    }

    /// `path` as sent, percent-encoded. Throws an ``APIError`` that says what is wrong with it.
    init(_ path: some StringProtocol, query: String?, _ format: Format, limits: RTMP.Limits) throws(APIError) {
        self.format = format
        var parts: [String] = []
        for part in String(path).dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            let text = QueryParameters.decode(part)
            // A slash that was hidden would make another name of it.
            guard !text.isEmpty, !text.contains("/"), !text.contains("\\"), !text.contains("?") else { throw Self.broken }
            parts.append(text)
        }
        guard parts.count >= 2, let last = parts.last, let dot = last.lastIndex(of: ".") else { throw Self.broken }
        let name = parts[1..<(parts.count - 1)] + [String(last[..<dot])]
        do {
            self.address = try StreamAddress(
                app: parts[0], name: name.joined(separator: "/") + (query.map { "?\($0)" } ?? ""), limits: limits)
        } catch {
            throw APIError(.badRequest, .invalid, "This is not a stream's address: \(error).")
        }
    }

    private static let broken = APIError(
        .badRequest, .invalid, "This is not a stream's address; expected /app/name with an ending such as .flv or .m3u8.")
}
