import EarshotServer
import Foundation
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

/// Links between two servers, by the API: viewers of one get the other's streams.
@Suite struct LinkTests {
    static let open: @Sendable (inout ServerConfig) -> Void = {
        $0.outbound.allowPrivate = CIDR.loopback
        $0.rooms.policy.cleanStopMs = 500
    }

    static func create(_ server: TestServer, _ direction: String, _ name: String, _ url: String, more: String = "") async throws
        -> Int
    {
        try await server.makeLink(direction, name, url, more: more)
    }

    /// One server's stream, pushed to another and pulled by it: packets as pushed, and no credential anywhere.
    @Test func pushesAndPulls() async throws {
        let source = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 10)
        let expected = try await PacketList.of(file: source)
        try await TestServer.run(Self.open) { origin in
            try await TestServer.run(Self.open) { edge in
                let pushed = try await Self.create(origin, "push", "cam1", "\(edge.rtmp)/live/copy?key=hush-hush")
                let pull = try await Self.create(
                    edge, "pull", "pulled", "\(origin.rtmp)/live/cam1?key=hush-hush", more: #","onDemand":true"#)
                #expect(try await edge.api("links/\(pull)")["state"].string == "idle")
                try await ClientProcess.during(FFmpeg.push(source, to: "\(origin.rtmp)/live/cam1")) { push in
                    try await origin.wait("links/\(pushed)") { $0["state"].string == "running" }
                    try await edge.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                    let players = try [
                        ClientProcess(Probe.packets("\(edge.rtmp)/live/copy")),
                        ClientProcess(Probe.packets("\(edge.http)/live/pulled.flv")),
                    ]
                    defer { for player in players { player.send(SIGKILL) } }
                    try await push.halted {
                        try await edge.wait("links/\(pull)") { $0["state"].string == "running" }
                        try await edge.wait("streams") { list in
                            list["list"].list.compactMap { $0["viewers"].int }.reduce(0, +) == 2
                        }
                    }
                    _ = try await push.outcome()
                    for player in players {
                        let got = PacketList(csv: try await player.outcome().text)
                        for kind in ["video", "audio"] {
                            let (hashes, sent) = (got.only(kind).hashes, expected.only(kind).hashes)
                            #expect(hashes.count > sent.count / 3 && sent.containsRun(hashes), "\(hashes.count) of \(sent.count) \(kind)")
                        }
                        #expect(got.orderProblem == nil)
                    }
                }
                // The stream is over: nothing is pushed, and an unwatched stream is not pulled.
                try await origin.wait("links/\(pushed)") { $0["state"].string == "stopped" }
                let shown = try await origin.call("GET", "links").text + edge.call("GET", "links").text
                let logged = (origin.lines.all + edge.lines.all).filter { $0.contains("direction") }
                #expect(!shown.contains("hush") && !logged.isEmpty && !logged.contains { $0.contains("hush") })
                #expect(try await origin.call("DELETE", "links/\(pushed)").status == 200)
                #expect(try await origin.call("GET", "links/\(pushed)").status == 404)
            }
        }
    }

    /// A link exists again after a restart, and continues.
    @Test func survivesARestart() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 8)
        try await Fixture.withDirectory { directory in
            try await TestServer.run(Self.open) { target in
                let data = directory.appendingPathComponent("data").path
                let id = try await TestServer.run(data: data, Self.open) { server in
                    try await Self.create(server, "push", "cam1", "\(target.rtmp)/live/copy")
                }
                try await TestServer.run(data: data, Self.open) { server in
                    try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                        try await server.wait("links/\(id)") { $0["state"].string == "running" }
                        try await target.wait("streams/live/copy") { $0["state"].string == "active" }
                    }
                }
            }
        }
    }
}
