import Foundation
import ServerTestSupport
import TestSupport

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
}
