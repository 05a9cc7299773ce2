import EarshotServer
import Foundation
import RTMP
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ServerConfiguration

/// The API's view of a push and its players, whose properties are known.
@Suite struct HTTPAPIClientsTests {
    @Test func aKnownPushIsDescribedAsItIs() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 8)
        let size = try FileManager.default.attributesOfItem(atPath: source)[.size] as? Int ?? 0
        try await TestServer.run { server in
            let empty = try await server.call("GET", "streams").json()
            #expect(empty["code"].int == 0)
            #expect(empty["data"]["total"].int == 0)

            let url = "\(server.rtmp)/live/cam1"
            let player = try ClientProcess(["rtmpdump", "-q", "-r", url, "--live", "-o", "/dev/null"])
            // The push repeats its eight seconds, so that their figures hold throughout.
            let begin = ContinuousClock.now
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(url)?key=secret"))
            defer {
                player.send(SIGKILL)
                push.send(SIGKILL)
            }
            // Rates are measured in windows of two seconds; the second one is certainly full by then.
            try await server.wait("streams") { ($0["list"][0]["uptimeSeconds"].double ?? 0) > 4.5 }
            // A device that paused and caught up makes two uneven windows.
            let fps = 23.0...27.0, bitRates = size * 10 / 13...size * 13 / 10
            @Sendable func bits(_ stream: JSON) -> Int {
                (stream["video"]["bitsPerSecond"].int ?? 0) + (stream["audio"]["bitsPerSecond"].int ?? 0)
            }
            // The answer that has them: the next one may be of another window.
            var streams = JSON(nil)
            try? await eventually("the figures") {
                streams = try await server.api("streams")
                return fps.contains(streams["list"][0]["video"]["fps"].double ?? 0) && bitRates.contains(bits(streams["list"][0]))
            }
            #expect(streams["total"].int == 1)
            let stream = streams["list"][0]
            #expect(stream["app"].string == "live")
            #expect(stream["name"].string == "cam1")
            #expect(stream["state"].string == "live")
            #expect(stream["viewers"].int == 1)
            #expect(stream["publisher"]["address"].string?.hasPrefix("127.0.0.1:") == true)
            #expect(stream["publisher"]["client"].string?.isEmpty == false)
            let video = stream["video"]
            #expect(video["codec"].string == "H264")
            #expect(video["profile"].string?.contains("Baseline") == true)
            #expect(video["width"].int == 320)
            #expect(video["height"].int == 240)
            // Up to an audio frame more where the eight seconds begin anew.
            #expect((1_000...1_030).contains(video["keyframeIntervalMs"].int ?? 0), "\(video["keyframeIntervalMs"])")
            #expect(fps.contains(video["fps"].double ?? 0), "\(video["fps"].double ?? 0)")
            let audio = stream["audio"]
            #expect(audio["codec"].string == "AAC")
            #expect(audio["profile"].string?.contains("LC") == true)
            #expect(audio["sampleRate"].int == 44_100)
            #expect(audio["channels"].int == 1)
            #expect(bitRates.contains(bits(stream)), "\(bits(stream)) bit/s, file \(size) bytes in 8 s")
            let uptime = stream["uptimeSeconds"].double ?? 0
            #expect(uptime > 4.5 && uptime <= (ContinuousClock.now - begin) / .seconds(1))
            let bytesIn = stream["bytesIn"].int ?? 0
            let even = Double(size) / 8 * uptime
            #expect((even * 0.6...even * 1.6).contains(Double(bytesIn)), "\(bytesIn) in \(uptime) s, \(size) in 8")
            #expect((bytesIn / 2...bytesIn * 13 / 10).contains(stream["bytesOut"].int ?? 0))

            let sessions = try await server.api("sessions")
            #expect(sessions["total"].int == 2)
            let viewer = try sessions["list"].list.first { $0["playing"].count == 1 }.orThrow()
            #expect(viewer["transport"].string == "rtmp")
            #expect(viewer["app"].string == "live")
            #expect(viewer["address"].string?.hasPrefix("127.0.0.1:") == true)
            #expect((viewer["bytesOut"].int ?? 0) > bytesIn / 2)
            #expect((viewer["bytesIn"].int ?? 0) > 3_073)
            let play = viewer["playing"][0]
            #expect(play["stream"].string == "live/cam1")
            #expect((0..<5_000).contains(play["behindMs"].int ?? -1))
            #expect(play["framesSkipped"].int == 0)
            #expect((play["bytesSent"].int ?? 0) > 0)
            let publisher = try sessions["list"].list.first { $0["publishing"].count == 1 }.orThrow()
            #expect(publisher["publishing"][0].string == "live/cam1")
            #expect((publisher["bytesIn"].int ?? 0) >= bytesIn)
            let whole =
                try await server.call("GET", "streams").text + server.call("GET", "sessions").text
            #expect(!whole.contains("secret"), "a credential is shown")

            player.send(SIGKILL)
            try await server.wait("streams") { $0["list"][0]["viewers"].int == 0 }
            push.send(SIGKILL)
            try await server.wait("streams") { $0["list"][0]["state"].string == "interrupted" }
            let counters = try await server.api("counters")
            #expect(counters["connectionsAccepted"].int == 2)
            #expect(counters["publishesStarted"].int == 1)
            #expect(counters["playsStarted"].int == 1)
        }
    }

    static let elsewhere: [CIDR] = {
        do { return [try CIDR(parsing: "10.0.0.0/8")] } catch { return [] }
    }()
}

/// A refusal names the setting behind it.
@Suite struct AccessClientsTests {
    @Test func pushingFromElsewhereIsRefused() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: nil, seconds: 1)
        try await TestServer.run({ $0.access.publishFrom = HTTPAPIClientsTests.elsewhere }) { server in
            let push = try await ClientProcess.run(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1"))
            #expect(push.status != 0)
            #expect(push.errors.contains("access.publishFrom"), "\(push.errors)")
            #expect(await server.lines.comes("reason=credential_missing", "access.publishFrom"))
            let client = try await TagClient.connect(to: server, .publish, "live/cam1")
            try await eventually("the end") { client.current.isClosed }
            #expect(
                client.current.refusal?.description.contains("access.publishFrom") == true
                    || client.current.statuses.contains { $0.description.contains("access.publishFrom") })
        }
    }

    @Test func playingFromElsewhereIsRefused() async throws {
        try await TestServer.run({ $0.access.playFrom = HTTPAPIClientsTests.elsewhere }) { server in
            let play = try await ClientProcess.run(Probe.packets("\(server.rtmp)/live/cam1"))
            #expect(play.status != 0)
            #expect(play.errors.contains("access.playFrom"), "\(play.errors)")
            #expect(await server.lines.comes("reason=credential_missing", "access.playFrom"))
            let dump = try await ClientProcess.run(["rtmpdump", "-r", "\(server.rtmp)/live/cam1", "--live", "-o", "/dev/null"])
            #expect(dump.status != 0)
            let client = try await TagClient.connect(to: server, .play, "live/cam1")
            try await eventually("the end") { client.current.isClosed }
            #expect(client.current.refusal?.description.contains("access.playFrom") == true)
        }
    }
}
