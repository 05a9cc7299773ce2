import NIOCore
import RTMP
import Testing

/// Bytes and the AMF0 values they encode.
struct AMF0Vector: Sendable, CustomTestStringConvertible {
    let origin: String
    let hex: String
    let values: [AMF0Value]
    /// False when the bytes are legal but not the ones our encoder chooses.
    let isCanonical: Bool

    init(_ origin: String, _ hex: String, _ values: [AMF0Value], isCanonical: Bool = true) {
        self.origin = origin
        self.hex = hex
        self.values = values
        self.isCanonical = isCanonical
    }

    var testDescription: String { origin }
    var buffer: ByteBuffer { amfBuffer(hex) }

    static let all = specification + foreign
}

/// Bytes and the AMF3 values they encode.
struct AMF3Vector: Sendable, CustomTestStringConvertible {
    let origin: String
    let hex: String
    let values: [AMF3Value]
    /// False when the bytes are legal but not the ones our encoder chooses (it uses no string or traits references).
    let isCanonical: Bool

    init(_ origin: String, _ hex: String, _ values: [AMF3Value], isCanonical: Bool = true) {
        self.origin = origin
        self.hex = hex
        self.values = values
        self.isCanonical = isCanonical
    }

    var testDescription: String { origin }
    var buffer: ByteBuffer { amfBuffer(hex) }
}

/// Bytes from hexadecimal digits; white space is skipped.
func amfBuffer(_ hex: String) -> ByteBuffer {
    let digits = hex.compactMap(\.hexDigitValue)
    precondition(digits.count.isMultiple(of: 2), "half a byte in \(hex)")
    var buffer = ByteBuffer()
    for index in stride(from: 0, to: digits.count, by: 2) { buffer.writeInteger(UInt8(digits[index] << 4 | digits[index + 1])) }
    return buffer
}

/// Decodes all of `buffer` as AMF0 and returns the error, if any.
func amf0Error(_ buffer: ByteBuffer, limits: AMFLimits = .init()) -> AMFError? {
    var decoder = AMF0Decoder(buffer, limits: limits)
    do throws(AMFError) {
        _ = try decoder.all()
        return nil
    } catch {
        return error
    }
}

/// Decodes all of `buffer` as AMF3 and returns the error, if any.
func amf3Error(_ buffer: ByteBuffer, limits: AMFLimits = .init()) -> AMFError? {
    var decoder = AMF3Decoder(buffer, limits: limits)
    do throws(AMFError) {
        _ = try decoder.all()
        return nil
    } catch {
        return error
    }
}
