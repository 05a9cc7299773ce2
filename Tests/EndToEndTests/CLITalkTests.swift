import Foundation
import RTMPTestSupport
import ServerTestSupport
import SignalCheck
import TestSupport
import Testing

/// `earshot talk`, against a real server.
@Suite struct CLITalkTests {
    /// Speaks from a pipe and listens into one.
    @Test(.timeLimit(.minutes(4))) func pipes() async throws {
        try await TalkRoom.run { room in
            try await Fixture.withDirectory { directory in
                let cli = try await room.server.cli(in: directory)
                let tone = directory.appendingPathComponent("tone.ogg").path
                let made = try await ClientProcess.run(
                    // Long enough for a slow start of who listens.
                    ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "sine=900", "-t", "20", "-c:a", "libopus", tone])
                #expect(made.status == 0, "\(made.errors)")
                let speak = try cli.line(["talk", "speak", "r1", "--as", "ops", "-"])
                let speaker = try ClientProcess(["bash", "-c", #"cat "$1" | env "${@:2}""#, "pipe", tone] + speak)
                try await eventually("the voice of ops") { try await room.member("ops")["speaking"].bool == true }
                let raw = directory.appendingPathComponent("heard.f32").path
                let listen = try cli.line(["talk", "listen", "r1", "--seconds", "2"])
                let heard = try await ClientProcess.run(
                    ["bash", "-c", #"env "${@:2}" | ffmpeg -v error -i - -f f32le "$1""#, "pipe", raw] + listen)
                #expect(heard.status == 0, "\(heard.errors)")
                let levels = Tone.levels(try RawSamples.read(URL(fileURLWithPath: raw)), 900)
                #expect(levels.count >= 19 && levels.sorted()[levels.count / 2] > -25, "\(levels)")
                let spoken = try await speaker.outcome()
                #expect(spoken.status == 0 && spoken.errors.contains("20.0 seconds spoken"), "\(spoken.errors)")
            }
        }
    }

    @Test(.timeLimit(.minutes(4))) func speakListenShow() async throws {
        try await TalkRoom.run { room in
            try await Fixture.withDirectory { directory in
                let cli = try await room.server.cli(in: directory)
                let tone = directory.appendingPathComponent("tone.mp3").path
                // Long enough for a slow start of who listens; a word for those whom nobody hears.
                let word = directory.appendingPathComponent("word.mp3").path
                for (file, seconds) in [(tone, "20"), (word, "2")] {
                    let made = try await ClientProcess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "sine=700", "-t", seconds, file])
                    #expect(made.status == 0, "\(made.errors)")
                }
                let heard = directory.appendingPathComponent("heard.wav").path
                let speaker = try ClientProcess(try cli.line(["talk", "speak", "r1", "--as", "ops", tone, "--role", "host"]))
                try await eventually("the voice of ops") { try await room.member("ops")["speaking"].bool == true }
                try await eventually("ops to be shown") {
                    let shown = try await cli("talk", "show", "r1")
                    return shown.status == 0 && shown.text.contains("ops") && shown.text.contains("host, AAC, speaking")
                }
                let listened = try await cli("talk", "listen", "r1", "--seconds", "2", "-o", heard)
                #expect(listened.status == 0 && listened.errors.contains("seconds heard"), "\(listened.errors)")
                let spoken = try await speaker.outcome()
                #expect(spoken.status == 0 && spoken.errors.contains("20.0 seconds spoken"), "\(spoken.errors)")
                let raw = directory.appendingPathComponent("heard.f32").path
                let decoded = try await ClientProcess.run(["ffmpeg", "-v", "error", "-i", heard, "-f", "f32le", raw])
                #expect(decoded.status == 0, "\(decoded.errors)")
                let levels = Tone.levels(try RawSamples.read(URL(fileURLWithPath: raw)), 700)
                #expect(levels.count >= 19 && levels.sorted()[levels.count / 2] > -25, "\(levels)")
                // Impossible requests are explained.
                let nowhere = try await cli("talk", "listen", "nowhere", "--seconds", "1", "-o", heard)
                #expect(nowhere.status == 3 && nowhere.errors.contains("room"), "\(nowhere.errors)")
                let noFile = try await cli("talk", "speak", "r1", "--as", "ops", "\(directory.path)/none.mp3")
                #expect(noFile.status == 1 && noFile.errors.contains("none.mp3"), "\(noFile.errors)")
                let mute = try await cli("talk", "speak", "r1", "--as", "mix", word)
                #expect(mute.status == 1 && mute.errors.contains("mix"), "\(mute.errors)")
                #expect(try await room.post("members/mut/mute", #"{"muted":true}"#).status == 200)
                let unheard = try await cli("talk", "speak", "r1", "--as", "mut", word)
                #expect(unheard.status == 4 && unheard.errors.contains("nobody heard it: mut is muted"), "\(unheard.errors)")
                let nobody = try await cli("talk", "listen", "r1", "--voice", "nobody", "--seconds", "1", "-o", heard)
                #expect(nobody.status == 1 && nobody.errors.contains("does anybody speak there"), "\(nobody.errors)")
                #expect(try await room.server.call("POST", "rooms", #"{"roomId":"early"}"#).status == 201)
                let early = try await cli("talk", "listen", "early", "--seconds", "10", "-o", heard)
                #expect(early.status == 4 && early.errors.contains("created") && !early.errors.contains("stream name"), "\(early.errors)")
                let counters = try await room.server.api("counters")
                #expect(counters["talkEncodes"].int ?? 0 > 50 && counters["talkUnderruns"].int != nil && counters["talkMixes"].int == 0)
            }
        }
    }
}
