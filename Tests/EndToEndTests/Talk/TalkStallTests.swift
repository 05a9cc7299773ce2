import Foundation
import RTMP
import RTMPTestSupport
import ServerTestSupport
import SignalCheck
import TestSupport
import Testing

@testable import EarshotServer

/// A server stalls again and again while a room's talk is recorded.
@Suite(.serialized) struct TalkStallTests {
    @Test(.timeLimit(.minutes(5))) func theRecordingHasAllTheSound() async throws {
        let clip = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 90)
        try await Fixture.withDirectory { directory in
            let config = directory.appendingPathComponent("earshot.yaml")
            try "recording:\n  talk: on\n".write(to: config, atomically: true, encoding: .utf8)
            try await EarshotProcess.serve(data: directory, ["--config", config.path]) { server in
                let port = try Int(server.rtmp.split(separator: ":").last.orThrow()).orThrow()
                func api(_ method: String, _ path: String, _ body: String? = nil) async throws -> JSON {
                    try await HTTPAnswer.call(
                        method, "\(server.http)/api/v1/\(path)", body: body.map { Data($0.utf8) }, token: server.token
                    ).json()["data"]
                }
                let camera = try ClientProcess(FFmpeg.push(clip, to: "\(server.rtmp)/live/r1"))
                defer { camera.send(SIGKILL) }
                try await eventually("the room") { try await api("GET", "rooms/r1")["state"].string == "live" }
                let ear = try await RawClient.connected(port, app: "talk")
                try await ear.play("r1/mix-bob", on: ear.createStream())
                _ = try await api("POST", "rooms/r1/record", #"{"action":"start"}"#)
                try await eventually("two recordings") { try await api("GET", "recordings?roomId=r1")["list"].count == 2 }
                let ann = try await RawClient.connected(port, app: "talk")
                try await ann.publish("r1/ann", on: ann.createStream())
                async let speaking = Microphone(ann).speak(seconds: 14, Tone.sine(600))
                for _ in 0..<3 {
                    try await Task.sleep(for: .seconds(1.5))
                    server.process.send(SIGSTOP)
                    try await Task.sleep(for: .seconds(2))
                    server.process.send(SIGCONT)
                }
                let lateness = try await speaking
                var talk = JSON(nil)
                try await eventually("ann's buffer to be empty") {
                    talk = try await api("GET", "rooms/r1/talk")["members"].list.first { $0["userId"].string == "ann" }.orThrow()
                    return talk["bufferMs"].double == 0
                }
                #expect(talk["lostMs"].double == 0 && talk["delayMs"].double ?? -1 >= 0, "\(talk)")
                _ = try await api("POST", "rooms/r1/record", #"{"action":"stop"}"#)
                try await eventually("the files") {
                    try await api("GET", "recordings?roomId=r1")["list"].list.allSatisfy { $0["state"].string == "finished" }
                }
                let recording = try await api("GET", "recordings?app=talk")["list"].list.first.orThrow()
                let file = directory.appendingPathComponent("data/recordings/\(try recording["file"].string.orThrow())").path
                let raw = "\(file).f32"
                let decoded = try await ClientProcess.run(
                    ["ffmpeg", "-v", "error", "-i", file, "-f", "f32le", "-ar", "48000", raw], within: 30)
                #expect(decoded.status == 0 && decoded.errors.isEmpty, "\(decoded.errors)")
                let samples = try RawSamples.read(URL(fileURLWithPath: raw))
                // Sound that a late sender sent in bursts may have been dropped, and is counted.
                let voiced = Double(Tone.levels(samples, 600).count { $0 > -20 }) / 10
                let dropped = (talk["droppedMs"].double ?? 0) / 1_000
                let pauses = 0.2 * Double(lateness.pauses)
                #expect(voiced + dropped + pauses >= 13.5 && voiced > 10, "\(voiced) of 14 s, \(dropped) s dropped; \(lateness)")
                // The samples last as long as the timestamps say.
                let seconds = Double(samples.count) / 48_000
                #expect(abs(seconds - (recording["duration"].double ?? 0)) < 0.5, "\(seconds) of \(recording)")
                // The listener missed the stalls, and nothing more.
                let heard = try Heard(ear).levels(of: 600).count { $0 > -20 }
                #expect((40...110).contains(heard), "\(heard) tenths of a second; \(lateness)")
                #expect(server.process.errorsSoFar.contains("stood still"))
                for client in [ear, ann] { await client.close() }
            }
        }
    }

    /// A talker that keeps sending during a stall still has the floor afterwards.
    @Test(.timeLimit(.minutes(5))) func theFloorOutlivesAStall() async throws {
        try await Fixture.withDirectory { directory in
            let config = directory.appendingPathComponent("earshot.yaml")
            try "talk:\n  mode: ptt\n  idle: 8s\n".write(to: config, atomically: true, encoding: .utf8)
            try await EarshotProcess.serve(data: directory, ["--config", config.path]) { server in
                let port = try Int(server.rtmp.split(separator: ":").last.orThrow()).orThrow()
                func api(_ path: String) async throws -> JSON {
                    try await HTTPAnswer.call("GET", "\(server.http)/api/v1/\(path)", token: server.token).json()["data"]
                }
                let camera = try await RawClient.publishing(port, "r1")
                camera.send(.video, SyntheticTag.videoHeader)
                camera.send(.video, SyntheticTag.video(1, isKeyframe: true, bytes: 2_000))
                try await eventually("the room") { try await api("rooms/r1")["state"].string == "live" }
                let ann = try await RawClient.connected(port, app: "talk")
                try await ann.publish("r1/ann", on: ann.createStream())
                try await Microphone(ann).speaking(Tone.sine(600)) {
                    try await eventually("the floor") { try await api("rooms/r1/talk")["holders"].list.map(\.string) == ["ann"] }
                    server.process.send(SIGSTOP)
                    // Longer than a silent holder keeps the floor.
                    try await Task.sleep(for: .seconds(10))
                    server.process.send(SIGCONT)
                    try await eventually("the end of the stall") { server.process.errorsSoFar.contains("stood still") }
                    try await eventually("ann's voice") { try await api("rooms/r1/talk")["members"][0]["speaking"].bool == true }
                    let floor = try await api("rooms/r1/events?limit=1000")["list"].list.compactMap { $0["kind"].string }.filter {
                        $0.hasPrefix("talk.floor.")
                    }
                    #expect(floor == ["talk.floor.granted"])
                }
                for client in [ann, camera] { await client.close() }
            }
        }
    }
}
