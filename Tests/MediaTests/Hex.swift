import NIOCore

/// Bytes from hexadecimal digits; white space is ignored.
func hex(_ text: String) -> ByteBuffer {
    var buffer = ByteBuffer()
    var high: UInt8?
    for character in text where !character.isWhitespace {
        guard let digit = character.hexDigitValue.map(UInt8.init) else { fatalError("not hex: \(character)") }
        if let first = high {
            buffer.writeInteger(first << 4 | digit)
            high = nil
        } else {
            high = digit
        }
    }
    return buffer
}

func hexText(_ buffer: ByteBuffer) -> String {
    buffer.readableBytesView.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}
