import Media
import Testing

@testable import Relay

@Suite struct FanoutRingTests {
    /// A ring with frames encoded into it as on a home loop.
    private final class Ring {
        var ring: FanoutRing
        private var allocator = SlabAllocator()
        static let overhead = MemoryLayout<EncodedMessage>.stride + TestEncoder.headerLength

        init(_ bounds: FanoutRing.Bounds = FanoutRing.Bounds()) {
            self.ring = FanoutRing(bounds: bounds)
        }

        func append(_ frame: Frame, nowMs: Int64 = 0) {
            self.ring.append(EncodedMessage(frame, encoder: TestEncoder(), allocator: &self.allocator, arrivalMs: nowMs))
        }

        func append(_ change: StreamChange) {
            self.ring.append(EncodedMessage(change: change, timestamp: 0, arrivalMs: 0))
        }

        /// The ids that a viewer reads when it goes through the whole ring.
        var ids: [Int] { (self.ring.base..<self.ring.head).map { self.id($0) } }

        private func id(_ sequence: Int) -> Int {
            let message = self.ring[sequence]
            guard let start = message.start else { return -1 }
            do {
                return try Array(UnsafeRawBufferPointer(start: start, count: message.length)).messages().first?.id ?? -1
            } catch {
                return -1
            }
        }
    }

    private func joins(_ ring: FanoutRing) -> [Int] { ring.joinPoint.prelude.map { Received($0).id } }

    @Test func empty() {
        let ring = FanoutRing(bounds: FanoutRing.Bounds())
        #expect(ring.base == 0 && ring.head == 0 && ring.bytes == 0 && ring.lastTimestamp == nil && !ring.hasVideo)
        #expect(ring.joinPoint.sequence == 0 && ring.joinPoint.prelude.isEmpty && !ring.joinPoint.waitsForKeyframe)
        #expect(ring.lastKeyframe(from: 0) == nil)
    }

    @Test func joinersStartAtTheNewestKeyframe() throws {
        let it = Ring()
        it.append(try Make.audio(1, at: 0))
        #expect(it.ring.joinPoint.sequence == 1 && !it.ring.joinPoint.waitsForKeyframe, "audio only: live at once")
        it.append(try Make.inter(2, at: 5))
        #expect(it.ring.joinPoint.sequence == 2 && it.ring.joinPoint.waitsForKeyframe && it.ring.hasVideo)
        it.append(try Make.key(3, at: 10))
        it.append(try Make.inter(4, at: 20))
        #expect(it.ring.joinPoint.sequence == 2 && !it.ring.joinPoint.waitsForKeyframe && it.ring.gopStart == 2)
        it.append(try Make.key(5, at: 30))
        #expect(it.ring.gopStart == 4 && it.ring.head == 5 && it.ring.lastTimestamp == 30)
        #expect(it.ring.lastKeyframe(from: 4) == 4 && it.ring.lastKeyframe(from: 5) == nil)
        #expect(it.ids == [1, 2, 3, 4, 5])
    }

    @Test func headersAreThoseOfTheKeyframe() throws {
        let it = Ring()
        let first = try Make.videoHeader(10)
        let second = try Make.videoHeader(20)
        it.ring.setPrelude([first])
        #expect(self.joins(it.ring) == [10])
        it.append(try Make.key(1, at: 0))
        it.append(second)
        it.ring.setPrelude([second])
        #expect(self.joins(it.ring) == [10], "the pictures from the keyframe on need the old header; the new one comes in its place")
        it.append(try Make.key(2, at: 40))
        #expect(self.joins(it.ring) == [20])
        it.ring.dropGOP()
        #expect(it.ring.joinPoint.sequence == it.ring.head && it.ring.joinPoint.waitsForKeyframe && self.joins(it.ring) == [20])
        it.ring.endStream()
        #expect(self.joins(it.ring) == [] && !it.ring.joinPoint.waitsForKeyframe && it.ring.livePrelude.isEmpty)
    }

    @Test func rejoinNotAtPicturesSeenBefore() throws {
        let it = Ring()
        it.ring.setPrelude([try Make.videoHeader(10)])
        it.append(try Make.key(1, at: 0))
        it.append(try Make.inter(2, at: 10))
        #expect(it.ring.rejoinPoint(from: 0).sequence == 0)
        #expect(it.ring.rejoinPoint(from: 1).sequence == 2 && it.ring.rejoinPoint(from: 1).waitsForKeyframe)
        #expect(it.ring.rejoinPoint(from: 1).prelude.count == 1)
        it.append(try Make.key(3, at: 20))
        #expect(it.ring.rejoinPoint(from: 1).sequence == 2 && !it.ring.rejoinPoint(from: 1).waitsForKeyframe)
    }

    @Test func picturesBoundedInBytes() throws {
        var bounds = FanoutRing.Bounds()
        bounds.gopBytes = 3 * (Ring.overhead + 100)
        let it = Ring(bounds)
        it.append(try Make.key(1, at: 0, bytes: 87))
        it.append(try Make.inter(2, at: 0, bytes: 87))
        it.append(try Make.inter(3, at: 0, bytes: 87))
        #expect(it.ring.gopStart == 0 && it.ring.bytes == bounds.gopBytes)
        it.append(try Make.audio(4, at: 0))
        #expect(it.ring.gopStart == nil && it.ring.joinPoint.waitsForKeyframe && it.ring.joinPoint.sequence == 4)
        #expect(it.ids == [1, 2, 3, 4], "who is in the middle of them gets them all the same")
        it.append(try Make.key(5, at: 0))
        #expect(it.ring.gopStart == 4)
    }

    @Test func picturesBoundedInTime() throws {
        var bounds = FanoutRing.Bounds()
        bounds.gopMs = 1_000
        let it = Ring(bounds)
        it.append(try Make.key(1, at: 0), nowMs: 50)
        it.append(try Make.audio(2, at: 0), nowMs: 1_050)
        #expect(it.ring.gopStart == 0)
        it.append(try Make.audio(3, at: 0), nowMs: 1_051)
        #expect(it.ring.gopStart == nil)
    }

    @Test func trimKeepsWhatViewersAndJoinersNeed() throws {
        let it = Ring()
        for id in 1...4 { it.append(try Make.audio(id, at: 0)) }
        it.append(try Make.key(5, at: 0))
        it.append(try Make.inter(6, at: 0))
        it.ring.trim(below: 2)
        #expect(it.ids == [3, 4, 5, 6] && it.ring.base == 2 && it.ring.head == 6)
        it.ring.trim(below: 1)
        #expect(it.ring.base == 2)
        it.ring.trim(below: 6)
        #expect(it.ids == [5, 6] && it.ring.gopStart == 4)
        it.ring.dropGOP()
        it.ring.trim(below: 6)
        #expect(it.ids == [] && it.ring.bytes == 0 && it.ring.base == 6 && it.ring.head == 6)
        it.append(try Make.audio(7, at: 9))
        #expect(it.ids == [7] && it.ring.base == 6)
    }

    @Test func totalBound() throws {
        var bounds = FanoutRing.Bounds()
        bounds.totalBytes = 10 * (Ring.overhead + 13)
        let it = Ring(bounds)
        it.append(try Make.key(1, at: 0, bytes: 0))
        for id in 2...10 { it.append(try Make.inter(id, at: 0, bytes: 0)) }
        #expect(it.ring.base == 0 && it.ring.bytes == bounds.totalBytes && it.ring.gopStart == 0)
        it.append(try Make.inter(11, at: 0, bytes: 0))
        #expect(it.ring.base == 1 && it.ring.bytes == bounds.totalBytes)
        #expect(it.ring.gopStart == nil, "without their keyframe the pictures are of no use to joiners")
        it.append(try Make.key(12, at: 0, bytes: 1 << 16))
        #expect(it.ids == [12], "one message may be over the bound by itself")
        #expect(it.ring.gopStart == 11)
    }

    /// The bound counts the true cost of empty messages, not their bytes on the wire.
    @Test func tinyMessagesCount() throws {
        var bounds = FanoutRing.Bounds()
        bounds.totalBytes = 100_000
        let it = Ring(bounds)
        for _ in 0..<10_000 { it.append(.dried) }
        #expect(it.ring.bytes <= 100_000 && it.ring.head - it.ring.base <= 100_000 / MemoryLayout<EncodedMessage>.stride)
    }

    @Test func aChangeIsNotTheStreamsFirstMessage() throws {
        let it = Ring()
        it.append(.arrived)
        #expect(it.ring.firstTimestamp == nil)
        it.append(try Make.key(1, at: 3_600_000))
        #expect(it.ring.firstTimestamp == 3_600_000)
    }

    @Test func lastChangeOutlivesItsMessage() throws {
        let it = Ring()
        #expect(it.ring.lastChange == nil)
        it.append(.arrived)
        it.append(try Make.audio(1, at: 0))
        it.ring.trim(below: 2)
        #expect(it.ring.lastChange?.sequence == 0 && it.ring.lastChange?.change == .arrived)
        it.append(.left)
        #expect(it.ring.lastChange?.sequence == 2 && it.ring.lastChange?.change == .left)
    }
}
