package import Support

/// The target of a publish or play: `app/name`, with the queries of both parts.
///
/// Clients split `rtmp://host/talk/room1/alice` at different slashes, so only the joined path counts: the name may even be empty, as from OBS
/// with the whole address in its server field. HaishinKit leaves a URL's query in the app, ffmpeg and librtmp leave it in the name: both are
/// read.
package struct StreamAddress: Sendable, Equatable {
    /// First path component: the app.
    @ExactText package var app: String
    /// The other components joined by "/": the stream's name under the app.
    @ExactText package var name: String
    /// Query of the app and of the name, joined by "&", without "?". Holds credentials: never log it.
    package let query: String

    /// "app/name".
    package var path: String { "\(self.app)/\(self.name)" }

    /// Another stream's address with the same query. The name is one that this server made.
    package func naming(app: String, _ name: String) -> StreamAddress {
        var other = self
        other._app = app.exact
        other._name = name.exact
        return other
    }

    /// Reads app and name as RTMP clients send them. Many encode a URL's characters, as browsers do, and some do not: `with%20space` and
    /// `with space` are one name.
    package init(encodedApp app: String, name: String, limits: Limits = Limits()) throws(StreamAddressError) {
        let (appPath, appQuery) = try Self.split(app)
        let (namePath, nameQuery) = try Self.split(name)
        try self.init(
            appPath: Self.decode(appPath, limits), namePath: Self.decode(namePath, limits), appQuery: appQuery, nameQuery: nameQuery,
            limits: limits)
    }

    package init(app: String, name: String, limits: Limits = Limits()) throws(StreamAddressError) {
        let (appPath, appQuery) = try Self.split(app)
        let (namePath, nameQuery) = try Self.split(name)
        try self.init(appPath: appPath, namePath: namePath, appQuery: appQuery, nameQuery: nameQuery, limits: limits)
    }

    private init(appPath: String, namePath: String, appQuery: String, nameQuery: String, limits: Limits) throws(StreamAddressError) {
        let length = appPath.utf8.count + namePath.utf8.count
        if length > limits.nameBytes { throw .tooLong(bytes: length, limit: limits.nameBytes) }
        let queryLength = appQuery.utf8.count + nameQuery.utf8.count
        if queryLength > limits.queryBytes { throw .queryTooLong(bytes: queryLength, limit: limits.queryBytes) }
        for scalar in appPath.unicodeScalars where Self.isControl(scalar) { throw .controlCharacter(scalar.value) }
        for scalar in namePath.unicodeScalars where Self.isControl(scalar) { throw .controlCharacter(scalar.value) }
        for path in [appPath, namePath] { if let problem = NameForm.problem(path) { throw .notNormal(problem) } }
        let appParts = try Self.components(appPath)
        let nameParts = try Self.components(namePath)
        if nameParts.isEmpty, appParts.count < 2 { throw .emptyName }
        guard let first = appParts.first else { throw .emptyApp }
        if (appParts + nameParts).contains(where: { $0 == ".." || $0 == "." }) { throw .dotComponent }
        let joined = (appParts.dropFirst() + nameParts).joined(separator: "/")
        // The name may begin with a mark that combines with the slash before it.
        try Self.checkSlashes("\(first)/\(joined)")
        self._app = first.exact
        self._name = joined.exact
        self.query = [appQuery, nameQuery].filter { !$0.isEmpty }.joined(separator: "&")
    }

    /// Whether the scalar is a control, invisible, a line end or a direction mark. Names are shown in logs and lists, and two that look the
    /// same must be the same.
    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        // Fast path: printable ASCII, as in most names.
        if (0x20..<0x7F).contains(scalar.value) { return false }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: return true
        // Fillers, joiners and variation selectors are invisible (UAX #44, Default_Ignorable_Code_Point).
        default: return scalar.properties.isDefaultIgnorableCodePoint
        }
    }

    /// Decodes a path once. Refuses separators that were hidden: they would make it another path to those who decode later or not at all.
    private static func decode(_ path: String, _ limits: Limits) throws(StreamAddressError) -> String {
        guard path.utf8.contains(UInt8(ascii: "%")) else { return path }
        // An encoded byte takes three characters.
        guard path.utf8.count <= 3 * limits.nameBytes else { throw .tooLong(bytes: path.utf8.count, limit: limits.nameBytes) }
        // Part by part, as HTTP's paths are.
        let decoded = path.split(separator: "/", omittingEmptySubsequences: false).map(PercentCoding.decodeLeniently).joined(separator: "/")
        func slashes(_ text: String) -> Int { text.utf8.count { $0 == UInt8(ascii: "/") } }
        guard slashes(decoded) == slashes(path), !decoded.utf8.contains(UInt8(ascii: "?")) else { throw .encodedSeparator }
        return decoded
    }

    private static func split(_ text: String) throws(StreamAddressError) -> (path: String, query: String) {
        let mark = text.utf8.firstIndex(of: UInt8(ascii: "?"))
        guard mark == text.firstIndex(of: "?") else { throw .combinedSeparator }
        guard let mark else { return (text, "") }
        return (String(text[..<mark]), String(text[text.index(after: mark)...]))
    }

    private static func components(_ path: String) throws(StreamAddressError) -> [String] {
        try self.checkSlashes(path)
        return path.split(separator: "/").map(String.init)
    }

    /// Rejects slashes with a combining mark. Swift sees another character there; byte readers see a slash, and `..` may follow it.
    private static func checkSlashes(_ path: String) throws(StreamAddressError) {
        guard path.utf8.count(where: { $0 == UInt8(ascii: "/") }) == path.count(where: { $0 == "/" }) else { throw .combinedSeparator }
    }
}

/// The reason for rejecting an app or stream name.
package enum StreamAddressError: Error, Equatable, Sendable, CustomStringConvertible {
    case emptyApp
    case emptyName
    case tooLong(bytes: Int, limit: Int)
    case queryTooLong(bytes: Int, limit: Int)
    case controlCharacter(UInt32)
    /// Another spelling than Unicode Normalization Form C.
    case notNormal(ValueProblem)
    case dotComponent
    /// A slash or question mark that forms one character with its neighbour.
    case combinedSeparator
    /// A percent-encoded slash or question mark.
    case encodedSeparator

    package var description: String {
        switch self {
        case .emptyApp: "the app is empty; expected rtmp://host/app/name"
        case .emptyName: "the stream name is empty; expected rtmp://host/app/name, or the name as the encoder's stream key"
        case .tooLong(let bytes, let limit): "app and stream name have \(bytes) bytes; the limit is \(limit)"
        case .queryTooLong(let bytes, let limit): "the query has \(bytes) bytes; the limit is \(limit)"
        case .controlCharacter(let code):
            "the name contains a control character or an invisible character, U+\(String(hex: code, digits: 4, uppercase: true)); expected visible characters"
        case .notNormal(let problem): "the name \(problem)"
        case .dotComponent: "the name contains a \"..\" or \".\" component"
        case .combinedSeparator: "the name contains a slash or question mark combined with another character; expected it alone"
        case .encodedSeparator: "the name contains an encoded slash or question mark (%2F, %3F); expected / and ? themselves"
        }
    }
}
