import Media
import NIOCore
import Testing

@testable import LinkTransport

/// The rules of the push queue, without a connection.
@Suite struct PushBacklogTests {
    private static func video(_ time: Int64, key: Bool = false, bytes: Int = 100) throws -> Frame {
        let body = [key ? 0x17 : 0x27, 1, 0, 0, 0] + [UInt8](repeating: 0, count: bytes)
        return try Frame(kind: .video, timestamp: time, payload: ByteBuffer(bytes: body))
    }
    private static func audio(_ time: Int64, bytes: Int = 10) throws -> Frame {
        try Frame(kind: .audio, timestamp: time, payload: ByteBuffer(bytes: [0xAF, 1] + [UInt8](repeating: 0, count: bytes)))
    }
    private static func videoHeader(_ mark: UInt8) throws -> Frame {
        try Frame(kind: .video, timestamp: 0, payload: ByteBuffer(bytes: [0x17, 0, 0, 0, 0, mark]))
    }
    private static func audioHeader() throws -> Frame {
        try Frame(kind: .audio, timestamp: 0, payload: ByteBuffer(bytes: [0xAF, 0, 0x12, 0x10]))
    }

    /// "V" keyframe, "v" other video, "a" audio, "H" video header, "h" audio header; with its timestamp or mark.
    private static func text(_ frame: Frame) -> String {
        switch frame.kind {
        case .video where frame.isSequenceHeader: "H\(frame.payload.readableBytesView.last ?? 0)"
        case .video: "\(frame.isKeyframe ? "V" : "v")\(frame.timestamp)"
        case .audio: frame.isSequenceHeader ? "h" : "a\(frame.timestamp)"
        case .data: "d"
        }
    }

    private static func drain(_ backlog: inout PushBacklog) -> String {
        var words: [String] = []
        while let frame = backlog.next(nowMs: 0) { words.append(Self.text(frame)) }
        return words.joined(separator: " ")
    }

    private static func make(bytes: Int = 1 << 20, ms: Int = 1_000, audioMs: Int = 5_000) -> PushBacklog {
        PushBacklog(maxBytes: bytes, maxMs: ms, maxAudioMs: audioMs)
    }

    @Test func connectionBeginsWithHeadersAndTheLastGOP() throws {
        var backlog = Self.make()
        backlog.offer(try Self.videoHeader(1), nowMs: 0)
        backlog.offer(try Self.audioHeader(), nowMs: 0)
        backlog.offer(try Self.video(0, key: true), nowMs: 0)
        backlog.offer(try Self.audio(10), nowMs: 10)
        backlog.offer(try Self.video(40, key: true), nowMs: 40)
        backlog.offer(try Self.video(80), nowMs: 80)
        backlog.offer(try Self.audio(90), nowMs: 90)
        backlog.attach(nowMs: 100)
        #expect(Self.drain(&backlog) == "H1 h V40 v80 a90")
        #expect(backlog.counts(nowMs: 100) == PushBacklog.Counts())
    }

    /// The queued GOP is decoded with the header from its start, not a newer one.
    @Test func headersStayInTheirPlace() throws {
        var backlog = Self.make()
        backlog.offer(try Self.videoHeader(1), nowMs: 0)
        backlog.offer(try Self.video(0, key: true), nowMs: 0)
        backlog.offer(try Self.video(40), nowMs: 0)
        backlog.offer(try Self.videoHeader(2), nowMs: 0)
        backlog.attach(nowMs: 0)
        backlog.offer(try Self.video(80, key: true), nowMs: 0)
        #expect(Self.drain(&backlog) == "H1 V0 v40 H2 V80")
        backlog.detach()
        backlog.attach(nowMs: 0)
        #expect(Self.drain(&backlog) == "H2")
    }

    @Test func waitsForAKeyframe() throws {
        var backlog = Self.make()
        backlog.offer(try Self.videoHeader(1), nowMs: 0)
        backlog.attach(nowMs: 0)
        backlog.offer(try Self.video(0), nowMs: 0)
        backlog.offer(try Self.audio(5), nowMs: 0)
        #expect(Self.drain(&backlog) == "H1")
        backlog.offer(try Self.video(40, key: true), nowMs: 0)
        backlog.offer(try Self.audio(45), nowMs: 0)
        #expect(Self.drain(&backlog) == "V40 a45")
    }

    @Test func audioAloneNeedsNoKeyframe() throws {
        var backlog = Self.make()
        backlog.offer(try Self.audioHeader(), nowMs: 0)
        backlog.offer(try Self.audio(5), nowMs: 0)
        // Without a connection, audio alone is not kept.
        backlog.attach(nowMs: 0)
        backlog.offer(try Self.audio(25), nowMs: 0)
        #expect(Self.drain(&backlog) == "h a25")
        // Video that starts later does not cut the audio.
        backlog.offer(try Self.videoHeader(1), nowMs: 0)
        backlog.offer(try Self.video(30), nowMs: 0)
        backlog.offer(try Self.audio(45), nowMs: 0)
        backlog.offer(try Self.video(50, key: true), nowMs: 0)
        #expect(Self.drain(&backlog) == "H1 a45 V50")
    }

    @Test func tooLateDropsVideoUpToTheNewestKeyframe() throws {
        var backlog = Self.make(ms: 1_000)
        backlog.offer(try Self.videoHeader(1), nowMs: 0)
        backlog.attach(nowMs: 0)
        for time in stride(from: 0, through: 1_000, by: 100) as StrideThrough<Int64> {
            backlog.offer(try Self.video(time, key: time % 400 == 0), nowMs: time)
            backlog.offer(try Self.audio(time), nowMs: time)
        }
        #expect(backlog.counts(nowMs: 1_000).droppedVideo == 0)
        // Now the oldest has waited too long.
        backlog.offer(try Self.audio(1_100), nowMs: 1_100)
        #expect(Self.drain(&backlog) == "H1 a0 a100 a200 a300 a400 a500 a600 a700 V800 a800 v900 a900 v1000 a1000 a1100")
        #expect(backlog.counts(nowMs: 0).droppedVideo == 8)
        #expect(backlog.counts(nowMs: 0).droppedAudio == 0)
    }

    @Test func tooLateWithoutANewerKeyframeWaitsForOne() throws {
        var backlog = Self.make(ms: 1_000)
        backlog.attach(nowMs: 0)
        backlog.offer(try Self.video(0, key: true), nowMs: 0)
        for time in stride(from: 100, through: 2_000, by: 100) as StrideThrough<Int64> {
            backlog.offer(try Self.video(time), nowMs: time)
            backlog.offer(try Self.audio(time), nowMs: time)
        }
        #expect(Self.drain(&backlog) == stride(from: 100, through: 2_000, by: 100).map { "a\($0)" }.joined(separator: " "))
        #expect(backlog.counts(nowMs: 0).droppedVideo == 21)
        backlog.offer(try Self.video(2_100), nowMs: 2_100)
        backlog.offer(try Self.video(2_200, key: true), nowMs: 2_200)
        backlog.offer(try Self.video(2_300), nowMs: 2_300)
        #expect(Self.drain(&backlog) == "V2200 v2300")
        #expect(backlog.counts(nowMs: 0).droppedVideo == 22)
    }

    @Test func tooManyBytesDropsVideoUpToTheNewestKeyframe() throws {
        var backlog = Self.make(bytes: 10_000, ms: 100_000)
        backlog.attach(nowMs: 0)
        backlog.offer(try Self.video(0, key: true, bytes: 3_000), nowMs: 0)
        backlog.offer(try Self.audio(1), nowMs: 0)
        backlog.offer(try Self.video(2, bytes: 3_000), nowMs: 0)
        backlog.offer(try Self.video(3, key: true, bytes: 3_000), nowMs: 0)
        backlog.offer(try Self.video(4, bytes: 3_000), nowMs: 0)
        #expect(Self.drain(&backlog) == "a1 V3 v4")
        #expect(backlog.counts(nowMs: 0).droppedVideo == 2)
    }

    @Test func audioIsBoundedToo() throws {
        var backlog = Self.make(bytes: 10_000, ms: 1_000, audioMs: 5_000)
        backlog.offer(try Self.audioHeader(), nowMs: 0)
        backlog.attach(nowMs: 0)
        for time in stride(from: 0, through: 6_000, by: 1_000) as StrideThrough<Int64> { backlog.offer(try Self.audio(time), nowMs: time) }
        #expect(Self.drain(&backlog) == "h a1000 a2000 a3000 a4000 a5000 a6000")
        #expect(backlog.counts(nowMs: 0).droppedAudio == 1)
        for time in 0..<1_000 as Range<Int64> { backlog.offer(try Self.audio(time, bytes: 1_000), nowMs: 7_000) }
        #expect(backlog.counts(nowMs: 7_000).bytes <= 10_000)
    }

    /// Headers that the queue's limits dropped are sent all the same.
    @Test func headersSurviveEveryBound() throws {
        var backlog = Self.make(bytes: 5_000, ms: 1_000, audioMs: 2_000)
        backlog.attach(nowMs: 0)
        backlog.offer(try Self.audioHeader(), nowMs: 0)
        backlog.offer(try Self.videoHeader(1), nowMs: 0)
        backlog.offer(try Self.video(0, key: true), nowMs: 0)
        for time in 0..<10_000 as Range<Int64> { backlog.offer(try Self.audio(time, bytes: 500), nowMs: time) }
        let words = Self.drain(&backlog)
        #expect(words.hasPrefix("h H1 a"), "\(words.prefix(40))")
    }

    @Test func staleGOPIsNotSent() throws {
        var backlog = Self.make(ms: 1_000)
        backlog.offer(try Self.videoHeader(1), nowMs: 0)
        backlog.offer(try Self.video(0, key: true), nowMs: 0)
        backlog.attach(nowMs: 60_000)
        #expect(Self.drain(&backlog) == "H1")
        backlog.clear()
        backlog.detach()
        backlog.attach(nowMs: 60_000)
        #expect(Self.drain(&backlog) == "")
    }

    /// Memory stays within bounds, whatever is offered to a queue that is never drained.
    @Test func boundedWithoutConnection() throws {
        var backlog = Self.make(bytes: 100_000, ms: 100_000)
        for time in 0..<5_000 as Range<Int64> {
            backlog.offer(try Self.video(time, key: time % 1_000 == 0, bytes: 1_000), nowMs: time)
            #expect(backlog.counts(nowMs: time).bytes <= 102_000)
        }
    }
}
