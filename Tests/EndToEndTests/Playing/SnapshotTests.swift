import Foundation
import NIOCore
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import EarshotServer
@testable import Packaging
@testable import ServerConfiguration
@testable import Streaming

/// Snapshots of live streams.
@Suite struct SnapshotTests {
    @Test func pictureOfALiveRoom() async throws {
        let source = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 12)
        try await Fixture.withDirectory { directory in
            try await TestServer.run { server in
                #expect(try await server.call("GET", "rooms/cam1/snapshot.jpg").status == 404)
                try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                    try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                    let url = try await server.api("rooms/cam1")["snapshotUrl"].string.orThrow()
                    #expect(url == "\(server.http)/api/v1/rooms/cam1/snapshot.jpg")
                    for (query, size) in [("", "320,240"), ("?width=160", "160,120")] {
                        let answer = try await HTTPAnswer.get(url + query, token: server.token)
                        #expect(answer.status == 200 && answer.contentType == "image/jpeg", "\(answer.text.prefix(200))")
                        let file = directory.appendingPathComponent("\(size).jpg")
                        try answer.body.write(to: file)
                        let probe = try await ClientProcess.run([
                            "ffprobe", "-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0", file.path,
                        ])
                        #expect(probe.text.trimmingCharacters(in: .whitespacesAndNewlines) == size)
                        // It is one of the pushed keyframes: nothing else would be as similar.
                        let best = try await Self.likeness(of: file.path, to: source)
                        #expect(best > 30, "\(best) dB at most")
                    }
                    #expect(try await server.call("GET", "rooms/cam1/snapshot.jpg?width=15").status == 400)
                    #expect(try await server.call("GET", "rooms/cam1/snapshot.jpg?slot=2").status == 400)
                    #expect(try await HTTPAnswer.get(url).status == 401)
                    #expect(try await server.call("POST", "streams/live/cam1/forbid", "{}").status == 200)
                    #expect(try await server.call("GET", "rooms/cam1/snapshot.jpg").status == 404)
                }
            }
        }
    }

    /// The next stream of a name has its own snapshot, despite the same timestamps.
    @Test func theNextStreamShowsItself() async throws {
        let sizes = ["320x240", "160x120"]
        try await TestServer.run({ $0.rooms.policy.cleanStopMs = 0 }) { server in
            for size in sizes {
                let source = try await Fixture.flv(video: Fixture.baseline, audio: nil, seconds: 4, size: size)
                try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { push in
                    var picture = Data()
                    try await eventually("a picture") {
                        let answer = try await server.call("GET", "rooms/cam1/snapshot.jpg")
                        picture = answer.body
                        return answer.status == 200
                    }
                    let shown = try JPEGSize(ByteBuffer(bytes: picture)).orThrow()
                    #expect("\(shown.width)x\(shown.height)" == size)
                    // A clean stop.
                    push.send(SIGINT)
                    _ = try await push.outcome()
                }
                try await eventually("its end") { try await server.call("GET", "rooms/cam1/snapshot.jpg").status == 404 }
            }
        }
    }

    /// PSNR in decibels to the most similar of the file's keyframes.
    private static func likeness(of picture: String, to file: String) async throws -> Double {
        let compared = try await ClientProcess.run([
            "ffmpeg", "-v", "info", "-skip_frame", "nokey", "-i", file, "-loop", "1", "-i", picture, "-lavfi",
            "[1:v][0:v]scale2ref=flags=bicubic[a][b];[a]format=yuv420p[c];[b]format=yuv420p[d];[d][c]psnr=stats_file=-:shortest=1", "-f",
            "null",
            "-",
        ])
        let found = compared.text.split(separator: "\n").compactMap { line in
            line.split(separator: " ").first { $0.hasPrefix("psnr_y:") }.flatMap { Double($0.dropFirst(7)) }
        }
        return try found.max().orThrow()
    }
}
