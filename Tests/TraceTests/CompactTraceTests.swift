import Testing

@testable import Trace

/// The trace in a log line.
@Suite struct CompactTraceTests {
    @Test func oneLine() {
        let entries = [
            TraceEntry(atMs: 0, .received, .command, "connect", "app=live", streamID: 0, transaction: 1),
            TraceEntry(atMs: 50, .sent, .command, "onStatus", "NetStream.Publish.Start: Publishing.", streamID: 1, transaction: 0),
            TraceEntry(
                atMs: 1_000, .received, .message, "video", streamID: 1,
                header: TracedHeader(timestamp: 0, type: 9, length: 40, streamID: 1, flags: [.keyframe, .sequenceHeader])),
            TraceEntry(
                atMs: 1_040, .received, .message, "audio", streamID: 1,
                header: TracedHeader(timestamp: 23, type: 8, length: 60, streamID: 1)),
            TraceEntry(atMs: 2_000, .here, .state, "closed", "protocol_error"),
        ]
        #expect(
            CompactTrace.text(entries, nowMs: 2_050) == """
                -2.0s < connect #1 app=live | -2.0s > onStatus on 1 NetStream.Publish.Start: Publishing. \
                | -1.0s < 2 messages: 1 video, 1 audio (1 keyframes), 100 bytes, the last at 23 | -0.0s . closed protocol_error
                """)
        #expect(
            CompactTrace.text([entries[2]], nowMs: 1_000) == "-0.0s < video on 1 40 bytes at 0 keyframe sequenceHeader")
        #expect(CompactTrace.text([], nowMs: 0).isEmpty)
    }

    @Test func theNewestAreLeft() {
        let entries = (0..<200).map { TraceEntry(atMs: Int64($0), .here, .state, "state\($0)", String(repeating: "x", count: 50)) }
        let text = CompactTrace.text(entries, nowMs: 200)
        #expect(text.utf8.count <= CompactTrace.longest && text.utf8.count > CompactTrace.longest - 100)
        #expect(text.contains("state199 ") && !text.contains("state100 "))
    }
}
