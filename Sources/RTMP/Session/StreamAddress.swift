/// Where a publish or play points: `app/name`, with the queries that came with either part.
///
/// Clients split `rtmp://host/talk/room1/alice` into app and name at different slashes; the joined path is what counts.
/// HaishinKit leaves a URL's query in the app, ffmpeg and librtmp leave it in the name: both are read.
package struct StreamAddress: Sendable, Equatable {
    /// First path component: the app.
    package let app: String
    /// The other components joined by "/": the stream's name under the app.
    package let name: String
    /// Query of the app and of the name, joined by "&", without "?". Holds credentials: never log it.
    package let query: String

    /// "app/name".
    package var path: String { "\(self.app)/\(self.name)" }

    package init(app: String, name: String, limits: Limits = Limits()) throws(StreamAddressError) {
        let (appPath, appQuery) = Self.split(app)
        let (namePath, nameQuery) = Self.split(name)
        if namePath.isEmpty { throw .emptyName }
        let length = appPath.utf8.count + namePath.utf8.count
        if length > limits.nameBytes { throw .tooLong(bytes: length, limit: limits.nameBytes) }
        let queryLength = appQuery.utf8.count + nameQuery.utf8.count
        if queryLength > limits.queryBytes { throw .queryTooLong(bytes: queryLength, limit: limits.queryBytes) }
        for byte in appPath.utf8 where byte < 0x20 || byte == 0x7F { throw .controlCharacter(byte) }
        for byte in namePath.utf8 where byte < 0x20 || byte == 0x7F { throw .controlCharacter(byte) }
        let appParts = appPath.split(separator: "/")
        let nameParts = namePath.split(separator: "/")
        guard let first = appParts.first else { throw .emptyApp }
        if nameParts.isEmpty { throw .emptyName }
        if (appParts + nameParts).contains(where: { $0 == ".." || $0 == "." }) { throw .dotComponent }
        self.app = String(first)
        self.name = (appParts.dropFirst() + nameParts).joined(separator: "/")
        self.query = [appQuery, nameQuery].filter { !$0.isEmpty }.joined(separator: "&")
    }

    private static func split(_ text: String) -> (path: String, query: String) {
        guard let mark = text.firstIndex(of: "?") else { return (text, "") }
        return (String(text[..<mark]), String(text[text.index(after: mark)...]))
    }
}

/// Why an app or stream name is refused.
package enum StreamAddressError: Error, Equatable, Sendable, CustomStringConvertible {
    case emptyApp
    case emptyName
    case tooLong(bytes: Int, limit: Int)
    case queryTooLong(bytes: Int, limit: Int)
    case controlCharacter(UInt8)
    case dotComponent

    package var description: String {
        switch self {
        case .emptyApp: "the app is empty; expected rtmp://host/app/name"
        case .emptyName: "the stream name is empty; expected rtmp://host/app/name"
        case .tooLong(let bytes, let limit): "app and stream name have \(bytes) bytes; the limit is \(limit)"
        case .queryTooLong(let bytes, let limit): "the query has \(bytes) bytes; the limit is \(limit)"
        case .controlCharacter(let byte): "the name holds control character \(byte); expected printable characters"
        case .dotComponent: "the name holds a \"..\" or \".\" component"
        }
    }
}
