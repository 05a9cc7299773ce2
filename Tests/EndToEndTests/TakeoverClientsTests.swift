import EarshotServer
import Foundation
import RTMP
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import ServerConfiguration

/// Two publishers on one name: the same credential replaces its ghost, another one is refused.
@Suite struct TakeoverClientsTests {
    @Test func anotherCredentialIsRefused() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 12)
        let other = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 2, tone: 880)
        try await TestServer.run({ $0.rooms.policy.cleanStopMs = 500 }) { server in
            let url = "\(server.rtmp)/live/cam1"
            try await ClientProcess.during(Probe.packets(url)) { viewer in
                try await server.wait("streams") { $0["list"][0]["viewers"].int == 1 }
                try await ClientProcess.during(FFmpeg.push(source, to: "\(url)?key=a")) { first in
                    try await server.wait("streams") { ($0["list"][0]["bytesIn"].int ?? 0) > 20_000 }
                    // The holder waits, connected: another ffmpeg may take seconds to start.
                    let refused = try await first.halted { try await ClientProcess.run(FFmpeg.push(other, to: "\(url)?key=b")) }
                    #expect(refused.status != 0)
                    #expect(refused.errors.contains("published by another device"), "\(refused.errors)")
                    try await eventually("the refusal's line") { server.lines.contains("Connection closed", "reason=name_taken") }
                    #expect(!server.lines.contains("key=b"), "a credential was logged")
                    let pushed = try await first.outcome()
                    #expect(pushed.status == 0, "\(pushed.errors)")
                }
                let played = PacketList(csv: try await viewer.outcome().text)
                #expect(played.difference(from: try await PacketList.of(file: source)) == nil)
            }
        }
    }

    @Test func theSameCredentialTakesOver() async throws {
        // Far longer than another ffmpeg needs to start.
        let first = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 30)
        let second = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 2, tone: 880)
        try await TestServer.run({ $0.rooms.policy.cleanStopMs = 500 }) { server in
            let url = "\(server.rtmp)/live/cam1"
            try await ClientProcess.during(Probe.packets(url)) { viewer in
                try await server.wait("streams") { $0["list"][0]["viewers"].int == 1 }
                try await ClientProcess.during(FFmpeg.push(first, to: "\(url)?key=a")) { ghost in
                    try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                    let pushed = try await ClientProcess.run(FFmpeg.push(second, to: "\(url)?key=a"))
                    #expect(pushed.status == 0, "\(pushed.errors)")
                    let replaced = try await ghost.outcome()
                    #expect(replaced.status != 0)
                    #expect(await server.lines.comes("Connection closed", "reason=taken_over"))
                }
                let played = PacketList(csv: try await viewer.outcome().text)
                let sources = (try await PacketList.of(file: first), try await PacketList.of(file: second))
                #expect(played.joinDifference(first: sources.0, second: sources.1) == nil)
            }
        }
    }
}
