/// The part of an HLS playlist (RFC 8216bis §4) that the doctor reads. A plain value.
struct Playlist: Equatable {
    struct Position: Equatable {
        var segment: Int
        var part: Int
    }

    let address: String
    /// The first variant of a multivariant playlist (§4.4.6.2).
    private(set) var variant: String?
    /// The beginning of fragmented MP4 (§4.4.4.5).
    private(set) var map: String?
    /// URLs of parts and segments. A segment whose parts are listed is represented by its parts only.
    private(set) var pieces: [String] = []
    private(set) var hasSegment = false
    private(set) var canBlock = false
    /// Seconds.
    private(set) var partTarget: Double?
    private var firstSegment = 0
    private var segments = 0
    private var partsOfLast = 0

    init(_ text: String, at address: String) {
        self.address = address
        var isVariant = false
        var hasParts = false
        for line in text.split(separator: "\n").map({ $0.hasSuffix("\r") ? $0.dropLast() : $0 }) {
            if line.hasPrefix("#EXT-X-STREAM-INF") {
                isVariant = true
            } else if line.hasPrefix("#EXT-X-MAP:") {
                self.map = Self.attribute("URI", line).map { self.resolve($0) } ?? self.map
            } else if line.hasPrefix("#EXT-X-PART:"), let uri = Self.attribute("URI", line) {
                self.pieces.append(self.resolve(uri))
                self.partsOfLast += 1
                hasParts = true
            } else if line.hasPrefix("#EXT-X-SERVER-CONTROL:") {
                self.canBlock = line.contains("CAN-BLOCK-RELOAD=YES")
            } else if line.hasPrefix("#EXT-X-PART-INF:") {
                self.partTarget = line.split(separator: "=").last.flatMap { Double($0) }
            } else if line.hasPrefix("#EXT-X-MEDIA-SEQUENCE:") {
                self.firstSegment = line.split(separator: ":").last.flatMap { Int($0) } ?? 0
            } else if !line.hasPrefix("#"), !line.isEmpty {
                if isVariant {
                    if self.variant == nil { self.variant = self.resolve(String(line)) }
                    continue
                }
                self.segments += 1
                self.hasSegment = true
                if !hasParts { self.pieces.append(self.resolve(String(line))) }
                hasParts = false
                self.partsOfLast = 0
            }
        }
    }

    /// The part that comes next; nil without parts.
    var next: Position? {
        guard self.canBlock, self.partTarget != nil, self.segments < 1 << 30, self.firstSegment < 1 << 30 else { return nil }
        return Position(segment: self.firstSegment + self.segments, part: self.partsOfLast)
    }

    /// Whether the playlist includes this part: its segment is complete, or lists enough parts.
    func reaches(_ position: Position) -> Bool {
        guard let next = self.next else { return false }
        return next.segment > position.segment || (next.segment == position.segment && next.part > position.part)
    }

    private static func attribute(_ name: String, _ line: Substring) -> String? {
        guard let start = line.firstRange(of: "\(name)=\"") else { return nil }
        return String(line[start.upperBound...].prefix { $0 != "\"" })
    }

    /// Resolves a URI (RFC 3986 §5.2) in the forms that the server writes: whole URLs, paths from the root, names beside the playlist.
    private func resolve(_ uri: String) -> String {
        if uri.contains("://") { return uri }
        let path = self.address.prefix { $0 != "?" }
        let authorityEnd = path.firstRange(of: "://").map { path[$0.upperBound...].firstIndex(of: "/") ?? path.endIndex } ?? path.startIndex
        if uri.hasPrefix("/") { return path[..<authorityEnd] + uri }
        let folder = path.lastIndex(of: "/").map { path[...$0] } ?? path
        return folder + uri
    }
}
