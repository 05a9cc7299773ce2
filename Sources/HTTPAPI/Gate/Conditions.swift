import Crypto
import HTTPServer
import HTTPTypes
import Rooms
import Support

/// The conditions in If-Match and If-None-Match (RFC 9110 §13.1). A value.
struct Conditions: Sendable, Equatable {
    let ifMatch: EntityTags?
    let ifNoneMatch: EntityTags?

    /// Ignores both headers for a GET whose answer has no version to compare, and If-Match, which some clients always send, for a change of what
    /// has none.
    init(_ headers: HTTPFields, of route: APIRoute) throws(APIError) {
        let isIgnored = route.method == .get && !route.isVersioned
        let hasVersion = route.method == .get ? route.isVersioned : route.reach == .room
        self.ifMatch = hasVersion ? try EntityTags(headers, .ifMatch) : nil
        self.ifNoneMatch = isIgnored ? nil : try EntityTags(headers, .ifNoneMatch)
    }

    /// The room versions that a change accepts; nil for any.
    var room: RoomCondition? {
        // §13.1.1: strong comparison, so weak tags never match. "*" always holds, since a room that is changed exists.
        let versions = (self.ifMatch?.tags).map { Set($0.filter { !$0.isWeak }.map(\.version)) }
        guard versions != nil || self.ifNoneMatch != nil else { return nil }
        // §13.1.2: weak comparison; "*" is false for a room that exists.
        let excluded: RoomCondition.Excluded =
            if let tags = self.ifNoneMatch { tags.tags.map { .versions(Set($0.map(\.version))) } ?? .all } else { .none }
        return RoomCondition(versions: versions, excluded: excluded)
    }

    /// The name of the header that makes a change conditional; nil when none does.
    var headerOfChange: String? {
        if self.ifMatch?.tags != nil { return HTTPField.Name.ifMatch.rawName }
        return self.ifNoneMatch == nil ? nil : HTTPField.Name.ifNoneMatch.rawName
    }
}

/// A list of entity tags, or "*" for any. A value.
struct EntityTags: Sendable, Equatable {
    struct Tag: Sendable, Equatable {
        let isWeak: Bool
        let opaque: String

        /// The room's version. The rest of the tag identifies how the room was shown.
        var version: String { String(self.opaque.prefix { $0 != "-" }) }
    }

    /// Nil for "*".
    let tags: [Tag]?

    /// For the OpenAPI document: the syntax that ``init(_:_:)`` reads.
    static let pattern = #"^(\*|(W/)?"[!#-~]*"([ \t]*,[ \t]*(W/)?"[!#-~]*")*)$"#

    private static let mostBytes = 4_096

    /// Returns nil without the header. Throws when it is malformed or too long.
    init?(_ headers: HTTPFields, _ name: HTTPField.Name) throws(APIError) {
        let lines = headers[values: name]
        guard !lines.isEmpty else { return nil }
        let text = lines.joined(separator: ",")
        guard text.utf8.count <= Self.mostBytes, let tags = Self.read(text) else {
            throw APIError(FieldError(name.rawName, text, "expected * or entity tags in quotes, as in ETag"))
        }
        self.tags = tags.isEmpty ? nil : tags
    }

    /// Returns an empty list for "*", nil for malformed text.
    private static func read(_ text: String) -> [Tag]? {
        if text == "*" { return [] }
        var tags: [Tag] = []
        var rest = Substring(text)
        while true {
            let isWeak = rest.hasPrefix("W/")
            if isWeak { rest = rest.dropFirst(2) }
            guard rest.first == "\"", let end = rest.dropFirst().firstIndex(of: "\"") else { return nil }
            let opaque = rest[rest.index(after: rest.startIndex)..<end]
            guard opaque.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
            tags.append(Tag(isWeak: isWeak, opaque: String(opaque)))
            rest = rest[end...].dropFirst().drop { $0 == " " || $0 == "\t" }
            if rest.isEmpty { return tags }
            guard rest.first == "," else { return nil }
            rest = rest.dropFirst().drop { $0 == " " || $0 == "\t" }
        }
    }
}

/// The entity tag of a room as shown: its version and a hash of everything shown. A value.
///
/// Likes and viewers change the hash but not the version. If-Match compares the version alone, so that a new viewer does not block a
/// change; If-None-Match compares both.
struct RoomTag: Sendable, Equatable {
    let version: String
    let hash: String

    /// Nil for data without a version.
    init?(_ data: JSONValue) {
        guard case .string(let version)? = data["version"] else { return nil }
        var bytes: [UInt8] = []
        data.write(to: &bytes)
        self.version = version
        self.hash = SecretText.hex(SHA256.hash(data: bytes).prefix(6))
    }

    private var opaque: String { "\(self.version)-\(self.hash)" }
    var text: String { "\"\(self.opaque)\"" }

    func isNamed(byVersionIn tags: EntityTags) -> Bool {
        tags.tags?.contains { !$0.isWeak && $0.version == self.version } ?? true
    }

    /// The caller's tag for this representation, compressed or not; nil if it has none. Weak comparison (§13.1.2).
    func named(in tags: EntityTags) -> String? {
        guard let tags = tags.tags else { return self.text }
        let known = tags.first { $0.opaque == self.opaque || $0.opaque == "\(self.opaque)-gzip" }
        return known.map { "\"\($0.opaque)\"" }
    }
}
