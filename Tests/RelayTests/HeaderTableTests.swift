import Media
import NIOCore
import Testing

@testable import Relay

@Suite struct HeaderTableTests {
    private func ids(_ table: HeaderTable) -> [Int] { table.frames.map { Received($0).id } }

    @Test func newestOfEachSlotMetadataFirst() throws {
        var table = HeaderTable()
        #expect(table.isEmpty)
        #expect(table.keep(try Make.videoHeader(1)) == true)
        #expect(table.keep(try Make.audioHeader(2)) == true)
        #expect(table.keep(try Make.metadata(3)) == true)
        #expect(self.ids(table) == [3, 1, 2])
        #expect(table.keep(try Make.videoHeader(4)) == true)
        #expect(self.ids(table) == [3, 2, 4])
        #expect(table.keep(try Make.videoHeader(4)) == false, "the same again changes nothing")
        #expect(table.keep(try Make.metadata(5)) == true)
        #expect(self.ids(table) == [5, 2, 4])
    }

    @Test func onlyHeadersAreKept() throws {
        var table = HeaderTable()
        for frame in [try Make.key(1, at: 0), try Make.audio(2, at: 0), try Make.script(3, at: 0), try Make.endOfSequence(4, at: 0)] {
            #expect(table.keep(frame) == false)
        }
        #expect(table.isEmpty)
    }

    @Test func clearingMetadataLeavesTheRest() throws {
        var table = HeaderTable()
        #expect(table.clearMetadata() == false)
        _ = table.keep(try Make.metadata(1))
        _ = table.keep(try Make.audioHeader(2))
        #expect(table.clearMetadata() == true)
        #expect(self.ids(table) == [2])
        table.removeAll()
        #expect(table.isEmpty)
    }

    @Test func keepsItsOwnCopy() throws {
        var table = HeaderTable()
        let frame = try Make.audioHeader(1)
        let whole = ByteBuffer(repeating: 7, count: 1 << 20)
        var buffer = whole
        buffer.clear()
        buffer.writeImmutableBuffer(frame.payload)
        let slice = try Frame(kind: .audio, timestamp: 0, payload: buffer)
        _ = table.keep(slice)
        let kept = try #require(table.frames.first)
        #expect(kept.payload == frame.payload)
        #expect(kept.payload.storageCapacity < 64)
    }

    /// A header over the limit is not kept, and the one it outdates is dropped.
    @Test func oversized() throws {
        var table = HeaderTable()
        _ = table.keep(try Make.videoHeader(1))
        var payload = try Make.videoHeader(2).payload
        payload.writeRepeatingByte(0, count: 1 << 20)
        let large = try Frame(kind: .video, timestamp: 0, payload: payload)
        #expect(table.keep(large) == true)
        #expect(table.isEmpty)
        #expect(table.keep(large) == false)
        #expect(table.keep(try Make.videoHeader(3)) == true)
        #expect(self.ids(table) == [3])
    }

    @Test func multitrackHeadersReachJoinersNewestLast() throws {
        var table = HeaderTable()
        let both = try Make.multitrackHeader(1, tracks: [0, 1])
        let first = try Make.multitrackHeader(2, tracks: [0])
        let overlapping = try Make.multitrackHeader(3, tracks: [1, 2])
        #expect(table.keep(both) == true)
        #expect(table.keep(first) == true)
        #expect(table.frames.map(\.payload) == [both.payload, first.payload])
        #expect(table.keep(both) == true, "it is newer than what came after its like")
        #expect(table.frames.map(\.payload) == [both.payload])
        #expect(table.keep(overlapping) == true)
        let again = try Make.multitrackHeader(4, tracks: [0, 1])
        #expect(table.keep(again) == true)
        #expect(table.frames.map(\.payload) == [overlapping.payload, again.payload])
    }

    @Test func slotsAreBounded() throws {
        var table = HeaderTable()
        for low in 0..<60 as Range<UInt8> {
            for high in 100..<160 as Range<UInt8> { _ = table.keep(try Make.multitrackHeader(low, tracks: [low, high])) }
        }
        #expect(table.frames.count == 256)
    }

    @Test func brokenTracksAreNotKept() throws {
        var table = HeaderTable()
        // ManyTracks whose second track is longer than what is left.
        let payload = ByteBuffer(bytes: [0x96, 0x10] + Array("hvc1".utf8) + [0, 0, 0, 1, 9, 1, 0, 0, 9, 9])
        #expect(table.keep(try Frame(kind: .video, timestamp: 0, payload: payload)) == false)
        #expect(table.isEmpty)
    }
}
