import APITestSupport
import Foundation
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ControlAPI
@testable import HTTPAPI

/// Figures over time with real publishers and players: they agree with what was sent.
@Suite struct StatsClientsTests {
    @Test(.timeLimit(.minutes(5))) func figuresAgreeWithWhatWasSent() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 10)
        let sent = try FLVFile.read(source).reduce(0) { $0 + $1.payload.count }
        try await Fixture.withDirectory { directory in
            let (overHTTP, overRTMP) = (directory.appendingPathComponent("a.flv").path, directory.appendingPathComponent("b.flv").path)
            try await TestServer.run({ $0.rooms.policy.cleanStopMs = 500 }) { server in
                let api = try await CheckedAPI(server)
                let begin = ContinuousClock.now
                let pushSeconds = try await ClientProcess.during(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1")) { push in
                    try await server.wait("streams") { ($0["list"][0]["bytesIn"].int ?? 0) > 1_000 }
                    let curl = try ClientProcess([
                        "curl", "-sS", "-A", "=1+2, \"x\"", "-o", overHTTP, "\(server.http)/live/cam1.flv?userId=u1",
                    ])
                    defer { curl.send(SIGKILL) }
                    let ffmpeg = try ClientProcess([
                        "ffmpeg", "-v", "error", "-i", "\(server.rtmp)/live/cam1", "-t", "3", "-c", "copy", overRTMP,
                    ])
                    defer { ffmpeg.send(SIGKILL) }
                    let hls = try ClientProcess([
                        "ffmpeg", "-v", "error", "-i", "\(server.http)/live/cam1.m3u8", "-t", "3", "-c", "copy", "-f", "null", "-",
                    ])
                    defer { hls.send(SIGKILL) }
                    _ = try await push.outcome()
                    let pushSeconds = (ContinuousClock.now - begin) / .seconds(1)
                    _ = try await curl.outcome()
                    _ = try await ffmpeg.outcome()
                    return pushSeconds
                }
                // Players over HLS are gone when they fall silent: their play ends half a minute later.
                try await server.wait("stats/plays") { $0["list"].count == 3 }
                try await server.wait("stats/pushes") { $0["list"].count == 1 }
                let push = try await api.ok("GET", "stats/pushes?stream=live/cam1&reason=clientStopped")["list"][0]
                let received = try push["bytes"].int.orThrow()
                #expect(abs(received - sent) < sent / 50, "\(received) of \(sent)")
                #expect((5...pushSeconds + 1).contains(push["seconds"].double ?? 0), "\(push["seconds"].value ?? "none") of \(pushSeconds)")
                #expect(push["videoCodec"].string == "H264" && push["audioCodec"].string == "AAC")
                #expect(push["width"].int == 320 && push["height"].int == 240 && push["roomId"].string == "cam1")
                #expect(push["transport"].string == "rtmp" && push["address"].string == "127.0.0.1")

                let plays = try await api.ok("GET", "stats/plays?roomId=cam1")["list"].list
                let byTransport = Dictionary(uniqueKeysWithValues: plays.map { ($0["transport"].string ?? "", $0) })
                let flv = try byTransport["http-flv"].orThrow()
                let size = try FileManager.default.attributesOfItem(atPath: overHTTP)[.size] as? Int ?? 0
                let got = try flv["bytes"].int.orThrow()
                #expect(size > 50_000 && abs(got - size) < size / 33, "\(got) counted, \(size) arrived")
                #expect(flv["reason"].string == "stream_ended" && flv["client"].string == "=1+2, \"x\"")
                let rtmp = try byTransport["rtmp"].orThrow()
                #expect((rtmp["bytes"].int ?? 0) > 20_000 && rtmp["app"].string == "live" && rtmp["name"].string == "cam1")
                #expect((byTransport["hls"]?["bytes"].int ?? 0) > 20_000)
                #expect(try await api.ok("GET", "stats/plays?reason=too_slow")["list"].count == 0)
                #expect(try await api.ok("GET", "stats/plays?stream=live/cam2")["list"].count == 0)

                // Sampled every ten seconds: when all have ended, the figures are the sums.
                let out = plays.reduce(0) { $0 + ($1["bytes"].int ?? 0) }
                try await server.wait("stats/streams/live/cam1") { $0["totals"]["bytesOut"].int ?? 0 >= out }
                let series = try await api.ok("GET", "stats/streams/live/cam1")
                #expect(series["totals"]["bytesOut"].int == out && series["totals"]["bytesIn"].int == received)
                #expect(series["totals"]["plays"].int == 3 && series["totals"]["viewersPeak"].int == 3)
                // A second at the push's beginning or end may be a short one.
                let fps = series["totals"]["fps"].double ?? 0
                #expect(fps > 10 && fps < 50 && !series["totals"]["arrivalJitterMs"].isNull, "\(series["totals"])")
                #expect((series["totals"]["keyframeIntervalMs"].int ?? 0) > 0)
                #expect(series["list"].list.reduce(0) { $0 + ($1["bytesOut"].int ?? 0) } == out)
                #expect(series["lost"].int == 0 && series["isPaused"].bool == false && series["step"].int == 60)
                let watched = plays.reduce(0.0) { $0 + ($1["seconds"].double ?? 0) }
                let streams = try await api.ok("GET", "stats/streams?sort=viewers")
                #expect(streams["total"].int == 1 && streams["next"].isNull && streams["list"][0]["name"].string == "cam1")
                let counted = Double(streams["list"][0]["viewerSeconds"].int ?? 0)
                // Viewers are looked at every ten seconds: each play's beginning and end may miss a look.
                #expect(counted > 0 && abs(counted - watched) < Double(10 * plays.count), "\(counted) viewer seconds, \(watched) watched")
                let all = try await api.ok("GET", "stats")
                #expect(all["totals"]["bytesOut"].int == out && all["totals"]["plays"].int == 3 && all["totals"]["fps"].isNull)
                #expect(Set(all["connections"].list.compactMap { $0["transport"].string }).contains("rtmp"))

                try await Self.checkForms(api, server, directory)
            }
        }
    }

    /// The same as comma-separated values, and as the command prints it.
    private static func checkForms(_ api: CheckedAPI, _ server: TestServer, _ directory: URL) async throws {
        let csv = try await api("GET", "stats/plays?format=csv")
        #expect(csv.contentType == "text/csv; charset=utf-8")
        let lines = csv.text.components(separatedBy: "\r\n")
        #expect(lines.count == 5 && lines.last == "", "\(csv.text)")
        #expect(
            lines[0].hasPrefix("playId,app,name,roomId,userId,sessionId,address,transport,client,startedAt,endedAt,seconds,bytes,reason,"))
        #expect(lines.contains { $0.contains(#","'=1+2, ""x""","#) }, "\(csv.text)")
        let steps = try await api("GET", "stats?format=csv&step=600")
        #expect(
            steps.text.hasPrefix("at,bytesIn,bytesOut,plays,viewersAverage,viewersPeak,fps,arrivalJitterMs,keyframeIntervalMs\r\n2"),
            "\(steps.text)")
        let cli = try await server.cli(.ops, in: directory)
        let text = try await cli.text("stats")
        #expect(text.contains("viewers") && text.contains("live/cam1"), "\(text)")
        #expect(try await cli.json("stats", "plays")["list"].count == 3)
        #expect(try await cli.text("stats", "pushes").contains("320x240"))
        #expect(try await cli.json("stats")["totals"]["plays"].int == 3)
    }

    /// A push that its successor replaced keeps its own codecs.
    @Test(.timeLimit(.minutes(5))) func aGhostKeepsItsFigures() async throws {
        let first = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 30)
        let second = try await Fixture.flv(video: Fixture.baseline, audio: nil, seconds: 30, size: "640x360")
        try await TestServer.run { server in
            try await ClientProcess.during(FFmpeg.push(first, to: "\(server.rtmp)/live/cam1")) { _ in
                try await server.wait("streams/live/cam1") { $0["stream"]["video"]["width"].int == 320 }
                try await ClientProcess.during(FFmpeg.push(second, to: "\(server.rtmp)/live/cam1")) { _ in
                    try await server.wait("streams/live/cam1") { $0["stream"]["video"]["width"].int == 640 }
                    try await server.wait("stats/pushes") { $0["list"].count == 1 }
                }
            }
            try await server.wait("stats/pushes") { $0["list"].count == 2 }
            let list = try await server.api("stats/pushes")["list"].list
            #expect(list.map { $0["width"].int } == [640, 320])
            #expect(list.map { $0["audioCodec"].string } == [nil, "AAC"])
            #expect(list.map { $0["reason"].string } == ["connectionLost", "takenOver"])
        }
    }

    @Test func badInput() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            for (path, field) in [
                ("stats?step=90", "step"), ("stats?step=30", "step"), ("stats?from=2026-11-25T10:00:00Z&to=2026-11-25T10:00:00Z", "from"),
                ("stats?from=2026-11-01T00:00:00Z&to=2026-11-25T00:00:00Z&step=60", "step"), ("stats?from=yesterday", "from"),
                ("stats/streams?sort=size", "sort"), ("stats/plays?reason=clientStopped", "reason"),
                ("stats/pushes?reason=too_slow", "reason"), ("stats/plays?format=xml", "format"), ("stats/plays?roomId=a/b", "roomId"),
                ("stats?from=1970-01-01T00:00:00Z&to=9999-12-31T23:59:59Z", "step"),
            ] {
                #expect(try await api.refused(400, "GET", path)["field"].string == field, "\(path)")
            }
            let empty = try await api.ok("GET", "stats/streams/live/nobody?from=1970-01-01T00:00:00Z&to=1970-01-01T00:01:00Z")
            #expect(empty["list"].count == 0 && empty["totals"]["bytesOut"].int == 0)
        }
    }

    @Test func theyMayBeOff() async throws {
        try await TestServer.run({ $0.stats.enabled = false }) { server in
            let api = try await CheckedAPI(server)
            for path in ["stats", "stats/streams", "stats/streams/live/a", "stats/plays", "stats/pushes"] {
                #expect(try await api.refused(409, "GET", path)["state"].string == "off")
            }
            #expect(!FileManager.default.fileExists(atPath: "\(server.dataDirectory)/stats.db"))
        }
    }
}
