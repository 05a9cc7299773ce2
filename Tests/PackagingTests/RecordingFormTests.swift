import Foundation
import HTTPServer
import Rooms
import ServerConfiguration
import Support
import TestSupport
import Testing

@testable import Packaging
@testable import Streaming

/// The pure parts of recordings: names, ranges and bounds.
@Suite struct RecordingFormTests {
    @Test(arguments: ["cam1", "A-b_9", String(repeating: "x", count: 64)]) func harmlessNamesStay(_ name: String) {
        #expect(RecordingFolder.safe(name) == name)
    }

    @Test(arguments: [
        "", ".", "..", "../../etc/passwd", "/", "a/b", "a\\b", "a\0b", "a\nb", "%2e%2e", "é", "a.b", " ", "~", "CON:",
        String(repeating: "x", count: 65), String(repeating: "é", count: 300),
    ]) func otherNamesAreMadeHarmless(_ name: String) {
        let safe = RecordingFolder.safe(name)
        #expect(safe != name)
        #expect(safe.utf8.count <= 64 + 1 + 16)
        #expect(safe.wholeMatch(of: /[A-Za-z0-9_-]*~[0-9a-f]+/) != nil, "\(safe)")
    }

    @Test func differentNamesStayDifferent() {
        let names = ["a/b", "a.b", "a b", "a_b", String(repeating: "x", count: 65), String(repeating: "x", count: 66)]
        #expect(Set(names.map(RecordingFolder.safe)).count == names.count)
        let file = RecordingFolder.file(of: StreamPath(app: "..", name: "../x"), startedAt: 1_795_255_200_123, id: "0123456789abcdef")
        let parts = file.split(separator: "/")
        #expect(parts.count == 3 && parts[2] == "20261121T100000Z-0123456789abcdef.mp4" && !file.contains(".."), "\(file)")
    }

    @Test(
        arguments: [
            ("bytes=0-0", 0..<1), ("bytes=5-9", 5..<10), ("bytes=5-", 5..<100), ("bytes=-10", 90..<100), ("bytes=-1000", 0..<100),
            ("bytes=0-1000", 0..<100), ("BYTES=99-99", 99..<100), ("bytes= 1-2 ", 1..<3), ("bytes=0-99999999999999999999999", 0..<100),
            ("bytes=100-", nil), ("bytes=100-200", nil), ("bytes=-0", nil), ("bytes=99999999999999999999999-", nil),
        ] as [(String, Range<Int64>?)]) func rangesArePartsOfTheFile(_ text: String, _ part: Range<Int64>?) throws
    {
        #expect(try ByteRange(text).orThrow().part(of: 100) == part)
        #expect(try ByteRange(text).orThrow().part(of: 0) == nil)
    }

    /// RFC 9110 §14.2: a Range that is not understood is ignored.
    @Test(arguments: [
        "", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1-2,4-5", "bytes=9-5", "items=0-1", "bytes 0-1", "bytes=--1", "bytes=1-2-3",
        "bytes=+1-2", "bytes=0x1-2", "bytes=1", "bytes=\u{661}-2",
    ]) func otherRangesAreNone(_ text: String) {
        #expect(ByteRange(text) == nil)
    }

    @Test func theQuotaIsCounted() {
        var config = ServerConfig()
        config.data.directory = NSTemporaryDirectory()
        config.recording.quotaBytes = 1_000
        config.recording.minFreeBytes = 0
        let budget = RecordingBudget(RecordingFolder(config), config.recording)
        #expect(budget.refusal(for: 1_000) == nil)
        #expect(budget.refusal(for: 1_001) == .quotaExceeded)
        budget.add(600)
        #expect(budget.refusal(for: 400) == nil && budget.refusal(for: 401) == .quotaExceeded)
        budget.add(-200)
        #expect(budget.refusal(for: 600) == nil)
        // After a refusal nothing is tried again until something is deleted.
        #expect(budget.refusalToBegin == .quotaExceeded)
        budget.free(100)
        #expect(budget.refusalToBegin == nil)
    }

    @Test func theDiskKeepsItsRoom() {
        var config = ServerConfig()
        // It does not exist yet, so the nearest folder above is checked.
        config.data.directory = NSTemporaryDirectory() + "/not/there"
        config.recording.minFreeBytes = 1 << 50
        let budget = RecordingBudget(RecordingFolder(config), config.recording)
        #expect(budget.refusal(for: 0) == .diskFull)
        #expect(!budget.hasRoomForCopy(of: 1))
        config.recording.minFreeBytes = 1
        #expect(RecordingBudget(RecordingFolder(config), config.recording).refusal(for: 1) == nil)
    }
}
