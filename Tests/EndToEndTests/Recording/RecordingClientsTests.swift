import APITestSupport
import EarshotServer
import Foundation
import Media
import Rooms
import ServerConfiguration
import ServerTestSupport
import TestSupport
import Testing

/// Recordings of real pushes: their files, and their state in the API.
@Suite struct RecordingClientsTests {
    private static let policy: @Sendable (inout ServerConfig) -> Void = {
        $0.recording.apps = ["live"]
        $0.rooms.policy.cleanStopMs = 300
    }

    private enum Kind: String, CaseIterable { case bFrames, pictureOnly, soundOnly }

    private static func source(_ kind: Kind, seconds: Int) async throws -> String {
        switch kind {
        case .bFrames: try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: seconds)
        case .pictureOnly: try await Fixture.flv(video: Fixture.baseline, audio: nil, seconds: seconds)
        case .soundOnly: try await Fixture.flv(video: nil, audio: Fixture.aac, seconds: seconds)
        }
    }

    /// A burst of four groups of pictures precedes the registry's start of the recorder. The file has all of them.
    @Test func aBurstIsRecordedFromItsFirstFrame() async throws {
        let clip = try await FLVTag.clip()
        let coded = clip.filter { !$0.isSequenceHeader && $0.kind != .data }
        try await TestServer.run({
            Self.policy(&$0)
            $0.rooms.policy.graceMs = 500
        }) { server in
            let client = try await TagClient.publish(to: server, "live/cam1")
            try await client.send(clip.filter { $0.kind != .data })
            try await server.wait("recordings") { ($0["list"][0]["bytes"].int ?? 0) > 2_000 }
            await client.close()
            let recording = try await server.recordings(1, "finished")[0]
            let recorded = try await PacketList.of(file: try server.recordingPath(recording))
            let pictures = coded.count { $0.kind == .video && $0.payload[1] == 1 }
            #expect(recorded.only("video").count == pictures && recorded.only("audio").count == coded.count { $0.kind == .audio })
        }
    }

    /// From the first frame to the last, bit for bit.
    @Test(arguments: Kind.allCases) private func whatIsPushedIsRecordedByPolicy(_ kind: Kind) async throws {
        let source = try await Self.source(kind, seconds: 10)
        try await TestServer.run(Self.policy) { server in
            let pushed = try ClientProcess(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1"))
            defer { pushed.send(SIGKILL) }
            try await server.wait("rooms/cam1") { $0["liveStatus"].int == 3 }
            let running = try await server.recordings(1, "recording")[0]
            #expect(running["endedAt"].isNull && running["reason"].isNull && running["roomId"].string == "cam1")
            // The unfinished file can already be played.
            try await server.wait("recordings") { ($0["list"][0]["bytes"].int ?? 0) > 2_000 }
            let early = try await server.call("GET", "recordings/\(running["recordingId"].string.orThrow())/file")
            #expect(early.status == 200)
            try await Fixture.withDirectory { directory in
                let path = directory.appendingPathComponent("early.mp4")
                try early.body.write(to: path)
                #expect(try await PacketList.of(file: path.path).count > 0)
            }
            #expect(try await pushed.outcome().status == 0)

            let recording = try await server.recordings(1, "finished")[0]
            #expect(recording["recordingId"].string == running["recordingId"].string)
            #expect(recording["reason"].string == "stream_ended" && recording["isSeekable"].bool == true)
            #expect(recording["droppedFrames"].int == 0)
            #expect(recording["videoCodec"].isNull == (kind == .soundOnly) && recording["audioCodec"].isNull == (kind == .pictureOnly))
            #expect(recording["width"].int == (kind == .soundOnly ? nil : 320))
            let path = try server.recordingPath(recording)
            for track in ["v", "a"] where track == "v" ? kind != .soundOnly : kind != .pictureOnly {
                let (recorded, sent) = (try await Decoded.hashes(path, track), try await Decoded.hashes(source, track))
                #expect(recorded == sent, "\(track)")
            }
            let probed = try await ProbedFile(path)
            #expect(abs(probed.durationMs - 10_000) < 250)
            #expect(abs((recording["duration"].double ?? 0) * 1_000 - Double(probed.durationMs)) < 250)
            #expect(recording["bytes"].int == (try Data(contentsOf: URL(fileURLWithPath: path)).count))
            #expect(try await server.api("recordings")["usedBytes"].int == recording["bytes"].int)

            let files = FileManager.default
            let mode = { (path: String) in try files.attributesOfItem(atPath: path)[.posixPermissions] as? Int }
            #expect(try mode(path) == 0o600)
            #expect(try mode(URL(fileURLWithPath: path).deletingLastPathComponent().path) == 0o700)
            #expect(try mode("\(server.dataDirectory)/recordings") == 0o700)
            let events = try await server.eventKinds("cam1").filter { $0.hasPrefix("record.") }
            #expect(events == ["record.started", "record.ended", "record.finished"])
            // No other files are left.
            #expect(try files.subpathsOfDirectory(atPath: "\(server.dataDirectory)/recordings").count == 3)
        }
    }

    @Test func callsStartAndStopIt() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 30)
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"cam1"}"#, status: 201)
            let early = try await api.refused(409, "POST", "rooms/cam1/record", #"{"action":"start"}"#)
            #expect(early["state"].string == "created" && early["allowed"].list.map(\.string) == ["live", "interrupted"])
            let absent = try await api.refused(409, "POST", "rooms/cam1/record", #"{"action":"stop"}"#)
            #expect(absent["state"].string == "not recording")
            #expect(try await api("POST", "rooms/cam1/record", #"{"action":"start","slot":2}"#).status == 400)
            #expect(try await api("POST", "rooms/cam1/record", #"{"action":"pause"}"#).status == 400)
            #expect(try await api("POST", "rooms/cam1/record").status == 400)
            #expect(try await api("POST", "rooms/nowhere/record", #"{"action":"start"}"#).status == 404)

            try await ClientProcess.during(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1")) { _ in
                try await server.wait("rooms/cam1") { $0["state"].string == "live" }
                #expect(try await api.ok("GET", "rooms/cam1")["liveStatus"].int == 1)
                let started = try await api.ok("POST", "rooms/cam1/record", #"{"action":"start"}"#)
                #expect(started["isRecording"].bool == true && started["name"].string == "cam1")
                let twice = try await api.refused(409, "POST", "rooms/cam1/record", #"{"action":"start"}"#)
                #expect(twice["state"].string == "recording")
                #expect(try await api.ok("GET", "rooms/cam1")["liveStatus"].int == 3)
                let running = try await server.recordings(1, "recording")[0]
                let id = try running["recordingId"].string.orThrow()
                #expect(running["taskId"].string == started["taskId"].string)
                let busy = try await api.refused(409, "DELETE", "recordings/\(id)")
                #expect(busy["state"].string == "recording")
                try await server.wait("recordings/\(id)") { ($0["bytes"].int ?? 0) > 50_000 }
                let stopped = try await api.ok("POST", "rooms/cam1/record", #"{"action":"stop"}"#)
                #expect(stopped["isRecording"].bool == false && stopped["taskId"].string == started["taskId"].string)
                // The file is closed when the call answers.
                #expect(try await api.ok("GET", "recordings/\(id)")["state"].string != "recording")
                #expect(try await api.ok("GET", "rooms/cam1")["liveStatus"].int == 1)
                let finished = try await server.recordings(1, "finished")[0]
                #expect(finished["reason"].string == "stopped")
                let path = try server.recordingPath(finished)
                let (recorded, pushed) = (try await PacketList.of(file: path), try await PacketList.of(file: source))
                for kind in ["video", "audio"] {
                    #expect(recorded.only(kind).count > 20 && recorded.only(kind).isRun(of: pushed.only(kind)), "\(kind)")
                }
                #expect(recorded.only("video").packets[0].isKeyframe)

                // Another start makes another recording.
                let again = try await api.ok("POST", "rooms/cam1/record", #"{"action":"start"}"#)
                #expect(again["taskId"].string != started["taskId"].string)
                _ = try await server.recordings(1, "recording")

                // Deletion removes the file; its row remains as "deleted".
                try await api.ok("DELETE", "recordings/\(id)")
                #expect(!FileManager.default.fileExists(atPath: path))
                #expect(try await api.ok("GET", "recordings")["list"].count == 1)
                #expect(try await api.ok("GET", "recordings?state=deleted")["list"][0]["recordingId"].string == id)
                #expect(try await api.ok("GET", "recordings/\(id)")["bytes"].int == 0)
                #expect(try await api.refused(409, "GET", "recordings/\(id)/file")["state"].string == "deleted")
                #expect(try await api.refused(409, "DELETE", "recordings/\(id)")["state"].string == "deleted")
            }
            for id in ["0123456789abcdef"] {
                #expect(try await api("GET", "recordings/\(id)").status == 404)
                #expect(try await api("GET", "recordings/\(id)/file").status == 404)
                #expect(try await api("DELETE", "recordings/\(id)").status == 404)
            }
            #expect(try await api("GET", "recordings/..%2f..%2fearshot.db/file").status == 400)
            #expect(try await api("GET", "recordings?name=cam1").status == 400)
            #expect(try await api.ok("GET", "recordings?app=live&name=cam1&limit=1")["list"].count == 1)
            #expect(try await api.ok("GET", "recordings?roomId=cam2")["list"].count == 0)
        }
    }

    /// Each file begins at a keyframe and at time zero; together they are the stream.
    @Test func longOnesAreSplit() async throws {
        let source = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 7)
        try await TestServer.run({
            Self.policy(&$0)
            $0.recording.splitDurationMs = 2_000
        }) { server in
            let pushed = try await ClientProcess.run(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1"))
            #expect(pushed.status == 0)
            // 2 s or a little more each: there is a keyframe every second.
            let parts = try await server.recordings(4, "finished")
            #expect(parts.map(\.["part"].int) == [1, 2, 3, 4])
            #expect(parts.map(\.["reason"].string) == ["split", "split", "split", "stream_ended"])
            #expect(Set(parts.map(\.["taskId"].string)).count == 1)
            var video: [String] = []
            var audio: [String] = []
            for part in parts {
                let path = try server.recordingPath(part)
                let packets = try await PacketList.of(file: path)
                #expect(packets.only("video").packets.first?.isKeyframe == true)
                video += packets.only("video").hashes
                audio += packets.only("audio").hashes
                let probed = try await ProbedFile(path)
                #expect(probed.startMs < 150, "\(probed)")
                #expect(part["part"].int == 4 || abs(probed.durationMs - 2_000) < 200, "\(probed)")
            }
            let whole = try await PacketList.of(file: source)
            #expect(video == whole.only("video").hashes)
            #expect(audio == whole.only("audio").hashes)
            let events = try await server.eventKinds("cam1").filter { $0.hasPrefix("record.") }
            #expect(events.filter { $0 == "record.finished" }.count == 4)
            #expect(events.filter { $0 == "record.started" }.count == 1 && events.filter { $0 == "record.ended" }.count == 1)
        }
    }

    @Test func bigOnesAreSplit() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: nil, seconds: 5)
        try await TestServer.run({
            Self.policy(&$0)
            $0.recording.splitBytes = 30_000
        }) { server in
            #expect(try await ClientProcess.run(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1")).status == 0)
            try await server.wait("rooms/cam1/events") { $0["list"].list.contains { $0["kind"].string == "record.ended" } }
            let ended = try await server.api("rooms/cam1/events")["list"].list.first { $0["kind"].string == "record.ended" }
            let count = try (ended?["data"]["files"].int).orThrow()
            #expect(count >= 3)
            let parts = try await server.recordings(count, "finished")
            var video: [String] = []
            for part in parts { video += try await PacketList.of(file: server.recordingPath(part)).hashes }
            #expect(try await video == PacketList.of(file: source).hashes)
        }
    }

    /// The same codecs continue in the same file, with a pause for the absence; other codecs start the next file.
    @Test func aPublisherThatReturnsGoesOn() async throws {
        let first = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 3)
        let other = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 2, size: "160x120")
        try await TestServer.run({
            Self.policy(&$0)
            $0.rooms.policy.cleanStopMs = 10_000
        }) { server in
            let url = "\(server.rtmp)/live/cam1"
            for source in [first, first, other] {
                let pushed = try await ClientProcess.run(FFmpeg.push(source, to: url))
                #expect(pushed.status == 0, "\(pushed.errors)")
            }
            let parts = try await server.recordings(2, "finished")
            #expect(parts.map(\.["reason"].string) == ["media_changed", "stream_ended"])
            #expect(parts.map(\.["width"].int) == [320, 160])
            let (one, two) = (try await PacketList.of(file: first), try await PacketList.of(file: other))
            let recorded = try await PacketList.of(file: server.recordingPath(parts[0]))
            #expect(recorded.only("video").hashes == one.only("video").hashes + one.only("video").hashes)
            // A stream begins with its first picture, also after a return: sound before it is left out. Silence fills an absence of up to 200 ms.
            let (sound, sent) = (recorded.only("audio").hashes, one.only("audio").hashes)
            let heard = sound.filter(sent.contains)
            #expect(
                (0...2).contains { first in (0...2).contains { heard == Array(sent.dropFirst(first) + sent.dropFirst($0)) } },
                "\(sound.count) of twice \(sent.count): \(sound.map { sent.firstIndex(of: $0) ?? -1 })")
            let silence = sound.indices.filter { !sent.contains(sound[$0]) }
            #expect(silence.count <= 12 && silence.allSatisfy { (sent.count - 2..<sent.count + silence.count).contains($0) }, "\(silence)")
            #expect(recorded.only("video").orderProblem == nil)
            let last = try await PacketList.of(file: server.recordingPath(parts[1]))
            // The first picture after a change also carries its parameter sets.
            #expect(last.only("video").hashes.dropFirst() == two.only("video").hashes.dropFirst())
            #expect(last.only("video").hashes.count == two.only("video").hashes.count)
            #expect(try await ProbedFile(server.recordingPath(parts[1])).startMs < 150)
        }
    }

    /// After a stop by call, the policy does not record the stream's returning publisher.
    @Test func aStopHoldsAsLongAsTheStream() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: nil, seconds: 3)
        try await TestServer.run({
            Self.policy(&$0)
            // Two seconds are too few to start another ffmpeg on a busy machine.
            $0.rooms.policy.cleanStopMs = 12_000
        }) { server in
            let url = "\(server.rtmp)/live/cam1"
            let push = try ClientProcess(FFmpeg.push(source, to: url))
            defer { push.send(SIGKILL) }
            try await server.wait("rooms/cam1") { $0["liveStatus"].int == 3 }
            #expect(try await server.record("cam1", "stop").status == 200)
            #expect(try await push.outcome().status == 0)
            #expect(try await ClientProcess.run(FFmpeg.push(source, to: url)).status == 0)
            try await server.wait("rooms/cam1") { $0["state"].string == "expired" }
            #expect(try await server.recordings().count <= 1)
            // The next stream of that name is another one.
            #expect(try await ClientProcess.run(FFmpeg.push(source, to: url)).status == 0)
            try await eventually("the next stream's recording") {
                try await server.recordings("?state=finished").contains { $0["reason"].string == "stream_ended" }
            }
        }
    }

    /// Names that file systems would interpret, and one with a slash.
    @Test func namesOfStreamsAreNoPaths() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: nil, seconds: 2)
        try await TestServer.run(Self.policy) { server in
            for name in ["a/b", "..x", "%252e%252e", "c d"] {
                let url = "\(server.rtmp)/live/\(name.replacingOccurrences(of: " ", with: "%20"))"
                #expect(try await ClientProcess.run(FFmpeg.push(source, to: url)).status == 0, "\(name)")
            }
            let all = try await server.recordings(4, "finished")
            for recording in all {
                let file = try recording["file"].string.orThrow()
                #expect(file.split(separator: "/").count == 3 && !file.contains(".."), "\(file)")
                #expect(try await ProbedFile(server.recordingPath(recording)).codecs == ["h264"])
            }
            #expect(Set(all.map(\.["file"].string)).count == 4)
        }
    }
}
