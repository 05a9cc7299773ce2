import TestSupport
import Testing

@testable import Trace

/// The ring of commands and states: packing, order, bounds.
@Suite struct EventRingTests {
    @Test func entriesComeOutAsTheyWentIn() {
        let entries = [
            TraceEntry(atMs: 0, .received, .command, "connect", "app=live", streamID: 0, transaction: 1),
            TraceEntry(atMs: 7, .sent, .command, "onStatus", "NetStream.Play.Start", streamID: 1, transaction: nil),
            TraceEntry(atMs: 8, .sent, .control, "setChunkSize", "60000"),
            TraceEntry(
                atMs: 0x7FFF_FFFF_FFFF, .received, .message, "data", streamID: 1,
                header: TracedHeader(timestamp: .max, type: 18, length: 300, streamID: 1)),
            TraceEntry(atMs: 9, .received, .request, "GET", "/live/cam.flv, 200"),
            TraceEntry(atMs: 10, .received, .frame, "ping"),
            TraceEntry(atMs: 11, .here, .state, "closed", "Ende: geschlossen – 終"),
        ]
        var ring = EventRing(capacity: 1_000)
        for (number, entry) in entries.enumerated() { ring.append(entry, headersBefore: UInt32(number) * 1_000) }
        let all = ring.all()
        #expect(all.map(\.entry) == entries)
        #expect(all.map(\.headersBefore) == (0..<7).map { $0 * 1_000 })
    }

    @Test func longTextsAreCutBetweenCharacters() throws {
        var ring = EventRing(capacity: 1)
        // Three bytes each: the limits lie within a character or not, depending on what comes before.
        for lead in 0..<3 {
            let text = String(repeating: "a", count: lead) + String(repeating: "終", count: 200)
            ring.append(TraceEntry(atMs: 1, .received, .command, text, text))
            let entry = try #require(ring.all().last?.entry)
            #expect(!entry.name.contains("\u{FFFD}") && !entry.text.contains("\u{FFFD}"))
            #expect((EventRing.longestName - 2...EventRing.longestName).contains(entry.name.utf8.count))
            #expect((EventRing.longestText - 2...EventRing.longestText).contains(entry.text.utf8.count))
            #expect(text.hasPrefix(entry.name) && text.hasPrefix(entry.text))
        }
        #expect(ring.capacity == EventRing.leastCapacity)
    }

    /// Entries of any size in rings of any size: what is left is the newest ones, whole and in order, and as many as fit.
    @Test(.seeded, arguments: 0..<40) func theNewestStay(_ part: Int) {
        var random = TestRandom(part)
        var ring = EventRing(capacity: .random(in: 0...3_000, using: &random))
        var capacity = ring.capacity
        var written: [TraceEntry] = []
        for number in 0..<Int.random(in: 1...300, using: &random) {
            let kind = TraceKind.allCases.randomElement(using: &random) ?? .state
            var entry = TraceEntry(
                atMs: Int64(number), TraceDirection.allCases.randomElement(using: &random) ?? .here, kind,
                String(repeating: "n", count: .random(in: 0...EventRing.longestName, using: &random)),
                String(repeating: "t", count: .random(in: 0...EventRing.longestText, using: &random)))
            if kind == .command {
                (entry.streamID, entry.transaction) = (.random(in: 0...UInt32.max, using: &random), .random(in: 0...1_000, using: &random))
            }
            if kind == .message {
                let header = TracedHeader(
                    timestamp: .random(in: 0...UInt32.max, using: &random), type: 9, length: .random(in: 0...1 << 24, using: &random),
                    streamID: .random(in: 0...UInt32.max, using: &random), flags: .keyframe)
                (entry.name, entry.text, entry.streamID, entry.header) = ("video", "", header.streamID, header)
            }
            ring.append(entry)
            written.append(entry)
            if number == 150 {
                capacity += 500
                ring.grow(to: capacity)
            }
            #expect(ring.capacity == capacity)
        }
        let left = ring.all().map(\.entry)
        #expect(left.count == ring.count && !left.isEmpty)
        #expect(left == Array(written.suffix(left.count)))
    }

    @Test func theRingIsFull() {
        var ring = EventRing(capacity: 1_000)
        let entry = TraceEntry(atMs: 1, .here, .state, "0123456789", "01234567890123456789")
        for _ in 0..<100 { ring.append(entry) }
        // 13 bytes of head, 30 of text.
        #expect(ring.count == 1_000 / 43)
    }
}
