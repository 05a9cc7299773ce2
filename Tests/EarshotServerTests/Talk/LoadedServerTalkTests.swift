import Foundation
import SignalCheck
import Testing

/// What depends on every message being sent when it is due: run alone, as ``LoadedServerTests`` is.
@Suite(.serialized) struct LoadedServerTalkTests {
    /// A voice made by espeak-ng comes out as it went in.
    @Test(.timeLimit(.minutes(2))) func speechSurvives() async throws {
        try await Fixture.withDirectory { directory in
            let file = directory.appendingPathComponent("speech.wav").path
            let text = "The quick brown fox jumps over the lazy dog, and then it sleeps for a while under the old tree near the river."
            let spoken = try await ClientProcess.run(["espeak-ng", "-w", file, text], within: 30)
            #expect(spoken.status == 0, "\(spoken.errors)")
            let raw = directory.appendingPathComponent("speech.f32").path
            let decoded = try await ClientProcess.run(
                ["ffmpeg", "-v", "error", "-i", file, "-f", "f32le", "-ar", "48000", "-ac", "1", raw], within: 30)
            #expect(decoded.status == 0, "\(decoded.errors)")
            let speech = try TalkMixTests.floats(URL(fileURLWithPath: raw))
            // A buffer that learns of a late message has to bend the voice a little. Whether this machine sent any is measured.
            for attempt in 1...3 {
                let (matches, latestMs) = try await Self.roundTrip(speech)
                guard latestMs <= 5 || attempt == 3 else { continue }
                #expect(matches.count >= 6)
                #expect(
                    matches.allSatisfy { $0.value >= 0.9 },
                    "\(matches.map { "\($0.start): \($0.value) at \($0.lag)" }); messages were sent up to \(latestMs) ms late")
                break
            }
        }
    }

    /// How the windows of half a second of what was said were heard, each with a lag of its own; and how late the latest message was.
    private static func roundTrip(_ speech: [Float]) async throws -> (matches: [Signal.Match], latestMs: Double) {
        let result = LockedList<(matches: [Signal.Match], latestMs: Double)>()
        try await TalkRoom.run { room in
            let ear = try await room.listener("mix-bob")
            let client = try await room.talker("ann")
            let mic = Microphone(client)
            // First some seconds of a room in which nobody speaks, where the buffer learns how even the input is.
            let before = 6 * 48_000
            try await mic.speak(seconds: Double(before + speech.count) / 48_000) { index in
                index < before ? 0.001 * Float(sin(Double(index) / 20)) : index - before < speech.count ? speech[index - before] : 0
            }
            try await Task.sleep(for: .milliseconds(500))
            let heard = try Heard(ear).samples
            let first = try (heard.firstIndex { abs($0) > 0.02 }).orThrow() - (speech.firstIndex { abs($0) > 0.02 } ?? 0)
            let matches = Signal.matches(speech, in: heard, window: 24_000, lags: (first - 9_600)...(first + 9_600), silence: -40)
            result.append((matches, mic.sent.all.map(\.lateMs).max() ?? 0))
            await client.close()
            await ear.close()
        }
        return try result.all.first.orThrow()
    }

    /// Clicks at known times: how long after a click's message came in the message goes out that has it. The first seconds are where the
    /// buffer learns how even the input is.
    @Test(.timeLimit(.minutes(2)), arguments: [0.0, 20.0]) func delayOfClicks(_ jitterMs: Double) async throws {
        let period = 24_000
        try await TalkRoom.run { room in
            let ear = try await room.listener("mix-bob")
            let client = try await room.talker("ann")
            let mic = Microphone(client)
            // A short burst, which AAC keeps sharp enough to be told from what is around it.
            try await mic.speak(seconds: 16, jitterMs: jitterMs) { index in
                let phase = index % period
                return phase < 96 ? 0.8 * Float(sin(2 * Double.pi * Double(phase) / 24)) : 0
            }
            try await Task.sleep(for: .milliseconds(600))
            let heard = try Heard(ear)
            // Near enough together to tell one click from its double.
            let clicks = Signal.clicks(heard.samples, threshold: 0.25, apart: 960)
            #expect((31...32).contains(clicks.count), "\(clicks.count) of 32 clicks were heard")
            // A buffer that finds its depth moves a click by a tenth of a second at most; a click lost or doubled moves the next one further.
            let gaps = zip(clicks.dropFirst(), clicks).map { $0 - $1 }
            #expect(gaps.allSatisfy { abs($0 - period) <= 4_800 }, "\(gaps)")
            let firstSent = try mic.sent.all.first.orThrow()
            // The nth click heard is the nth sent, unless one was lost, which the count has told.
            var delays: [Double] = []
            for (number, click) in clicks.enumerated() {
                let position = Int64(number * period)
                let sent = mic.sent.all.last { $0.position <= position } ?? firstSent
                guard let message = heard.messages.last(where: { $0.start <= click }) else { continue }
                if number >= 8 { delays.append((message.at - sent.at) / .milliseconds(1)) }
            }
            delays.sort()
            let (middle, last) = (delays[delays.count / 2], delays[delays.count - 1])
            print("delay with \(jitterMs) ms of jitter: p50 \(Int(middle)) ms, max \(Int(last)) ms of \(delays.count) clicks")
            #expect(middle <= 120 && last <= 200, "\(delays)")
            await client.close()
            await ear.close()
        }
    }
}
