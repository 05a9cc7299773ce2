/// Checks one multivariant playlist.
package func checkMultivariantPlaylist(_ text: String) -> [Violation] {
    var violations: [Violation] = []
    let lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" || $0 == "\r" }
    if lines.first != "#EXTM3U" { violations.append(Violation(.firstLine, line: 1, "")) }
    if hasControlCharacter(text) { violations.append(Violation(.text, "a control character")) }
    var seen: [Substring: Int] = [:]
    var variantLine: Int?
    var variants = 0
    for (index, line) in lines.enumerated() where !line.isEmpty {
        let number = index + 1
        guard line.hasPrefix("#") else {
            if variantLine == nil { violations.append(Violation(.variant, line: number, "a URI without EXT-X-STREAM-INF")) }
            variantLine = nil
            variants += 1
            continue
        }
        guard line.hasPrefix("#EXT") else { continue }
        let name = line.dropFirst().prefix { $0 != ":" }
        seen[name, default: 0] += 1
        if variantLine != nil { violations.append(Violation(.variant, line: number, "EXT-X-STREAM-INF is not followed by its URI")) }
        variantLine = nil
        switch name {
        case "EXTM3U", "EXT-X-VERSION", "EXT-X-INDEPENDENT-SEGMENTS", "EXT-X-START":
            if seen[name] ?? 0 > 1 { violations.append(Violation(.repeatedTag, line: number, String(name))) }
        case "EXT-X-DEFINE", "EXT-X-MEDIA", "EXT-X-I-FRAME-STREAM-INF", "EXT-X-SESSION-DATA", "EXT-X-SESSION-KEY",
            "EXT-X-CONTENT-STEERING":
            break
        case "EXT-X-STREAM-INF":
            variantLine = number
            violations += checkVariant(line.dropFirst(name.count + 2), line: number)
        case _ where name.hasPrefix("EXT-X-") || name == "EXTINF":
            violations.append(Violation(.mixedKinds, line: number, String(name)))
        default: violations.append(Violation(.knownTag, line: number, String(name)))
        }
    }
    if variants == 0 || variantLine != nil { violations.append(Violation(.variant, "none, or one without a URI")) }
    return violations
}

/// Checks the attributes of EXT-X-STREAM-INF (§4.4.6.2).
private func checkVariant(_ text: Substring, line: Int) -> [Violation] {
    guard let attributes = AttributeList(text) else { return [Violation(.attributeSyntax, line: line, String(text))] }
    var violations: [Violation] = []
    guard let bandwidth = attributes.integer("BANDWIDTH") else { return [Violation(.bandwidth, line: line, "missing")] }
    if bandwidth < 1 { violations.append(Violation(.bandwidth, line: line, "none")) }
    if let average = attributes.values["AVERAGE-BANDWIDTH"] {
        if attributes.integer("AVERAGE-BANDWIDTH").map({ $0 > bandwidth }) ?? true {
            violations.append(Violation(.bandwidth, line: line, "average \(average) above peak \(bandwidth)"))
        }
    }
    if attributes.quoted("CODECS")?.isEmpty ?? true { violations.append(Violation(.requiredAttribute, line: line, "CODECS (should)")) }
    if let resolution = attributes.values["RESOLUTION"] {
        let sides = attributes.bare("RESOLUTION")?.split(separator: "x", omittingEmptySubsequences: false) ?? []
        if sides.count != 2 || sides.contains(where: { Decimal.integer($0).map { $0 < 1 } ?? true }) {
            violations.append(Violation(.attributeSyntax, line: line, "RESOLUTION \(resolution)"))
        }
    }
    if attributes.values["FRAME-RATE"] != nil, attributes.seconds("FRAME-RATE").map({ $0 < 1 }) ?? true {
        violations.append(Violation(.attributeSyntax, line: line, "FRAME-RATE"))
    }
    return violations
}
