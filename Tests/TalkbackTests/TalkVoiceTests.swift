import FFmpeg
import Media
import NIOCore
import RTMP
import Relay
import SignalCheck
import Talk
import Testing

@testable import Streaming
@testable import Talkback

/// Limits on the cost of one talker.
@Suite struct TalkVoiceTests {
    /// The oldest part of a burst longer than the buffer is skipped undecoded. The newest is heard.
    @Test func aLongBurstIsNotDecodedWhole() throws {
        let inbox = TalkInbox()
        var voice = TalkVoice(inbox)
        let encoder = try AudioEncoder(channels: 1, bitRate: 64_000)
        inbox.receive([.frame(try Frame(kind: .audio, timestamp: 0, payload: encoder.sequenceMessage))])
        _ = voice.fetch()
        // Ten seconds at once, with a rising tone.
        var frames: [TapItem] = []
        for block in 0..<469 {
            let samples = (0..<1_024).map { Tone.sine(300 + Double(block / 47) * 100)(block * 1_024 + $0) }
            for run in try encoder.encode(PCM(sampleRate: 48_000, planes: [samples])) {
                frames.append(.frame(try Frame(kind: .audio, timestamp: run.position / 48, payload: encoder.message(run))))
            }
        }
        inbox.receive(frames)
        let wasHeard = voice.fetch()
        #expect(wasHeard)
        #expect((380...400).contains(voice.skipped), "\(voice.skipped) of \(frames.count)")
        #expect(voice.jitter.counters.runs < 90)
        // At twice real time nothing is skipped once the burst is processed.
        for _ in 0..<5 { _ = voice.fetch() }
        let before = voice.skipped
        for chunk in 0..<100 {
            inbox.receive(Array(frames[(chunk * 2)..<(chunk * 2 + 2)]))
            _ = voice.fetch()
        }
        #expect(voice.skipped == before)
    }

    /// Three seconds at once: the figures account for all of it, and none counts as lost.
    @Test func allOfABurstIsAccountedFor() throws {
        let inbox = TalkInbox()
        var voice = TalkVoice(inbox)
        let encoder = try AudioEncoder(channels: 1, bitRate: 64_000)
        inbox.receive([.frame(try Frame(kind: .audio, timestamp: 0, payload: encoder.sequenceMessage))])
        var sent = 0
        func frames(_ blocks: Range<Int>) throws -> [TapItem] {
            var frames: [TapItem] = []
            for block in blocks {
                let samples = (0..<1_024).map { Tone.sine(500)(block * 1_024 + $0) }
                for run in try encoder.encode(PCM(sampleRate: 48_000, planes: [samples])) {
                    frames.append(.frame(try Frame(kind: .audio, timestamp: run.position / 48, payload: encoder.message(run))))
                }
            }
            sent += frames.count
            return frames
        }
        inbox.receive(try frames(0..<3))
        _ = voice.fetch()
        inbox.receive(try frames(3..<144))
        _ = voice.fetch()
        let counters = voice.jitter.counters
        #expect(voice.skipped > 40 && counters.lost == 0, "\(voice.skipped) \(counters)")
        #expect(counters.dropped >= Int64(voice.skipped) * 1_024)
        let all = counters.dropped + counters.played + Int64((counters.depthMs * 48).rounded())
        // The first run of a decoder is its run-up.
        #expect(abs(all - Int64(sent) * 1_024) <= 2 * 1_024, "\(all) of \(sent * 1_024)")
        #expect(VoiceReport(voice).droppedFrames == voice.skipped)
        // A recorded voice is kept whole.
        var kept = TalkVoice(inbox)
        kept.keepsAll(true)
        inbox.receive([.frame(try Frame(kind: .audio, timestamp: 0, payload: encoder.sequenceMessage))])
        inbox.receive(try frames(144..<850))
        _ = kept.fetch()
        #expect(kept.skipped == 0 && kept.jitter.counters.dropped == 0 && kept.jitter.counters.depthMs > 14_900, "\(kept.jitter.counters)")
    }

    /// Frames of over a second each are decoded at most at four times real time.
    @Test func longFramesWait() {
        var allowance = DecodeAllowance()
        var decodedUs: Int64 = 0
        for _ in 0..<470 {
            for _ in 0..<max(0, 16 - allowance.surplus(of: 16)) {
                allowance.spent(1_365_000)
                decodedUs += 1_365_000
            }
        }
        // Ten seconds.
        #expect((20_000_000...50_000_000).contains(decodedUs), "\(decodedUs)")
    }
}
