package import NIOCore
package import RTMP

/// Bytes of chunks as a malicious peer may write them.
package struct RawBytes {
    package private(set) var buffer = ByteBuffer()

    package init() {}

    /// A fmt 0 header (RTMP 1.0 §5.3.1.2.1) with any claims, true or not; the chunk stream id in its shortest form.
    package mutating func header(chunkStream: UInt32 = 3, timestamp: UInt32 = 0, length: UInt32, type: MessageType, streamID: UInt32 = 0) {
        switch chunkStream {
        case ..<64: self.buffer.writeInteger(UInt8(chunkStream))
        case ..<320: self.buffer.writeMultipleIntegers(UInt8(0), UInt8(chunkStream - 64))
        default:
            self.buffer.writeInteger(UInt8(1))
            self.buffer.writeInteger(UInt16(chunkStream - 64), endianness: .little)
        }
        for field in [timestamp, length] {
            self.buffer.writeMultipleIntegers(UInt8(truncatingIfNeeded: field >> 16), UInt16(truncatingIfNeeded: field))
        }
        self.buffer.writeInteger(type.rawValue)
        self.buffer.writeInteger(streamID, endianness: .little)
    }

    package mutating func bytes(_ bytes: [UInt8]) { self.buffer.writeBytes(bytes) }

    package mutating func repeating(_ byte: UInt8, _ count: Int) { self.buffer.writeRepeatingByte(byte, count: count) }
}

/// A generator whose numbers are the same in every run (SplitMix64).
package struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64
    package init(_ seed: UInt64) { self.state = seed }

    package mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = self.state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    package mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255, using: &self) } }
}

extension RawClient {
    /// First arguments of the `_result` and `_error` answers so far, by transaction.
    package var results: [Double: AMF0Value] {
        var results: [Double: AMF0Value] = [:]
        for received in self.received where received.message.type == .commandAMF0 {
            guard let command = try? Command(received.message, limits: AMFLimits()), ["_result", "_error"].contains(command.name) else {
                continue
            }
            results[command.transaction] = command.arguments.first ?? .null
        }
        return results
    }
}
