import Foundation

/// An HLS player that follows a low-latency playlist. A plain value.
struct LiveHLS {
    /// The media playlist's URL, with its session.
    let url: String

    /// Opens a session as soon as there is something to play.
    init(_ server: TestServer, _ name: String) async throws {
        var first = ""
        try await eventually("\(name)'s playlist") {
            let answer = try await HTTPAnswer.get("\(server.http)/live/\(name).m3u8")
            first = answer.text
            return answer.status == 200
        }
        let media = try first.split(separator: "\n").first { $0.contains("media.m3u8") }.map(String.init).orThrow()
        self.url = "\(server.http)/live/\(media)"
    }

    /// Fetches the current playlist, or the first that has the wanted part.
    func playlist(_ wanted: (msn: Int, part: Int)? = nil) async throws -> HTTPAnswer {
        try await HTTPAnswer.get(self.url + (wanted.map { "&_HLS_msn=\($0.msn)&_HLS_part=\($0.part)" } ?? ""))
    }

    /// The part that a player with this playlist requests next.
    static func next(after text: String) -> (msn: Int, part: Int) {
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

    /// Duration of everything listed, in milliseconds: whole segments, and the parts after them.
    static func listedMs(_ text: String) -> Int64 { self.ends(text).listedMs }

    /// The end of each listed part, in milliseconds from the playlist's beginning.
    static func partEndsMs(_ text: String) -> [Int64] { self.ends(text).partsMs }

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
