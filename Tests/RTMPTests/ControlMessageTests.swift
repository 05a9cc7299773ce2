import NIOCore
import RTMP
import Testing

/// Protocol and user control messages, encoded and decoded from one table (RTMP 1.0 §5.4, §7.1.7).
@Suite struct ControlMessageTests {
    private static let table: [(control: ControlMessage, type: UInt8, body: [UInt8])] = [
        (.setChunkSize(128), 1, [0, 0, 0, 0x80]),
        (.setChunkSize(0x7FFF_FFFF), 1, [0x7F, 0xFF, 0xFF, 0xFF]),
        (.abort(chunkStream: 65599), 2, [0, 1, 0, 0x3F]),
        (.acknowledgement(0xFFFF_FFFF), 3, [0xFF, 0xFF, 0xFF, 0xFF]),
        (.windowAcknowledgementSize(2_500_000), 5, [0, 0x26, 0x25, 0xA0]),
        (.setPeerBandwidth(2_500_000, .hard), 6, [0, 0x26, 0x25, 0xA0, 0]),
        (.setPeerBandwidth(2_500_000, .soft), 6, [0, 0x26, 0x25, 0xA0, 1]),
        (.setPeerBandwidth(2_500_000, .dynamic), 6, [0, 0x26, 0x25, 0xA0, 2]),
        (.userControl(.streamBegin(1)), 4, [0, 0, 0, 0, 0, 1]),
        (.userControl(.streamEOF(2)), 4, [0, 1, 0, 0, 0, 2]),
        (.userControl(.streamDry(3)), 4, [0, 2, 0, 0, 0, 3]),
        (.userControl(.setBufferLength(streamID: 1, milliseconds: 3000)), 4, [0, 3, 0, 0, 0, 1, 0, 0, 0x0B, 0xB8]),
        (.userControl(.streamIsRecorded(4)), 4, [0, 4, 0, 0, 0, 4]),
        (.userControl(.pingRequest(0x0102_0304)), 4, [0, 6, 1, 2, 3, 4]),
        (.userControl(.pingResponse(0xFFFF_FFFE)), 4, [0, 7, 0xFF, 0xFF, 0xFF, 0xFE]),
        (.userControl(.other(31)), 4, [0, 31]),
        (.userControl(.other(5)), 4, [0, 5]),
    ]

    @Test(arguments: table) func `the layout is the same both ways`(control: ControlMessage, type: UInt8, body: [UInt8]) throws {
        #expect(control.message == Message(type, stream: 0, body))
        #expect(try ControlMessage(Message(type, stream: 0, body)) == control)
        // Bytes after the layout, the message stream and the timestamp are ignored.
        #expect(try ControlMessage(Message(type, time: 9, stream: 5, body + (type == 4 ? [] : [9, 9]))) == control)
    }

    @Test(arguments: table) func `one byte too few is refused by name`(control: ControlMessage, type: UInt8, body: [UInt8]) {
        // Set Peer Bandwidth may omit the limit type.
        let least = type == 6 ? 4 : body.count
        for length in 0..<least {
            #expect(throws: RTMPError.shortControlMessage(type: type, length: length)) {
                try ControlMessage(Message(type, stream: 0, Array(body.prefix(length))))
            }
        }
    }

    @Test func `Set Peer Bandwidth without a limit type, or with an unknown one, is dynamic`() throws {
        #expect(try ControlMessage(Message(6, [0, 0, 1, 0])) == .setPeerBandwidth(256, .dynamic))
        #expect(try ControlMessage(Message(6, [0, 0, 1, 0, 7])) == .setPeerBandwidth(256, .dynamic))
    }

    @Test(arguments: [5, 8, 26, 31, 32, 0xFFFF] as [UInt16]) func `unknown events pass whatever they carry`(event: UInt16) throws {
        let head = [UInt8(event >> 8), UInt8(event & 0xFF)]
        for rest in [[], [1], [1, 2, 3, 4], pattern(50)] as [[UInt8]] {
            #expect(try ControlMessage(Message(4, head + rest)) == .userControl(.other(event)))
        }
    }

    @Test(arguments: [0, 7, 8, 9, 15, 17, 18, 20, 22, 255] as [UInt8]) func `other types are none of its business`(type: UInt8) throws {
        #expect(try ControlMessage(Message(type, [])) == nil)
    }
}
