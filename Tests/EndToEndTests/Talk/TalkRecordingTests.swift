import Foundation
import RTMPTestSupport
import ServerTestSupport
import SignalCheck
import TestSupport
import Testing

@testable import EarshotServer
@testable import ServerConfiguration
@testable import Streaming
@testable import Support
@testable import Talkback

/// A room's talk, in a file beside its recording.
@Suite struct TalkRecordingTests {
    /// Recordings start and stop while somebody listens throughout. The room ends during the last one, and its channel with it.
    @Test(.timeLimit(.minutes(5))) func everyRecordingHasItsTalk() async throws {
        let clip = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 60)
        try await TestServer.run({
            TalkRoom<TestServer>.patient(&$0)
            $0.recording.talk = true
        }) { server in
            let camera = try ClientProcess(FFmpeg.push(clip, to: "\(server.rtmp)/live/r1"))
            try await server.wait("rooms/r1") { $0["state"].string == "live" }
            let ear = try await RawClient.connected(server.addresses.rtmp.port, app: "talk")
            try await ear.play("r1/mix", on: ear.createStream())
            for round in 1...3 {
                #expect(try await server.call("POST", "rooms/r1/record", #"{"action":"start"}"#).status == 200)
                try await server.wait("recordings?app=talk") { $0["list"].list.filter { $0["state"].string == "recording" }.count == 1 }
                guard round < 3 else { break }
                #expect(try await server.call("POST", "rooms/r1/record", #"{"action":"stop"}"#).status == 200)
                try await server.wait("recordings?app=talk") { $0["list"].list.filter { $0["state"].string == "finished" }.count == round }
            }
            #expect(try await server.call("POST", "rooms/r1/close").status == 200)
            try await server.wait("recordings?roomId=r1") { $0["list"].list.allSatisfy { $0["state"].string == "finished" } }
            try await eventually("no channel that ticks") { server.server.parts.talk.ticking == 0 }
            await ear.close()
            camera.send(SIGTERM)
            _ = try await camera.outcome()
        }
    }

    @Test(.timeLimit(.minutes(5))) func theTalkIsRecordedBeside() async throws {
        let clip = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 60)
        try await TestServer.run({ $0.recording.talk = true }) { server in
            let camera = try ClientProcess(FFmpeg.push(clip, to: "\(server.rtmp)/live/r1"))
            try await server.wait("rooms/r1") { $0["state"].string == "live" }
            #expect(try await server.call("POST", "rooms/r1/record", #"{"action":"start"}"#).status == 200)
            try await server.wait("recordings?roomId=r1") { $0["list"].count == 2 }
            let ann = try await RawClient.connected(server.addresses.rtmp.port, app: "talk")
            try await ann.publish("r1/ann", on: ann.createStream())
            let lateness = try await Microphone(ann).speak(seconds: 4, Tone.sine(600))
            // Received sound is played or dropped before the recording ends.
            var member = JSON(nil)
            try await eventually("ann's buffer to be empty") {
                member = try await server.api("rooms/r1/talk")["members"][0]
                return member["bufferMs"].double == 0
            }
            #expect(try await server.call("POST", "rooms/r1/record", #"{"action":"stop"}"#).status == 200)
            try await server.wait("recordings?roomId=r1") { $0["list"].list.allSatisfy { $0["state"].string == "finished" } }
            let talk = try await server.api("recordings?app=talk")["list"].list
            #expect(talk.count == 1 && talk[0]["name"].string == "r1/mix" && talk[0]["roomId"].string == "r1")
            #expect(talk[0]["duration"].double ?? 0 > 4, "\(talk)")
            let file = "\(server.dataDirectory)/recordings/\(try talk[0]["file"].string.orThrow())"
            let raw = "\(file).f32"
            let decoded = try await ClientProcess.run(
                ["ffmpeg", "-v", "error", "-i", file, "-f", "f32le", "-ar", "48000", raw], within: 30)
            #expect(decoded.status == 0 && decoded.errors.isEmpty, "\(decoded.errors)")
            // The file has everything except what is counted as dropped. Each underrun adds up to 60 ms of concealment.
            let voiced = Tone.seconds(try RawSamples.read(URL(fileURLWithPath: raw)), 600)
            let (dropped, dry) = ((member["droppedMs"].double ?? 0) / 1_000, member["underruns"].double ?? 0)
            let why = "\(voiced) of 4 s, \(dropped) s dropped, \(dry) times dry; \(lateness)"
            #expect(member["lostMs"].double == 0 && voiced > 2, "\(why)")
            #expect(voiced + dropped > 3.8 - 0.06 * dry && voiced + dropped < 4.1 + 0.1 * dry, "\(why)")
            // Without listeners or a recording the mix ends when ann has gone.
            await ann.close()
            try await eventually("the mix to be gone") {
                try await !server.api("streams")["list"].list.contains { $0["name"].string == "r1/mix" }
            }
            camera.send(SIGTERM)
            _ = try await camera.outcome()
        }
    }
}
