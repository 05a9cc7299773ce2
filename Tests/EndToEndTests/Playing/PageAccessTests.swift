import Foundation
import ServerConfiguration
import ServerTestSupport
import TestSupport
import Testing

@testable import EarshotServer
@testable import Support

/// Pages of other origins: the rules for playing, and the answers to players whose access ends.
@Suite struct PageAccessTests {
    /// Runs a server with a live stream. `signed` is the query that plays it.
    private static func live(
        _ configure: @escaping @Sendable (inout ServerConfig) -> Void = { _ in },
        _ body: @escaping @Sendable (_ server: TestServer, _ signed: String) async throws -> Void
    ) async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 20)
        try await TestServer.run({
            $0.credentials.key = "a key for tests"
            configure(&$0)
        }) { server in
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                try await body(server, "?\(TestCredential.signed("cam1", key: "a key for tests"))")
            }
        }
    }

    /// Sends one request as a browser would. Returns the answer's head, in lower case.
    private static func head(
        _ server: TestServer, _ path: String, host: String? = nil, _ lines: [String] = [], method: String = "GET"
    ) async throws -> String {
        let socket = try await SocketClient.open(server.addresses.http.port)
        let host = host ?? "127.0.0.1:\(server.addresses.http.port)"
        try await socket.send(([("\(method) \(path) HTTP/1.1"), "Host: \(host)"] + lines).joined(separator: "\r\n") + "\r\n\r\n")
        var head = ""
        try await eventually("an answer to \(path)") {
            guard let end = socket.text.range(of: "\r\n\r\n") else { return false }
            head = socket.text[..<end.lowerBound].lowercased()
            return true
        }
        await socket.close()
        return head
    }

    private static let foreign = [
        ["Origin: https://evil.example"], ["Sec-Fetch-Site: cross-site"], ["Origin: null"],
        ["Origin: https://evil.example", "Sec-Fetch-Site: cross-site"],
    ]

    /// Where the address alone admits a player, a foreign page cannot use that: not by fetch, not by <video>, not by its own name that
    /// resolves to this server. With a signed URL it can.
    @Test func foreignPagesNeedACredential() async throws {
        try await Self.live { server, signed in
            let first = try await HTTPAnswer.get("\(server.http)/live/cam1.m3u8")
            #expect(first.status == 200 && first.headers["access-control-allow-origin"] == nil && first.headers["vary"] == "Origin")
            let playlist = "/live/" + (try first.text.split(separator: "\n").first { $0.contains("media.m3u8") }.map(String.init).orThrow())
            let listed = try await HTTPAnswer.get("\(server.http)\(playlist)").text
            let segment = "/live/cam1.hls/" + (try listed.split(separator: "\n").first { !$0.hasPrefix("#") }.map(String.init).orThrow())
            for path in ["/live/cam1.flv", "/live/cam1.mp4", "/live/cam1.m3u8", playlist, segment] {
                let own = try await Self.head(server, path)
                #expect(own.hasPrefix("http/1.1 200"), "\(path): \(own)")
                #expect(!own.contains("access-control-") && own.contains("cross-origin-resource-policy: same-site"), "\(path): \(own)")
                for lines in Self.foreign {
                    for method in ["GET", "HEAD", "OPTIONS"] {
                        let refused = try await Self.head(server, path, lines, method: method)
                        #expect(refused.hasPrefix("http/1.1 403"), "\(method) \(path) \(lines): \(refused)")
                        // A script may read why.
                        #expect(refused.contains("access-control-allow-origin: *"), "\(refused)")
                    }
                }
                let rebound = try await Self.head(server, path, host: "evil.example:\(server.addresses.http.port)")
                #expect(rebound.hasPrefix("http/1.1 403"), "\(path): \(rebound)")
            }
            // The answer does not reveal which streams exist.
            #expect(try await Self.head(server, "/live/none.m3u8", ["Origin: https://evil.example"]).hasPrefix("http/1.1 403"))
            let told = try await HTTPAnswer.call("GET", "\(server.http)/live/cam1.flv", headers: ["Origin": "https://evil.example"])
            #expect(
                told.status == 403 && told.text.contains("http.allowOrigin") && told.text.contains("https://evil.example"), "\(told.text)")
            // With a signed URL the same page gets the playlist, its files, and the other formats.
            let page = ["Origin: https://evil.example", "Sec-Fetch-Site: cross-site"]
            let opened = try await HTTPAnswer.call(
                "GET", "\(server.http)/live/cam1.m3u8\(signed)", headers: ["Origin": "https://evil.example"])
            #expect(opened.status == 200 && opened.headers["access-control-allow-origin"] == "*")
            let theirs = "/live/" + (try opened.text.split(separator: "\n").first { $0.contains("media.m3u8") }.map(String.init).orThrow())
            let media = try await HTTPAnswer.get("\(server.http)\(theirs)").text
            let piece = "/live/cam1.hls/" + (try media.split(separator: "\n").first { !$0.hasPrefix("#") }.map(String.init).orThrow())
            for path in ["/live/cam1.flv\(signed)", "/live/cam1.mp4\(signed)", "/live/cam1.m3u8\(signed)", theirs, piece] {
                let head = try await Self.head(server, path, host: "cdn.example", page)
                #expect(head.hasPrefix("http/1.1 200") && head.contains("access-control-allow-origin: *"), "\(path): \(head)")
            }
        }
    }

    /// Viewers of a forbidden stream get that reason, not the stream's end. None stays in the list.
    @Test func forbiddenIsForbidden() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 20)
        try await TestServer.run { server in
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                let player = try ClientProcess(["curl", "-sS", "-o", "/dev/null", "\(server.http)/live/cam1.flv"])
                defer { player.send(SIGKILL) }
                #expect(try await HTTPAnswer.get("\(server.http)/live/cam1.m3u8").status == 200)
                try await server.wait("sessions") { list in
                    Set(list["list"].list.compactMap { $0["transport"].string }).isSuperset(of: ["http-flv", "hls"])
                }
                #expect(try await server.call("POST", "streams/live/cam1/forbid", "{}").status == 200)
                let played = try await player.outcome()
                #expect(played.status == 0, "the body ended as it should: \(played.errors)")
                try await server.wait("sessions") { list in
                    !list["list"].list.contains { ["http-flv", "hls"].contains($0["transport"].string) }
                }
                // The publisher and both viewers.
                try await server.wait("counters") { $0["closed"]["forbidden"].int == 3 }
            }
        }
    }
}
