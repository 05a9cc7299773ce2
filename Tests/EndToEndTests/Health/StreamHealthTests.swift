import EarshotServer
import Foundation
import NIOCore
import RTMP
import Rooms
import ServerConfiguration
import ServerTestSupport
import Synchronization
import TestSupport
import Testing

/// Verdicts of streams, with real pushes: every ill is named in time, and what is healthy stays good.
@Suite struct StreamHealthTests {
    /// A sender that its machine holds up by more than this, which is where jitter begins, is no healthy stream: nothing can be said
    /// about its verdict then.
    private static let excusedMs = 100.0

    @Test(.timeLimit(.minutes(5))) func illsAreNamedAndTheHealthyStayGood() async throws {
        let ills = try await PlantedStream.ills()
        let healthy = try await PlantedStream.healthy()
        try await TestServer.run({ $0.rtmp.adviseUplink = true }) { server in
            try await Fixture.withDirectory { directory in
                let publishing = Task {
                    try await withThrowingTaskGroup(of: (String, PlantedStream.Sent).self) { group in
                        for stream in ills + healthy { group.addTask { (stream.name, try await stream.publish(to: server)) } }
                        return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
                    }
                }
                defer { publishing.cancel() }
                let named = try await Self.watch(server, ills, healthy)
                try await Self.explains(try await server.cli(in: directory))
                try await Self.isStored(server)
                publishing.cancel()
                let sent = try await publishing.value
                for ill in ills {
                    let seconds = named.seconds[ill.name]
                    let late = sent[ill.name]?.lateness.latestMs ?? 0
                    #expect(
                        seconds.map { $0 <= 15 * Patience.factor } == true || late > Self.excusedMs,
                        "\(ill.name): \(seconds ?? -1) s, \(late) ms late, \(named)")
                }
                try Self.isAdvised(sent["throttled"])
                #expect(sent["usual"]?.heard.isEmpty == true || (sent["usual"]?.lateness.latestMs ?? 0) > Self.excusedMs)
                for (name, reasons) in named.wrong {
                    let late = sent[name]?.lateness.latestMs ?? 0
                    #expect(late > Self.excusedMs, "\(name) is healthy, and was called \(reasons); \(late) ms late")
                }
            }
        }
    }

    /// By default the server advises nobody: a publisher may not know the message.
    @Test(.timeLimit(.minutes(3))) func withoutTheSettingNobodyIsAdvised() async throws {
        let throttled = try await PlantedStream.ills().first { $0.expected == "media_behind_clock" }.orThrow()
        try await TestServer.run { server in
            let publishing = Task { try await throttled.publish(to: server) }
            defer { publishing.cancel() }
            try await server.wait("streams") { streams in
                streams["list"][0]["health"]["reasons"].list.contains { $0["code"].string == "media_behind_clock" }
            }
            // The advice comes every five seconds where it comes at all.
            try await Task.sleep(for: .seconds(6))
            publishing.cancel()
            #expect(try await publishing.value.heard.isEmpty)
        }
    }

    /// The publisher of 670 kbit/s that an uplink of 440 holds up knows what it carries.
    private static func isAdvised(_ sent: PlantedStream.Sent?) throws {
        let tag = try (sent?.heard.last).orThrow()
        var decoder = AMF0Decoder(ByteBuffer(bytes: tag.payload))
        #expect(try decoder.next() == "onUplink")
        let advice = try decoder.next().orThrow()
        let bits = try (advice["bitsPerSecond"]?.number).orThrow()
        #expect(bits > 10_000 && advice["advisedBitsPerSecond"]?.number == (bits * 0.85).rounded())
    }

    private struct Named {
        /// Seconds from an ill's onset, as the list shows it, to its name.
        var seconds: [String: Double] = [:]
        /// Healthy streams that were called otherwise.
        var wrong: [String: [String]] = [:]
    }

    /// Asks the API until all ills have their names.
    private static func watch(_ server: TestServer, _ ills: [PlantedStream], _ healthy: [PlantedStream]) async throws -> Named {
        var named = Named()
        var seen: [String: ContinuousClock.Instant] = [:]
        try await eventually("a name for each ill", within: 45) {
            for stream in try await server.api("streams")["list"].list {
                guard let name = stream["name"].string, !stream["health"].isNull else { continue }
                let begun = seen[name] ?? .now
                seen[name] = begun
                let codes = stream["health"]["reasons"].list.compactMap { $0["code"].string }
                if let expected = ills.first(where: { $0.name == name })?.expected, codes.contains(expected), named.seconds[name] == nil {
                    let onset = ["gop", "skew", "silent", "rate", "reordered"].contains(name) ? 0 : Double(PlantedStream.onset) / 1_000
                    named.seconds[name] = (ContinuousClock.now - begun) / .seconds(1) - onset
                }
                if healthy.contains(where: { $0.name == name }), stream["health"]["verdict"].string != "good" { named.wrong[name] = codes }
            }
            return named.seconds.count == ills.count
        }
        return named
    }

    private static func explains(_ cli: CLI) async throws {
        let list = try await cli.text("streams", "list")
        #expect(list.contains("HEALTH") && list.contains("degraded") && list.contains("bad"))
        let why = try await cli.text("streams", "why", "live/throttled")
        #expect(why.hasPrefix("live/throttled is bad, for ") && why.contains("(media_behind_clock") && why.contains("Lower the bit rate"))
        #expect(try await cli.text("streams", "why", "live/reordered").contains("Worth knowing:\n- The video has B-frames"))
        #expect(try await cli("streams", "why", "live/nobody").status == 3)
        #expect(try await cli.json("streams", "why", "live/gop")["reasons"][0]["code"].string == "keyframe_interval_long")
        #expect(try await cli.text("streams", "show", "live/throttled").contains("media_behind_clock"))
    }

    /// The change is an event of the room.
    private static func isStored(_ server: TestServer) async throws {
        var events: [JSON] = []
        try await eventually("the event of a bad stream") {
            events = try await server.api("events?limit=1000")["list"].list.filter { $0["kind"].string == "stream.health" }
            return events.contains { $0["data"]["name"].string == "throttled" && $0["data"]["verdict"].string == "bad" }
        }
        #expect(events.first { $0["data"]["name"].string == "throttled" }?["data"]["former"].string == "good")
        #expect(events.allSatisfy { $0["data"]["reasons"].list.allSatisfy { $0["message"].string?.isEmpty == false } })
        let answer = try await ClientProcess.run([
            "curl", "-s", "-H", "Authorization: Bearer \(server.token)", "\(server.http)/metrics",
        ])
        #expect(answer.text.contains("earshot_streams_by_verdict{verdict=\"bad\"} "))
    }
}
