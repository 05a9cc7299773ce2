/// Reads a media playlist and notes violations of the grammar. It reads any text to its end.
struct PlaylistParser {
    private(set) var playlist = ParsedPlaylist()
    private(set) var violations: [Violation] = []
    private(set) var seen: [String: Int] = [:]
    private var pending = ParsedPlaylist.Segment(
        sequence: 0, uri: "", durationMicros: -1, discontinuity: 0, hasDiscontinuity: false, map: nil, hasMap: false, dateMs: nil,
        isGap: false, parts: [], line: 0)
    private var hasPending = false
    private var map: String?
    private var discontinuities = 0
    private var line = 0

    /// Tags that only a multivariant playlist may have.
    private static let multivariantTags: Set<String> = [
        "EXT-X-MEDIA", "EXT-X-STREAM-INF", "EXT-X-I-FRAME-STREAM-INF", "EXT-X-SESSION-DATA", "EXT-X-SESSION-KEY",
        "EXT-X-CONTENT-STEERING",
    ]
    /// Tags that may occur once (§4.4.1 to §4.4.3, §4.4.5.2).
    private static let once: Set<String> = [
        "EXTM3U", "EXT-X-VERSION", "EXT-X-TARGETDURATION", "EXT-X-MEDIA-SEQUENCE", "EXT-X-DISCONTINUITY-SEQUENCE", "EXT-X-ENDLIST",
        "EXT-X-PLAYLIST-TYPE", "EXT-X-I-FRAMES-ONLY", "EXT-X-PART-INF", "EXT-X-SERVER-CONTROL", "EXT-X-INDEPENDENT-SEGMENTS",
        "EXT-X-START", "EXT-X-SKIP",
    ]

    init(_ text: String) {
        if hasControlCharacter(text) { self.note(.text, "a control character") }
        if text.unicodeScalars.first == "\u{FEFF}" { self.note(.text, "a byte order mark") }
        var lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
            Substring(line.last == UInt8(ascii: "\r") ? line.dropLast() : line)
        }
        if lines.last?.isEmpty == true { lines.removeLast() }
        if lines.first != "#EXTM3U" { self.note(.firstLine, "the first line is \(lines.first ?? "missing")") }
        for content in lines {
            self.line += 1
            if content.isEmpty { continue }
            if content.hasPrefix("#EXT") {
                self.readTag(content.dropFirst())
            } else if !content.hasPrefix("#") {
                self.readURI(content)
            }
        }
        self.finish()
    }

    private mutating func note(_ rule: Rule, _ detail: String) {
        self.violations.append(Violation(rule, line: self.line == 0 ? nil : self.line, detail))
    }

    private mutating func readTag(_ text: Substring) {
        let nameBytes = text.utf8.prefix { $0 != UInt8(ascii: ":") }
        let name = String(Substring(nameBytes))
        let value = Substring(text.utf8.dropFirst(nameBytes.count + 1))
        self.seen[name, default: 0] += 1
        if Self.once.contains(name), self.seen[name] ?? 0 > 1 { self.note(.repeatedTag, name) }
        if Self.multivariantTags.contains(name) { self.note(.mixedKinds, name) }
        switch name {
        case "EXTM3U", "EXT-X-DEFINE", "EXT-X-I-FRAMES-ONLY", "EXT-X-KEY", "EXT-X-BITRATE", "EXT-X-DATERANGE",
            "EXT-X-RENDITION-REPORT", "EXT-X-BYTERANGE",
            _ where Self.multivariantTags.contains(name):
            break
        case "EXT-X-INDEPENDENT-SEGMENTS": self.playlist.hasIndependentSegments = true
        case "EXT-X-VERSION": self.playlist.version = self.integer(value, name)
        case "EXT-X-TARGETDURATION": self.playlist.targetDuration = self.integer(value, name)
        case "EXT-X-MEDIA-SEQUENCE":
            self.playlist.mediaSequence = self.integer(value, name)
            if !self.playlist.segments.isEmpty || self.hasPending { self.note(.sequenceOrder, "after the first segment") }
        case "EXT-X-DISCONTINUITY-SEQUENCE":
            self.playlist.discontinuitySequence = self.integer(value, name)
            if !self.playlist.segments.isEmpty || self.hasPending {
                self.note(.discontinuitySequenceOrder, "after the first segment or EXT-X-DISCONTINUITY")
            }
        case "EXT-X-ENDLIST": self.playlist.hasEnded = true
        case "EXT-X-PLAYLIST-TYPE": self.note(.playlistType, "in a live playlist")
        case "EXT-X-GAP": self.change { $0.isGap = true }
        case "EXT-X-DISCONTINUITY":
            self.expectBeforeParts(name)
            self.change { $0.hasDiscontinuity = true }
        case "EXT-X-PROGRAM-DATE-TIME":
            self.expectBeforeParts(name)
            let date = Decimal.date(value)
            if date == nil { self.note(.dateFormat, String(value)) }
            self.change { $0.dateMs = date }
        case "EXTINF":
            let duration = value.prefix { $0 != "," }
            let micros = Decimal.micros(duration)
            if micros == nil || !value.contains(",") { self.note(.tagSyntax, "EXTINF:\(value)") }
            self.change { $0.durationMicros = micros ?? 0 }
        default: self.readAttributeTag(name, value)
        }
    }

    private mutating func readAttributeTag(_ name: String, _ value: Substring) {
        let known: Set = [
            "EXT-X-SERVER-CONTROL", "EXT-X-PART-INF", "EXT-X-START", "EXT-X-SKIP", "EXT-X-MAP", "EXT-X-PART", "EXT-X-PRELOAD-HINT",
        ]
        guard known.contains(name) else { return self.note(.knownTag, name) }
        guard let attributes = AttributeList(value) else { return self.note(.attributeSyntax, "\(name):\(value)") }
        switch name {
        case "EXT-X-SERVER-CONTROL": self.playlist.serverControl = attributes
        case "EXT-X-PART-INF":
            self.playlist.partTargetMicros = self.required(attributes.seconds("PART-TARGET"), "PART-TARGET")
        case "EXT-X-START": self.playlist.startMicros = self.required(attributes.seconds("TIME-OFFSET"), "TIME-OFFSET")
        case "EXT-X-SKIP":
            self.playlist.skippedSegments = self.required(attributes.integer("SKIPPED-SEGMENTS"), "SKIPPED-SEGMENTS")
            if !self.playlist.segments.isEmpty || self.hasPending { self.note(.skip, "after the first segment") }
        case "EXT-X-MAP":
            self.expectBeforeParts(name)
            self.map = self.required(attributes.quoted("URI"), "URI")
            self.change { $0.hasMap = true }
        case "EXT-X-PART":
            let part = ParsedPlaylist.Part(
                uri: self.required(attributes.quoted("URI"), "URI") ?? "",
                durationMicros: self.required(attributes.seconds("DURATION"), "DURATION") ?? 0,
                isIndependent: attributes.bare("INDEPENDENT") == "YES", isGap: attributes.bare("GAP") == "YES")
            if self.pending.durationMicros >= 0 { self.note(.tagSyntax, "EXT-X-PART between EXTINF and its URI") }
            self.change { $0.parts.append(part) }
        default:
            self.playlist.hints.append(
                ParsedPlaylist.Hint(
                    type: self.required(attributes.bare("TYPE"), "TYPE") ?? "", uri: self.required(attributes.quoted("URI"), "URI") ?? ""))
        }
    }

    /// Checks that a tag which applies to a segment precedes its first part (§4.4.4.9).
    private mutating func expectBeforeParts(_ name: String) {
        if !self.pending.parts.isEmpty { self.note(.tagSyntax, "\(name) after a part of the same segment") }
    }

    private mutating func change(_ body: (inout ParsedPlaylist.Segment) -> Void) {
        if !self.hasPending {
            self.hasPending = true
            self.pending.line = self.line
        }
        body(&self.pending)
    }

    private mutating func readURI(_ uri: Substring) {
        if uri.contains(where: { $0 == " " || $0 == "\"" || $0 == "\t" }) { self.note(.text, "no URI: \(uri)") }
        if self.pending.durationMicros < 0 {
            self.note(.segmentWithoutDuration, String(uri))
            self.pending.durationMicros = 0
        }
        self.pending.uri = String(uri)
        self.pending.line = self.line
        self.completePending()
        self.playlist.segments.append(self.pending)
        self.resetPending()
    }

    private mutating func completePending() {
        if self.pending.hasDiscontinuity { self.discontinuities += 1 }
        self.pending.map = self.map
        self.pending.discontinuity = self.playlist.discontinuitySequence + self.discontinuities
        self.pending.sequence = self.playlist.lastSequence + 1
    }

    private mutating func resetPending() {
        self.hasPending = false
        self.pending = ParsedPlaylist.Segment(
            sequence: 0, uri: "", durationMicros: -1, discontinuity: 0, hasDiscontinuity: false, map: nil, hasMap: false, dateMs: nil,
            isGap: false, parts: [], line: 0)
    }

    private mutating func finish() {
        guard self.hasPending else { return }
        if self.pending.durationMicros >= 0 { self.note(.danglingTag, "EXTINF without a URI") }
        if self.pending.parts.isEmpty { self.note(.danglingTag, "tags that apply to no segment") }
        self.completePending()
        self.pending.durationMicros = 0
        self.playlist.open = self.pending
    }

    private mutating func integer(_ value: Substring, _ name: String) -> Int {
        if let integer = Decimal.integer(value) { return integer }
        self.note(.tagSyntax, "\(name):\(value)")
        return 0
    }

    private mutating func required<Value>(_ value: Value?, _ name: String) -> Value? {
        if value == nil { self.note(.requiredAttribute, name) }
        return value
    }
}

/// Whether the text has control characters other than line ends (§4). U+0080…U+009F are 0xC2 and a second byte below 0xA0.
func hasControlCharacter(_ text: String) -> Bool {
    var previous: UInt8 = 0
    for byte in text.utf8 {
        if byte < 0x20, byte != UInt8(ascii: "\n"), byte != UInt8(ascii: "\r") { return true }
        if byte == 0x7F || (previous == 0xC2 && byte < 0xA0) { return true }
        previous = byte
    }
    return false
}
