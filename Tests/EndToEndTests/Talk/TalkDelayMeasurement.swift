import Foundation
import RTMP
import RTMPTestSupport
import ServerTestSupport
import SignalCheck
import TestSupport
import Testing

/// The delay of a voice through a live server. A benchmark, not a test: it depends on the clock of a machine that may have other work, so
/// `Benchmarks/talk.sh` runs it alone, with `EARSHOT_MEASURE=1`. ``TalkPipelineTests`` tests the server's share with a clock of its own.
@Suite(.serialized, .enabled(if: ProcessInfo.processInfo.environment["EARSHOT_MEASURE"] != nil, "measured by Benchmarks/talk.sh"))
struct TalkDelayMeasurement {
    /// Measures the time from a click's message to the mix's message that has it. In the first seconds the buffer learns how even the input
    /// is.
    @Test(.timeLimit(.minutes(2)), arguments: [0.0, 20.0]) func delayOfClicks(_ jitterMs: Double) async throws {
        let period = 24_000
        try await TalkRoom.run { room in
            let ear = try await room.listener("mix-bob")
            let client = try await room.talker("ann")
            let mic = Microphone(client)
            // A short burst, which AAC keeps sharp enough to tell from its surroundings.
            let lateness = try await mic.speak(seconds: 16, jitterMs: jitterMs) { index in
                let phase = index % period
                return phase < 96 ? 0.8 * Float(sin(2 * Double.pi * Double(phase) / 24)) : 0
            }
            let count = ear.media().count
            try await eventually("the last click") { ear.media().count > count + 28 }
            let heard = try Heard(ear)
            // Close enough together to tell one click from its double.
            let clicks = Signal.clicks(heard.samples, threshold: 0.25, apart: 960)
            #expect((31...32).contains(clicks.count), "\(clicks.count) of 32 clicks were heard; \(lateness)")
            // An adapting buffer moves a click by at most a tenth of a second. A click lost or doubled moves the next one further.
            let gaps = zip(clicks.dropFirst(), clicks).map { $0 - $1 }
            #expect(gaps.allSatisfy { abs($0 - period) <= 4_800 }, "\(gaps); \(lateness)")
            let all = mic.sent.all
            // The nth click heard is the nth sent. The count above shows a lost one.
            let delays = try clicks.enumerated().dropFirst(8).compactMap { number, click -> Double? in
                let sent = try (all.last { $0.position <= Int64(number * period) } ?? all.first).orThrow()
                guard let message = heard.messages.last(where: { $0.start <= click }) else { return nil }
                return (message.at - sent.at) / .milliseconds(1)
            }.sorted()
            let (middle, last) = (delays[delays.count / 2], delays[delays.count - 1])
            print(
                "delay with \(Int(jitterMs)) ms of jitter: p50 \(Int(middle)) ms, max \(Int(last)) ms of \(delays.count) clicks; \(lateness)"
            )
            #expect(middle <= 120 && last <= 200, "\(delays); \(lateness)")
            for client in [client, ear] { await client.close() }
        }
    }

    /// Measures how many frames of a client with Nagle's algorithm come late because the server sends it acknowledgements.
    @Test(.timeLimit(.minutes(3))) func delayByAcknowledgements() async throws {
        try await TalkRoom.run { room in
            var options = RawClient.Options()
            options.waitsForAcknowledgement = true
            let ann = try await room.client(options)
            // The server acknowledges every 3,000 bytes: fifteen times in all.
            ann.send(ControlMessage.windowAcknowledgementSize(3_000).message)
            try await ann.publish("r1/ann", on: ann.createStream())
            // The same without acknowledgements, at the same times: delays of both are the machine's.
            let ben = try await room.client(options)
            try await ben.publish("r1/ben", on: ben.createStream())
            let (ear, other) = (try await room.listener("ann"), try await room.listener("ben"))
            let start = ContinuousClock.now
            for number in 1...240 {
                try await Task.sleep(until: start + .milliseconds(number * 20), tolerance: .zero, clock: .continuous)
                for client in [ann, ben] {
                    client.send(.audio, SyntheticTag.audio(number, bytes: 180), timestamp: UInt32(number * 20))
                }
            }
            try await eventually("the last frames") {
                [ear, other].allSatisfy { $0.media().contains { $0.message.timestamp == 4_800 } }
            }
            let told = ann.controls.count { if case .acknowledgement = $0 { true } else { false } }
            // A frame that waits for an acknowledgement is at least 40 ms late.
            let usual = Dictionary(other.media().map { ($0.message.timestamp, $0.at) }) { first, _ in first }
            let delays = ear.media().compactMap { received in usual[received.message.timestamp].map { received.at - $0 } }
            let late = delays.count { $0 > .milliseconds(25) }
            // Delays that the machine causes hit both talkers: they make frames early as often as late.
            let early = delays.count { $0 < .milliseconds(-25) }
            print("delay beside acknowledgements: \(late) frames of \(delays.count) over 25 ms late, \(early) early, after \(told) of them")
            // Each acknowledgement would hold up one frame or two.
            #expect(told >= 12 && late - early < told / 2, "\(late) late and \(early) early after \(told) acknowledgements")
            for client in [ann, ben, ear, other] { await client.close() }
        }
    }
}
