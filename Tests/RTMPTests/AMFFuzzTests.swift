import NIOCore
import RTMP
import Testing

/// Decodes mutated vectors with both decoders and encodes the results again. Seeded, so that a failure repeats.
@Suite struct AMFFuzzTests {
    /// xorshift64.
    private struct Generator: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return state
        }
    }

    @Test func `no mutated input traps a decoder, and what decodes encodes again`() {
        let corpus = (AMF0Vector.all.map(\.buffer) + AMF3Vector.all.map(\.buffer)).map { Array($0.readableBytesView.prefix(160)) }
        var generator = Generator(state: 0x9E37_79B9_7F4A_7C15)
        var decoded = 0
        for round in 0..<60_000 {
            var bytes = corpus[round % corpus.count]
            mutate(&bytes, using: &generator)
            if amfFuzzAMF0(bytes) { decoded += 1 }
            if amfFuzzAMF3(bytes) { decoded += 1 }
        }
        #expect(decoded > 1_000)
    }

    private func mutate(_ bytes: inout [UInt8], using generator: inout Generator) {
        for _ in 0...Int(generator.next() % 4) {
            let choice = generator.next()
            let at = bytes.isEmpty ? 0 : Int(choice >> 8) & 0xFFFF % bytes.count
            let byte = UInt8(truncatingIfNeeded: choice >> 32)
            switch choice & 7 {
            case 0 where !bytes.isEmpty: bytes[at] = byte
            case 1 where !bytes.isEmpty: bytes[at] ^= 1 << (byte & 7)
            case 2 where !bytes.isEmpty: bytes[at] = [0x00, 0x01, 0x7F, 0x80, 0xFF, 0x09, 0x0A, 0x11][Int(byte & 7)]
            case 3 where !bytes.isEmpty: bytes.remove(at: at)
            case 4: bytes.insert(byte & 0x1F, at: at)
            case 5: bytes.removeLast(Int(byte) % (bytes.count + 1))
            case 6: bytes.append(contentsOf: bytes[at...].prefix(Int(byte & 31)))
            default: bytes.insert(byte, at: at)
            }
        }
    }
}

/// Returns whether `bytes` hold AMF0 values. Those must be the same after encoding and decoding.
@discardableResult
func amfFuzzAMF0(_ bytes: [UInt8]) -> Bool {
    var decoder = AMF0Decoder(ByteBuffer(bytes: bytes))
    guard let values = try? decoder.all() else { return false }
    _ = decoder.resolve(UInt16(truncatingIfNeeded: bytes.count))
    var buffer = ByteBuffer()
    for value in values { buffer.writeAMF0(value) }
    var again = AMF0Decoder(buffer)
    let repeated = try? again.all()
    #expect(repeated == values, "\(bytes)")
    return !values.isEmpty
}

/// Returns whether `bytes` hold AMF3 values. Those must be the same after encoding and decoding.
@discardableResult
func amfFuzzAMF3(_ bytes: [UInt8]) -> Bool {
    var decoder = AMF3Decoder(ByteBuffer(bytes: bytes))
    guard let values = try? decoder.all() else { return false }
    var buffer = ByteBuffer()
    for value in values { buffer.writeAMF3(value) }
    var again = AMF3Decoder(buffer)
    let repeated = try? again.all()
    #expect(repeated == values, "\(bytes)")
    return !values.isEmpty
}
