import Foundation

/// Segments and parts of a media playlist's text, read as a player that follows it does.
package enum ListedParts {
    /// The part that a player with this playlist requests next.
    package static func next(after text: String) -> (msn: Int, part: Int) {
        var msn = 0
        var part = 0
        for line in text.split(separator: "\n") {
            if let value = line.split(separator: ":").last, line.hasPrefix("#EXT-X-MEDIA-SEQUENCE") { msn = Int(value) ?? 0 }
            if line.hasPrefix("#EXT-X-PART:") { part += 1 }
            if !line.hasPrefix("#"), !line.isEmpty {
                msn += 1
                part = 0
            }
        }
        return (msn, part)
    }

    /// Milliseconds; nil where no parts are listed.
    package static func partTargetMs(_ text: String) -> Int? {
        guard let name = text.firstRange(of: "PART-TARGET=") else { return nil }
        return Double(text[name.upperBound...].prefix { "0123456789.".contains($0) }).map { Int($0 * 1_000) }
    }

    /// Duration of everything listed, in milliseconds: whole segments, and the parts after them.
    package static func listedMs(_ text: String) -> Int64 { self.ends(text).listedMs }

    /// The end of each listed part, in milliseconds from the playlist's beginning.
    package static func partEndsMs(_ text: String) -> [Int64] { self.ends(text).partsMs }

    private static func ends(_ text: String) -> (listedMs: Int64, partsMs: [Int64]) {
        var whole = 0.0
        var parts = 0.0
        var ends: [Int64] = []
        for line in text.split(separator: "\n") {
            if line.hasPrefix("#EXTINF:") {
                whole += Double(line.dropFirst(8).prefix { $0 != "," }) ?? 0
                parts = 0
            } else if line.hasPrefix("#EXT-X-PART:DURATION=") {
                parts += Double(line.dropFirst(21).prefix { $0 != "," }) ?? 0
                ends.append(Int64(((whole + parts) * 1_000).rounded()))
            }
        }
        return (Int64(((whole + parts) * 1_000).rounded()), ends)
    }
}
