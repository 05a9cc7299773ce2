import FFmpeg
import Foundation
import Media
import NIOCore
import RTMP
import RTMPTestSupport
import Relay
import ServerTestSupport
import SignalCheck
import TestSupport
import Testing

/// The sound of a talk channel.
@Suite struct TalkMixTests {
    /// Three ffmpeg publishers with three tones, and stock players: each talker hears the two others, and a listener hears all.
    @Test(.timeLimit(.minutes(5))) func everybodyHearsTheOthers() async throws {
        try await TalkRoom.run { room in
            try await Fixture.withDirectory { directory in
                let tones = ["ann": 400, "ben": 900, "cat": 1_700]
                var talkers: [ClientProcess] = []
                for (name, tone) in tones {
                    talkers.append(
                        try ClientProcess([
                            "ffmpeg", "-v", "error", "-re", "-f", "lavfi", "-i", "sine=\(tone):r=48000", "-t", "240", "-c:a", "aac", "-f",
                            "flv",
                            "\(room.server.rtmp)/talk/r1/\(name)",
                        ]))
                }
                try await eventually("three voices") { try await room.talk()["members"].list.count { $0["speaking"].bool == true } == 3 }
                func dry() async throws -> Int { try await room.talk()["members"].list.reduce(0) { $0 + ($1["underruns"].int ?? 0) } }
                let before = try await dry()
                let mixes = ["mix", "mix-ann", "mix-ben", "mix-cat", "mix-dan"]
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for mix in mixes {
                        let file = directory.appendingPathComponent("\(mix).f32").path
                        group.addTask {
                            let played = try await ClientProcess.run(
                                [
                                    "ffmpeg", "-v", "error", "-i", "\(room.server.rtmp)/talk/r1/\(mix)", "-t", "4", "-f", "f32le", "-ac",
                                    "1", "-ar",
                                    "48000", file,
                                ], within: 100)
                            #expect(played.status == 0, "\(mix): \(played.errors)")
                        }
                    }
                    try await group.waitForAll()
                }
                // The server cannot mix late input in time.
                let wasLate = try await dry() > before || room.stalls > 0
                for mix in mixes {
                    let samples = Array(try RawSamples.read(directory.appendingPathComponent("\(mix).f32")).suffix(2 * 48_000))
                    #expect(samples.count == 2 * 48_000, "\(mix)")
                    // Half of the time: a talker that its machine holds up pauses.
                    let levels = tones.mapValues { Tone.levels(samples, Double($0)).sorted() }.mapValues { $0[$0.count / 2] }
                    let others = levels.filter { mix != "mix-\($0.key)" }
                    #expect(others.values.allSatisfy { $0 > -35 }, "\(mix): \(levels)")
                    if let own = levels.first(where: { mix == "mix-\($0.key)" }), let least = others.values.min() {
                        #expect(own.value < least - 40, "\(mix): \(levels)")
                    }
                    #expect(wasLate || Signal.longestSilence(samples) < 480, "\(mix): \(Signal.longestSilence(samples)) samples of silence")
                }
                for talker in talkers { talker.send(SIGTERM) }
                for talker in talkers { _ = try await talker.outcome() }
            }
        }
    }

    /// Talkers come, leave and return while somebody listens: timestamps stay even, and all speech is heard.
    @Test(.timeLimit(.minutes(5))) func timesGoOnThroughComingAndGoing() async throws {
        try await TalkRoom.run { room in
            let ear = try await room.listener("mix")
            var latenesses: [PacedSender.Lateness] = []
            for round in 0..<4 {
                let client = try await room.talker("ann")
                async let other: Void = Self.passBy(room, "guest\(round)")
                latenesses.append(try await Microphone(client).speak(seconds: 1.5, Tone.sine(600)))
                if round % 2 == 0 { await client.close() } else { try await client.reset() }
                try await other
                try await eventually("ann to be gone") { try await room.member("ann").names.isEmpty }
            }
            let counters = try await room.server.api("counters")
            let (dry, dropped) = (counters["talkUnderruns"].int ?? 0, (counters["talkDroppedMs"].double ?? 0) / 1_000)
            let heard = try Heard(ear)
            // 1,024 samples are 21.33 ms.
            try room.expectEven(ear)
            #expect(heard.samples.count > 6 * 48_000)
            // Ann spoke four times for a second and a half. Each underrun adds up to 60 ms of concealment.
            let voiced = Tone.seconds(heard.samples, 600)
            let why = "\(voiced) s, \(dropped) s dropped, \(dry) times dry, \(room.stalls) stalls, \(latenesses)"
            #expect(voiced + dropped + Double(room.stalls) > 5 && voiced < 6.4 + 0.1 * Double(dry), "\(why)")
            // Silence is before, between and after her four turns, and within them only at underruns.
            let silences = Self.silences(heard.samples, atLeast: 20 * 48)
            #expect(silences.count <= 5 + dry, "\(silences.map { ($0.lowerBound / 48, $0.count / 48) }) ms; \(why)")
            await ear.close()
        }
    }

    /// Runs of at least `count` silent samples.
    private static func silences(_ samples: [Float], atLeast count: Int) -> [Range<Int>] {
        var runs: [Range<Int>] = []
        var start = 0
        for index in 0...samples.count where index == samples.count || abs(samples[index]) >= 1e-3 {
            if index - start >= count { runs.append(start..<index) }
            start = index + 1
        }
        return runs
    }

    private static func passBy(_ room: TalkRoom<TestServer>, _ name: String) async throws {
        let client = try await room.talker(name)
        try await Microphone(client).speak(seconds: 0.5, Tone.sine(1_500, 0.1))
        await client.close()
    }

    /// Stock clients of librtmp: gstreamer speaks, rtmpdump listens.
    @Test(.timeLimit(.minutes(5))) func librtmpClients() async throws {
        try await TalkRoom.run { room in
            try await Fixture.withDirectory { directory in
                let talker = try ClientProcess([
                    "gst-launch-1.0", "-q", "audiotestsrc", "is-live=true", "freq=700", "!", "audio/x-raw,rate=44100,channels=2", "!",
                    "avenc_aac", "!", "aacparse", "!", "flvmux", "streamable=true", "!", "rtmpsink",
                    "location=\(room.server.rtmp)/talk/r1/gst live=1",
                ])
                try await eventually("gstreamer's voice") { try await room.member("gst")["speaking"].bool == true }
                let file = directory.appendingPathComponent("mix.flv").path
                let dump = try ClientProcess(["rtmpdump", "-q", "-v", "--live", "-r", "\(room.server.rtmp)/talk/r1/mix-dump", "-o", file])
                try await eventually("four seconds of rtmpdump's file") {
                    // A mix has 8 kB a second, silence much less.
                    (try? FileManager.default.attributesOfItem(atPath: file)[.size] as? Int).map { $0 > 40_000 } ?? false
                }
                dump.send(SIGINT)
                _ = try await dump.outcome()
                talker.send(SIGTERM)
                _ = try await talker.outcome()
                let raw = directory.appendingPathComponent("mix.f32").path
                _ = try await ClientProcess.run(["ffmpeg", "-v", "error", "-i", file, "-f", "f32le", "-ar", "48000", raw], within: 30)
                let samples = try RawSamples.read(URL(fileURLWithPath: raw))
                #expect(samples.count > 2 * 48_000)
                #expect(Tone.levels(samples, 700).last ?? -100 > -25)
            }
        }
    }

    /// Every codec that a talker may send is heard at its pitch, at various rates.
    @Test(
        .timeLimit(.minutes(5)),
        arguments: [
            ["-c:a", "libmp3lame", "-ar", "44100"], ["-c:a", "nellymoser", "-ar", "16000"],
            ["-c:a", "pcm_s16le", "-ar", "5512"], ["-c:a", "adpcm_swf", "-ar", "11025"], ["-c:a", "libspeex", "-ar", "16000"],
            ["-c:a", "pcm_alaw", "-ar", "8000"], ["-c:a", "pcm_mulaw", "-ar", "8000"], ["-c:a", "aac", "-ar", "16000"],
            ["-c:a", "aac", "-ar", "96000", "-ac", "2"], ["-c:a", "aac", "-ar", "7350"],
            ["-c:a", "libmp3lame", "-ar", "11025", "-ac", "2"],
        ])
    func codecs(_ codec: [String]) async throws {
        try await TalkRoom.run { room in
            let ear = try await room.listener("mix")
            let talker = try ClientProcess(
                ["ffmpeg", "-v", "error", "-re", "-f", "lavfi", "-i", "sine=500:r=48000", "-t", "4", "-ac", "1"] + codec
                    + ["-f", "flv", "\(room.server.rtmp)/talk/r1/ann"])
            let outcome = try await talker.outcome(within: 100)
            #expect(outcome.status == 0, "\(outcome.errors)")
            try await eventually("half a second of \(codec)") {
                let heard = try Heard(ear).samples
                return stride(from: 0, to: heard.count - 24_000, by: 4_800).contains {
                    Signal.level(Array(heard[$0..<($0 + 24_000)]), frequency: 500) > -30
                }
            }
            await ear.close()
        }
    }

    /// A listener that announces Opus gets it, beside others that do not.
    @Test(.timeLimit(.minutes(5))) func opusForThoseWhoCan() async throws {
        try await TalkRoom.run { room in
            let opus = try await room.listener("mix", extra: [.init(name: "fourCcList", value: .strictArray([.string("Opus")]))])
            let plain = try await room.listener("mix")
            let client = try await room.talker("ann")
            try await Microphone(client).speaking(Tone.sine(800)) {
                for (ear, codec) in [(opus, "Opus"), (plain, "AAC")] {
                    try await eventually("a second in \(codec)") { try Heard(ear).voiced(800).count { $0 } >= 10 }
                    #expect(try Heard(ear).codec == codec, "\(ear.media().count) messages; \(room.server.lines.all.suffix(5))")
                    try room.expectEven(ear, 19...22)
                    await ear.close()
                }
            }
            await client.close()
            try await eventually("a self-check that is right") { try await room.server.api("selfcheck")["ok"].bool == true }
        }
    }

    /// A listener whose map says that it decodes Opus gets it; one that only encodes or forwards it does not, whatever its list says.
    @Test(.timeLimit(.minutes(5)), arguments: [(1, "Opus"), (2, "AAC"), (3, "Opus"), (6, "AAC")])
    func opusByTheMask(_ mask: Int, _ codec: String) async throws {
        try await TalkRoom.run { room in
            let map = AMF0Property(name: "audioFourCcInfoMap", value: .object([.init(name: "Opus", value: .number(Double(mask)))]))
            let list = AMF0Property(name: "fourCcList", value: .strictArray([.string("Opus")]))
            let ear = try await room.listener("mix", extra: [list, map])
            try await eventually("sound") { try Heard(ear).messages.count > 5 }
            #expect(try Heard(ear).codec == codec)
            await ear.close()
        }
    }

    /// Many listeners cost one encode a tick; each listener that talks adds one.
    @Test(.timeLimit(.minutes(5)), arguments: [5, 50]) func encodesFollowTheMixesNotTheListeners(listeners: Int) async throws {
        try await TalkRoom.run { room in
            var ears: [RawClient] = []
            for index in 0..<listeners { ears.append(try await room.listener("mix-l\(index)")) }
            // Silence is not encoded, so the count begins and ends with it.
            func encodesInSilence() async throws -> (encodes: Int, messages: Int) {
                var last = (encodes: -1, messages: 0)
                try await eventually("a second in which nothing is encoded") {
                    let now = (encodes: try await room.talk()["encodes"].int ?? -1, messages: ears[0].media().count)
                    if now.encodes != last.encodes { last = now }
                    return now.messages > last.messages + 47
                }
                return (last.encodes, ears[0].media().count)
            }
            let before = try await encodesInSilence()
            let client = try await room.talker("ann")
            try await Microphone(client).speaking(Tone.sine(500)) {
                try await eventually("two seconds of ann's voice") { try Heard(ears[0]).voiced(500).count { $0 } >= 20 }
                let talk = try await room.talk()
                #expect(talk["mixes"].int == 1 && talk["listening"].int == listeners)
            }
            let after = try await encodesInSilence()
            let (encodes, ticks) = (after.encodes - before.encodes, after.messages - before.messages)
            // Two seconds are 94 ticks. A message may arrive after its encode was counted.
            #expect(encodes >= 90 && encodes <= ticks + 5, "\(encodes) encodes in \(ticks) ticks for \(listeners) listeners")
            for ear in ears { await ear.close() }
            await client.close()
        }
    }

    /// Silence is encoded once and then repeated.
    @Test(.timeLimit(.minutes(5)), arguments: ["AAC", "Opus"]) func silenceCostsNothing(_ codec: String) async throws {
        try await TalkRoom.run { room in
            let ear = try await room.listener(
                "mix", extra: codec == "AAC" ? [] : [.init(name: "fourCcList", value: .strictArray([.string(codec)]))])
            try await eventually("silence to be sent") { ear.media().count > 40 }
            let before = try await room.talk()["encodes"].int ?? 0
            let count = ear.media().count
            try await eventually("a second more") { ear.media().count > count + 47 }
            #expect(try await room.talk()["encodes"].int == before)
            let heard = try Heard(ear)
            #expect(heard.codec == codec && Signal.rms(heard.samples) < -80, "\(Signal.rms(heard.samples)) dB")
            try room.expectEven(ear, codec == "AAC" ? 21...22 : 20...20)
            await ear.close()
        }
    }
}
