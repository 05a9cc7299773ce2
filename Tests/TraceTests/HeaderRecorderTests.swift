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

    private static func entries(_ recorder: HeaderRecorder, nowMs: Int64) -> [TraceEntry] {
        let list = recorder.copy
        return list.records.indices.map { list.entry($0, nowMs: nowMs) }
    }

    @Test func headersComeOutAsTheyWentIn() {
        let headers = [
            TracedHeader(timestamp: 0, type: 8, length: 0, streamID: 1),
            TracedHeader(timestamp: .max, type: 9, length: 0xFF_FFFF, streamID: 0xFF_FFFF, flags: [.keyframe, .enhanced]),
            TracedHeader(timestamp: 77, type: 255, length: 12, streamID: 3, flags: .unreadable),
        ]
        Self.with(capacity: 3) { recorder in
            for (number, header) in headers.enumerated() { Self.add(header, 1_000 + Int64(number), to: recorder) }
            let all = Self.entries(recorder, nowMs: 5_000)
            #expect(all.map(\.header) == headers)
            #expect(all.map(\.atMs) == [1_000, 1_001, 1_002])
            #expect(all.map(\.name) == ["audio", "video", "type255"])
        }
        #expect(headers[1].flagWords == ["keyframe", "enhanced"])
        // A value too large for its bits is shown as the largest that fits.
        let large = TracedHeader(timestamp: 1, type: 9, length: 1 << 30, streamID: .max)
        #expect(large.length == 0xFF_FFFF && large.streamID == 0xFF_FFFF)
        Self.with(capacity: 1) { recorder in
            recorder.add(type: 9, timestamp: 1, length: 1 << 30, streamID: .max, flags: [])
            #expect(Self.entries(recorder, nowMs: 0).map(\.header) == [large])
        }
    }

    @Test(.seeded, arguments: 0..<20) func theNewestStay(_ part: Int) {
        var random = TestRandom(part)
        let capacity = Int.random(in: 0...200, using: &random)
        let count = Int.random(in: 0...500, using: &random)
        Self.with(capacity: capacity) { recorder in
            for number in 0..<count {
                Self.add(TracedHeader(timestamp: UInt32(number), type: 9, length: number, streamID: 1), Int64(number) * 40, to: recorder)
            }
            let left = Self.entries(recorder, nowMs: Int64(count) * 40)
            #expect(recorder.total == count && left.count == min(count, max(1, capacity)))
            #expect(left.map(\.header?.timestamp) == ((count - left.count)..<count).map { UInt32($0) })
            #expect(left.map(\.atMs) == left.map { Int64($0.header?.timestamp ?? 0) * 40 })
            #expect(recorder.copy.first == count - left.count)
        }
    }

    /// The stored time has 32 bits; the clock of a machine that runs for months has more.
    @Test func timesBeyondTheStoredBits() {
        let start: Int64 = 5 << 32
        Self.with(capacity: 4) { recorder in
            for ms in [start - 10, start + 10] { Self.add(TracedHeader(timestamp: 0, type: 8, length: 1, streamID: 1), ms, to: recorder) }
            #expect(Self.entries(recorder, nowMs: start + 20).map(\.atMs) == [start - 10, start + 10])
        }
    }

    @Test func theFlagsOfTags() {
        #expect(TracedHeader.Flags(tag: 0b11) == [.keyframe, .sequenceHeader])
        #expect(TracedHeader.Flags(tag: 0xFFC0).isEmpty)
    }
}
