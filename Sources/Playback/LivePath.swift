import Access
package import HTTPServer
import HTTPTypes
package import RTMP

/// The stream and format that a media URL names: "/live/cam.flv?txSecret=…".
package struct LivePath: Sendable, Equatable {
    package enum Format: String, Sendable, CaseIterable {
        case flv
        case mp4
        /// The same as ``mp4``, over a WebSocket.
        case fmp4
        /// HLS in the form of the settings, which is fragmented MP4 unless they say otherwise.
        case m3u8
        /// HLS in MPEG-TS, for old players.
        case tsM3U8 = "ts.m3u8"
    }

    package let address: StreamAddress

    /// Suffix of the folder that holds a stream's segments. Paths inside it name no stream.
    static let folderEnding = ".hls"

    /// The format named by the path's ending; nil if it is no media URL.
    package static func format(of path: some StringProtocol) -> Format? {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count >= 3, parts[0].isEmpty, !ServerPath.reserved.contains(String(parts[1])), let last = parts.last,
            let dot = last.lastIndex(of: "."), !parts[parts.count - 2].hasSuffix(Self.folderEnding)
        else { return nil }
        // A stream whose name ends in ".ts" has its HLS at "%2Ets.m3u8".
        let ending = ".\(Format.tsM3U8.rawValue)"
        if last.count > ending.count, last.suffix(ending.count).lowercased() == ending { return .tsM3U8 }
        return Format(rawValue: last[last.index(after: dot)...].lowercased())
    }

    /// `path` is percent-encoded, as sent. Throws an ``APIError`` that explains what is wrong with it.
    package init(_ path: some StringProtocol, query: String?, _ format: Format, limits: RTMP.Limits) throws(APIError) {
        try self.init(path, query: query, ending: format.rawValue.utf8.count + 1, limits: limits)
    }

    /// The same without an ending: "/live/cam".
    init(stream path: some StringProtocol, query: String?, limits: RTMP.Limits) throws(APIError) {
        try self.init(path, query: query, ending: 0, limits: limits)
    }

    private init(_ path: some StringProtocol, query: String?, ending: Int, limits: RTMP.Limits) throws(APIError) {
        var parts: [String] = []
        for part in String(path).dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            let text = QueryParameters.decode(part)
            // A percent-encoded slash would turn this into another name.
            guard !text.isEmpty, !text.contains("/"), !text.contains("\\"), !text.contains("?") else { throw Self.broken }
            parts.append(text)
        }
        guard parts.count >= 2, let last = parts.last else { throw Self.broken }
        let name = parts[1..<(parts.count - 1)] + [String(Substring(last.utf8.dropLast(ending)))]
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
