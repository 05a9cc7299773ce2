import TestSupport
import Testing

@testable import Trace

/// The ring of message headers: packing, order, times.
@Suite struct HeaderRecorderTests {
    /// The ring of a publisher in a store of its own.
    private static func with<Result>(capacity: Int, _ body: (HeaderRecorder) throws -> Result) rethrows -> Result {
        let recorder = HeaderRecorder(capacity: capacity)
        defer { recorder.free() }
        return try body(recorder)
    }

    private static func add(_ header: TracedHeader, _ nowMs: Int64, to recorder: HeaderRecorder) {
        recorder.begin(nowMs: nowMs)
        recorder.add(
            type: header.type, timestamp: header.timestamp, length: Int(header.length), streamID: header.streamID, flags: header.flags)
    }

    @Test func headersComeOutAsTheyWentIn() {
        let headers = [
            TracedHeader(timestamp: 0, type: 8, length: 0, streamID: 1),
            TracedHeader(timestamp: .max, type: 9, length: 0xFF_FFFF, streamID: 254, flags: [.keyframe, .enhanced]),
            TracedHeader(timestamp: 77, type: 22, length: 12, streamID: 0, flags: .unreadable),
        ]
        #expect(headers.allSatisfy(HeaderRecorder.holds))
        Self.with(capacity: 3) { recorder in
            for (number, header) in headers.enumerated() { Self.add(header, 1_000 + Int64(number), to: recorder) }
            let all = recorder.copy.entries
            #expect(all.map(\.header) == headers)
            #expect(all.map(\.atMs) == [1_000, 1_001, 1_002])
            #expect(all.map(\.name) == ["audio", "video", "aggregate"])
        }
        #expect(headers[1].flagNames == ["keyframe", "enhanced"])
        for (type, streamID) in [(7, 1), (23, 1), (255, 1), (9, 255), (9, 0xFF_FFFF)] as [(UInt8, UInt32)] {
            #expect(!HeaderRecorder.holds(TracedHeader(timestamp: 1, type: type, length: 1, streamID: streamID)))
        }
        // A value too large for its bits is shown as the largest that fits.
        Self.with(capacity: 1) { recorder in
            recorder.add(type: 9, timestamp: 1, length: 1 << 30, streamID: .max, flags: [])
            #expect(recorder.copy.entries.map(\.header) == [TracedHeader(timestamp: 1, type: 9, length: 0xFF_FFFF, streamID: 255)])
        }
    }

    /// Thirty seconds of an ordinary push: 30 pictures and 47 frames of audio a second.
    @Test func aPublishersShareHoldsThirtySeconds() {
        #expect(TraceStore(limit: 1 << 20).headersOfPublisher >= 30 * (30 + 47))
    }

    @Test(.seeded, arguments: 0..<20) func theNewestStay(_ part: Int) {
        var random = TestRandom(part)
        let capacity = Int.random(in: 0...200, using: &random)
        let count = Int.random(in: 0...500, using: &random)
        Self.with(capacity: capacity) { recorder in
            for number in 0..<count {
                Self.add(TracedHeader(timestamp: UInt32(number), type: 9, length: number, streamID: 1), Int64(number) * 40, to: recorder)
            }
            let left = recorder.copy.entries
            #expect(recorder.total == count && left.count == min(count, max(1, capacity)))
            #expect(left.map(\.header?.timestamp) == ((count - left.count)..<count).map { UInt32($0) })
            #expect(left.map(\.atMs) == left.map { Int64($0.header?.timestamp ?? 0) * 40 })
            #expect(recorder.copy.first == count - left.count)
        }
    }

    /// The stored time has 20 bits, 17 minutes. Records may be older, as long as there are others between.
    @Test func timesBeyondTheStoredBits() {
        let start: Int64 = 5 << 32
        func times(_ times: [Int64]) -> [Int64] {
            Self.with(capacity: 4) { recorder in
                for ms in times { Self.add(TracedHeader(timestamp: 0, type: 8, length: 1, streamID: 1), ms, to: recorder) }
                return recorder.copy.entries.map(\.atMs)
            }
        }
        #expect(times([start - 10, start + 10]) == [start - 10, start + 10])
        let apart = (0..<6).map { start + $0 * 0xF_FFFF }
        #expect(times(apart) == apart.suffix(4))
        // After a longer silence what was before is gone.
        #expect(times([start, start + 5, start + 6 + 0xF_FFFF]) == [start + 6 + 0xF_FFFF])
        // A clock that is read elsewhere may be a little behind.
        #expect(times([start, start - 3, start + 1]) == [start, start, start + 1])
    }

    @Test func theFlagsOfTags() {
        #expect(TracedHeader.Flags(tag: 0b11) == [.keyframe, .sequenceHeader])
        #expect(TracedHeader.Flags(tag: 0xFFC0).isEmpty)
    }
}
