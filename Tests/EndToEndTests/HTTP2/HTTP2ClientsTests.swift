import AsyncHTTPClient
import EarshotServer
import Foundation
import HLSCheck
import NIOCore
import NIOHTTP1
import NIOSSL
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import ServerConfiguration
@testable import Support

/// HTTPS with real clients, which choose HTTP/2 if they know it.
@Suite struct HTTP2ClientsTests {
    private static func curl(_ arguments: String...) -> [String] { ["curl", "-sSk"] + arguments }

    @Test func theClientChooses() async throws {
        try await TestServer.runSecure { server in
            for (option, version) in [("--http2", "2"), ("--http1.1", "1.1"), ("--no-alpn", "1.1"), ("--http2-prior-knowledge", "2")] {
                let answer = try await ClientProcess.run(Self.curl(option, "\(server.https)/healthz", "-w", "%{http_version}"))
                #expect(answer.text == "ok\n\(version)", "\(option): \(answer.text) \(answer.errors)")
            }
            // RTMPS shares the certificate but offers no ALPN protocol. HTTP without TLS offers no HTTP/2 either.
            let rtmps = try server.addresses.rtmps.orThrow().port
            for (port, offer, line) in [
                (server.secure, "h2", "ALPN protocol: h2"), (server.secure, "http/1.1,h2", "ALPN protocol: h2"),
                (server.secure, "http/1.1", "ALPN protocol: http/1.1"), (server.secure, "foo", "No ALPN negotiated"),
                (rtmps, "h2", "No ALPN negotiated"),
            ] {
                let shaken = try await ClientProcess.run(
                    ["openssl", "s_client", "-alpn", offer, "-connect", "127.0.0.1:\(port)"])
                #expect(shaken.text.contains(line), "\(port) \(offer)")
            }
            let plain = try await ClientProcess.run(["curl", "-sS", "--http2", "\(server.http)/healthz", "-w", "%{http_version}"])
            #expect(plain.text == "ok\n1.1")
        }
    }

    /// async-http-client negotiates by itself, or is limited to HTTP/1.1 as in the `earshot` command.
    @Test(arguments: [false, true]) func asyncHTTPClient(_ isOld: Bool) async throws {
        try await TestServer.runSecure { server in
            var configuration = HTTPClient.Configuration(certificateVerification: .none)
            configuration.httpVersion = isOld ? .http1Only : .automatic
            let client = HTTPClient(eventLoopGroup: RawClient.group, configuration: configuration)
            let outcome: Result<Void, any Error>
            do {
                var request = HTTPClientRequest(url: "\(server.https)/api/v1/rooms")
                request.method = .POST
                request.headers = ["authorization": "Bearer \(server.token)", "content-type": "application/json"]
                request.body = .bytes(ByteBuffer(string: "{\"roomId\":\"r1\"}"))
                let answer = try await client.execute(request, timeout: .seconds(60))
                #expect(answer.version == (isOld ? .http1_1 : .http2))
                let body = try await answer.body.collect(upTo: 1 << 20)
                #expect((200...201).contains(answer.status.code), "\(answer.status) \(String(buffer: body))")
                #expect(try await server.api("rooms")["list"][0]["roomId"].string == "r1")
                outcome = .success(())
            } catch {
                outcome = .failure(error)
            }
            try await client.shutdown()
            try outcome.get()
        }
    }

    /// HEAD, a body that is rejected before it is read, `Expect: 100-continue`, and a cross-origin page.
    @Test func theRestOfHTTP() async throws {
        try await TestServer.runSecure { server in
            let head = try await ClientProcess.run(Self.curl("--http2", "-I", "\(server.https)/healthz"))
            #expect(head.text.hasPrefix("HTTP/2 200") && head.text.contains("content-length: 3"), "\(head.text)")
            try await Fixture.withDirectory { directory in
                let file = directory.appendingPathComponent("body").path
                try Data(repeating: 0x20, count: 3 << 20).write(to: URL(fileURLWithPath: file))
                for (token, status) in [("none", "401"), (server.token, "413")] {
                    let answer = try await ClientProcess.run(
                        Self.curl(
                            "--http2", "-H", "authorization: Bearer \(token)", "-H", "content-type: application/json", "-H",
                            "expect: 100-continue", "--data-binary", "@\(file)", "-o", "/dev/null", "-w", "%{http_code} %{http_version}",
                            "\(server.https)/api/v1/rooms"))
                    #expect(answer.text == "\(status) 2" && answer.status == 0, "\(answer.text) \(answer.errors)")
                }
            }
        }
    }

    /// curl gets over HTTP/2 what ffmpeg pushed, in both containers: the decoded pictures are the same, and the body ends.
    @Test(arguments: ["flv", "mp4"]) func endlessBodies(_ format: String) async throws {
        let source = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 8)
        let size = try FileManager.default.attributesOfItem(atPath: source)[.size] as? Int ?? 0
        try await Fixture.withDirectory { directory in
            let (file, head) = (directory.appendingPathComponent("o.\(format)").path, directory.appendingPathComponent("head").path)
            try await TestServer.runSecure { server in
                try await ClientProcess.during(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1")) { push in
                    try await server.wait("streams") { ($0["list"][0]["bytesIn"].int ?? 0) > size / 3 }
                    let player = try ClientProcess(
                        Self.curl("--http2", "-N", "-D", head, "-o", file, "\(server.https)/live/cam1.\(format)"))
                    defer { player.send(SIGKILL) }
                    let transport = format == "flv" ? "https-flv" : "https-fmp4"
                    try await push.halted {
                        try await server.wait("sessions?role=player") { $0["list"][0]["transport"].string == transport }
                    }
                    let session = try await server.api("sessions?role=player")["list"][0]
                    #expect(session["address"].string?.hasPrefix("127.0.0.1:") == true, "\(session)")
                    _ = try await push.outcome()
                    let played = try await player.outcome()
                    #expect(played.status == 0, "the stream has an end: \(played.errors)")
                }
            }
            let fields = try String(contentsOfFile: head, encoding: .utf8).lowercased()
            #expect(fields.hasPrefix("http/2 200") && !fields.contains("transfer-encoding") && !fields.contains("connection:"))
            if format == "flv" {
                let got = try await PacketList.of(file: file)
                #expect(got.tailDifference(of: try await PacketList.of(file: source)) == nil)
            }
            let (got, sent) = (try await Self.pictures(file), try await Self.pictures(source))
            #expect(got.count > 25 && got.count < sent.count && sent.suffix(got.count) == got[...], "\(got.count) of \(sent.count)")
        }
    }

    /// A recording, whole and in ranges, and a snapshot of a live room: the same bytes as over HTTP/1.1.
    @Test func filesAndPictures() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 12)
        try await TestServer.runSecure({ $0.recording.apps = ["live"] }) { server in
            let key = "authorization: Bearer \(server.token)"
            try await ClientProcess.during(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1")) { push in
                try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                let picture = try await ClientProcess.run(Self.curl("--http2", "-H", key, "\(server.https)/api/v1/rooms/cam1/snapshot.jpg"))
                #expect(picture.output.prefix(3) == Data([0xFF, 0xD8, 0xFF]) && picture.output.suffix(2) == Data([0xFF, 0xD9]))
                _ = try await push.outcome()
            }
            let recording = try await server.recordings(1, "finished")[0]
            let file = try Data(contentsOf: URL(fileURLWithPath: try server.recordingPath(recording)))
            let url = "\(server.https)/api/v1/recordings/\(try recording["recordingId"].string.orThrow())/file"
            for (range, status, expected) in [
                ("", "200", file), ("0-99", "206", file[..<100]), ("1000-70000", "206", file[1_000...70_000]),
                ("-500", "206", file.suffix(500)),
                ("\(file.count)-", "416", nil),
            ] {
                let asked = range.isEmpty ? [] : ["-r", range]
                let answer = try await ClientProcess.run(
                    ["curl", "-sSk", "--http2", "-H", key, "-w", "%{stderr}%{http_code} %{http_version}", url] + asked)
                #expect(answer.errors == "\(status) 2", "\(range): \(answer.errors)")
                if let expected { #expect(answer.output == expected, "\(range)") }
            }
        }
    }

    /// Hashes of decoded frames.
    private static func pictures(_ file: String) async throws -> [String] {
        let made = try await ClientProcess.run(
            ["ffmpeg", "-v", "error", "-i", file, "-map", "0:v", "-f", "framehash", "-hash", "md5", "-"], within: 60)
        return made.text.split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap {
            $0.split(separator: ",").last.map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    /// Several players block on playlists on one connection. Other requests on it are answered at once.
    @Test func waitingPlaylists() async throws {
        let tags = try await HLSLatencyTests.media(20)
        try await TestServer.runSecure({
            $0.hls.always = true
            // Requests wait for up to three segments.
            $0.hls.segmentMs = 8_000
        }) { server in
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            try await HLSLatencyTests.remuxing(server)
            // In pieces: the remuxer's queue is short, and a busy machine would let it drop most of eight seconds.
            try await publisher.send(tags.filter { $0.timestamp < 1_000 })
            let live = try await LiveHLS(server, "cam1")
            for endMs in stride(from: UInt32(2_000), through: 8_000, by: 1_000) {
                // Each time a new player: one that has seen the last segment is held until the next, for eight seconds.
                try await eventually("parts before \(endMs - 1_000) ms") {
                    try await ListedParts.listedMs(LiveHLS(server, "cam1").playlist().text) >= endMs - 1_500
                }
                try await publisher.send(tags.filter { (endMs - 1_000..<endMs).contains($0.timestamp) })
            }
            let path = try live.url.components(separatedBy: server.http).last.orThrow()
            let client = try await HTTP2Client.open(server.secure)
            var stream = 1
            for sentMs in stride(from: UInt32(8_000), to: 16_000, by: 2_000) {
                var playlist = ""
                try await eventually("all but two parts before \(sentMs) ms") {
                    playlist = try await LiveHLS(server, "cam1").playlist().text
                    return ListedParts.listedMs(playlist) >= sentMs - 500
                }
                let next = ListedParts.next(after: playlist)
                // Media on its way completes two parts at most: these requests wait. Then something that exists.
                let parts = [2, 2, 2, 3].map { next.part + $0 }
                let streams = (0..<parts.count).map { stream + 2 * $0 }
                let quick = stream + 2 * parts.count
                try await client.send(
                    zip(streams, parts).flatMap { HTTP2Client.request("\(path)&_HLS_msn=\(next.msn)&_HLS_part=\($1)", on: $0) })
                try await client.get("/healthz", on: quick)
                #expect(try await client.answer(quick).text == "ok\n")
                #expect(streams.allSatisfy { !client.soFar($0).isEnded }, "they wait, and hold nobody up")
                try await publisher.send(tags.filter { (sentMs..<sentMs + 2_000).contains($0.timestamp) })
                var answers: [HTTP2Client.Answer] = []
                for stream in streams { answers.append(try await client.answer(stream)) }
                #expect(answers.allSatisfy { $0.status == 200 }, "\(answers)")
                // Those who waited for the same part have it, and what was listed until they were answered.
                #expect(
                    answers.prefix(3).allSatisfy { answer in
                        let last = ListedParts.next(after: answer.text)
                        return (last.msn, last.part) > (next.msn, next.part + 2)
                    })
                let part = try answers[3].text.firstMatch(of: /#EXT-X-PART:.*URI="([^"]+)"/).orThrow()
                try await client.get("/live/cam1.hls/\(part.1)", on: quick + 2)
                let bytes = try await client.answer(quick + 2)
                #expect(bytes.status == 200 && bytes.body.count > 500)
                try await client.get("/live/cam1.hls/\(part.1)", on: quick + 4, [("range", "bytes=100-199")])
                let range = try await client.answer(quick + 4)
                #expect(range.status == 200 || (range.status == 206 && range.body == Array(bytes.body[100..<200])), "\(range.headers)")
                stream = quick + 6
            }
            #expect(client.goAways.isEmpty)
            await client.close()
            await publisher.close()
        }
    }

    /// A viewer that does not read is dropped and its stream reset; the rest of its connection goes on.
    @Test func aStreamThatIsNotRead() async throws {
        let source = try await Fixture.flv(
            video: Fixture.baseline + ["-b:v", "4M", "-minrate", "4M"], audio: nil, seconds: 12, size: "1280x720")
        try await TestServer.runSecure({ $0.relay.maxBehindMs = 4_000 }) { server in
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                let client = try await HTTP2Client.open(server.secure, window: 100_000)
                client.hold(1)
                try await client.get("/live/cam1.flv", on: 1)
                try await client.get("/live/cam1.flv", on: 3)
                try await server.wait("sessions?role=player") { $0["total"].int == 2 }
                let stalled = try await client.answer(1)
                #expect(stalled.reset != nil && !stalled.isEnded && stalled.status == 200, "cut, not ended")
                #expect(stalled.body.count <= 100_000, "no more than its window")
                #expect(await server.lines.comes("too_slow", "https-flv"))
                let before = client.soFar(3).body.count
                try await eventually("more for the other") { client.soFar(3).body.count > before + 500_000 }
                #expect(!client.soFar(3).isEnded && client.soFar(3).reset == nil)
                try await client.get("/healthz", on: 5)
                #expect(try await client.answer(5).text == "ok\n")
                #expect(try await server.api("sessions?role=player")["total"].int == 1)
                await client.close()
                try await server.wait("sessions?role=player") { $0["total"].int == 0 }
            }
        }
    }

    /// A connection with three viewers stops reading: the server drops the viewers, then closes the connection.
    @Test func aConnectionThatIsNotRead() async throws {
        let source = try await Fixture.flv(
            video: Fixture.baseline + ["-b:v", "4M", "-minrate", "4M"], audio: nil, seconds: 12, size: "1280x720")
        try await TestServer.runSecure({
            $0.relay.maxBehindMs = 4_000
            $0.limits.httpIdleMs = 1_000
            $0.limits.httpConnections = 20
        }) { server in
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                let deaf = try await HTTP2Client.open(server.secure, window: 1 << 24)
                try await deaf.send([1, 3, 5].flatMap { HTTP2Client.request("/live/cam1.\($0 == 5 ? "mp4" : "flv")", on: $0) })
                try await server.wait("sessions?role=player") { $0["total"].int == 3 }
                try await deaf.reads(false)
                try await eventually("their ends") {
                    server.lines.all.count { $0.contains("reason=too_slow") && $0.contains("https-") } == 3
                }
                try await server.wait("sessions?role=player") { $0["total"].int == 0 }
                // Pending bytes are discarded, and the place is free.
                try await eventually("the connection's end") {
                    try await server.api("selfcheck")["ok"].bool == true && Self.connections(to: server.secure) == 0
                }
                await deaf.close()
            }
        }
    }

    /// Counts established connections whose local port, in this process, is `port`. From Linux's /proc/self/net/tcp.
    private static func connections(to port: Int) throws -> Int {
        let own = ":" + String(format: "%04X", port)
        return try String(contentsOfFile: "/proc/self/net/tcp", encoding: .utf8).split(separator: "\n").count { line in
            let fields = line.split(separator: " ")
            return fields.count > 3 && fields[1].hasSuffix(own) && fields[3] == "01"
        }
    }

    /// A viewer on an HTTP/2 stream ends like any other: by session number, with its room, or by leaving.
    @Test func endedOneByOne() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 12)
        try await TestServer.runSecure { server in
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                let client = try await HTTP2Client.open(server.secure)
                for (stream, total) in [(1, 1), (3, 2), (5, 3)] {
                    try await client.get("/live/cam1.\(stream == 3 ? "mp4" : "flv")", on: stream)
                    try await server.wait("sessions?role=player") { $0["total"].int == total }
                }
                // The viewer leaves.
                try await client.send([HTTP2WireFrame(.reset, stream: 5, HTTP2WireFrame.word(8))])
                try await server.wait("sessions?role=player") { $0["total"].int == 2 }
                try await eventually("its line") { server.lines.contains("reason=client_closed") }
                let list = try await server.api("sessions?role=player")["list"].list
                let first = try list.first { $0["transport"].string == "https-flv" }.orThrow()["sessionId"].int.orThrow()
                #expect(try await server.call("DELETE", "sessions/\(first)").status == 200)
                #expect(try await client.answer(1).isEnded)
                let before = client.soFar(3).body.count
                try await eventually("more for the other") { client.soFar(3).body.count > before + 10_000 }
                #expect(try await server.call("POST", "streams/live/cam1/forbid", "{}").status == 200)
                let last = try await client.answer(3)
                #expect(last.isEnded && last.reset == nil)
                try await client.get("/live/cam1.flv", on: 7)
                #expect(try await client.answer(7).status == 403)
                #expect(client.goAways.isEmpty && !client.isClosed)
                let check = try await server.api("selfcheck")
                #expect(check["ok"].bool == true, "\(check)")
                await client.close()
            }
        }
    }
}
