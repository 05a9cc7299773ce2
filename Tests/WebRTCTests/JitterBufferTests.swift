import Testing

@testable import WebRTC

@Suite struct JitterBufferTests {
    private var buffer = JitterBuffer(waitMs: 100, most: 64)

    private static func packet(_ index: UInt64) -> RTPPacket {
        RTPPacket(payloadType: 96, isMarked: false, index: index, time: 0, source: 1, payload: [UInt8(truncatingIfNeeded: index)])
    }

    private mutating func give(_ indices: [UInt64], nowMs: Int64 = 0) {
        for index in indices { _ = self.buffer.append(Self.packet(index), nowMs: nowMs) }
    }

    /// The indices that are out now; a gap as a negative count.
    private mutating func pop(nowMs: Int64 = 0) -> [Int] {
        var found: [Int] = []
        while let next = self.buffer.pop(nowMs: nowMs) {
            switch next {
            case .packet(let packet): found.append(Int(packet.index))
            case .gap(let count): found.append(-count)
            }
        }
        return found
    }

    @Test mutating func packetsThatOvertakeEachOther() {
        self.give([10, 12, 11, 15, 13])
        #expect(self.pop() == [10, 11, 12, 13])
        self.give([14])
        #expect(self.pop() == [14, 15])
    }

    /// One that does not come is given up after the time for it, with those behind it.
    @Test mutating func oneThatIsLost() {
        self.give([10, 13])
        #expect(self.pop(nowMs: 99) == [10])
        #expect(self.pop(nowMs: 100) == [-2, 13])
        // Late, it is no use.
        let isTaken = self.buffer.append(Self.packet(11), nowMs: 101)
        #expect(!isTaken && self.pop(nowMs: 101) == [])
    }

    @Test mutating func oneThatComesTwice() {
        self.give([10])
        let isTaken = self.buffer.append(Self.packet(10), nowMs: 0)
        #expect(!isTaken && self.pop() == [10])
    }

    /// It is asked for when it is not merely overtaken, again after a while, and not for ever.
    @Test mutating func asking() {
        self.give([10, 13])
        var asked: [(Int64, [UInt16])] = []
        for nowMs in Int64(0)...2_000 {
            let numbers = self.buffer.ask(nowMs: nowMs)
            if !numbers.isEmpty { asked.append((nowMs, numbers)) }
        }
        #expect(asked.map(\.0) == [10, 70, 130, 190, 250])
        #expect(asked.allSatisfy { $0.1 == [11, 12] })
        self.give([11], nowMs: 2_000)
        #expect(self.buffer.ask(nowMs: 3_000) == [])
    }

    /// A leap of the numbers is a new beginning, with one gap and no thousand questions.
    @Test mutating func aLeap() {
        self.give([10])
        #expect(self.pop() == [10])
        self.give([10_000], nowMs: 5)
        #expect(self.buffer.ask(nowMs: 100) == [])
        #expect(self.pop(nowMs: 5) == [-9_989, 10_000])
    }

    /// Packets behind one that is lost fill the buffer: it is given up before its time.
    @Test mutating func whatIsFull() {
        self.give([10])
        #expect(self.pop() == [10])
        self.give(Array(12..<76))
        #expect(self.pop() == [-1] + Array(12..<76))
    }
}
