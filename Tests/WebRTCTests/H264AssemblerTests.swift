import Testing

@testable import WebRTC

@Suite struct H264AssemblerTests {
    private var assembler = H264Assembler()
    private var index: UInt64 = 0

    private mutating func give(_ payload: [UInt8], time: UInt32, isMarked: Bool = false) -> [H264Assembler.Picture] {
        self.index += 1
        return self.assembler.append(
            RTPPacket(payloadType: 96, isMarked: isMarked, index: self.index, time: time, source: 1, payload: payload[...]))
    }

    /// Sets in packets of their own and several slices: one picture.
    @Test mutating func aKeyframeInPieces() {
        #expect(self.give([0x67, 1], time: 9) == [] && self.give([0x68, 2], time: 9) == [])
        #expect(self.give([0x7C, 0x85, 0x80], time: 9) == [] && self.give([0x7C, 0x45, 3], time: 9) == [])
        let done = self.give([0x65, 0x40], time: 9, isMarked: true)
        #expect(done == [.init(units: [[0x67, 1], [0x68, 2], [0x65, 0x80, 3], [0x65, 0x40]], isKeyframe: true, time: 9)])
    }

    /// Some senders mark nothing: the next picture's time ends the last one.
    @Test mutating func withoutMarks() {
        #expect(self.give([0x41, 0x80], time: 1) == [])
        #expect(self.give([0x41, 0x81], time: 2) == [.init(units: [[0x41, 0x80]], isKeyframe: false, time: 1)])
    }

    /// A picture that lacks a packet is left out, whether its beginning or its middle is lost; the next one is whole.
    @Test(arguments: [true, false]) mutating func whatLacksAPacket(_ hasBegun: Bool) {
        if hasBegun { _ = self.give([0x7C, 0x85, 0x80], time: 1) }
        self.assembler.lose()
        #expect(self.give([0x7C, 0x45, 3], time: 1, isMarked: true) == [])
        #expect(self.give([0x41, 0x80, 1], time: 2, isMarked: true).count == 1)
    }

    /// A loss between two pictures costs neither.
    @Test mutating func aWholePictureIsLost() {
        #expect(self.give([0x41, 0x80], time: 1, isMarked: true).count == 1)
        self.assembler.lose()
        #expect(self.give([0x78, 0, 1, 0x67], time: 3) == [])
        #expect(self.give([0x65, 0x80], time: 3, isMarked: true).count == 1)
    }
}
