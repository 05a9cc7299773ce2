import NIOCore
import RTMP

extension FuzzTarget {
    /// Decodes AMF0. The values survive encoding and decoding, and limits hold.
    static let amf0 = FuzzTarget("amf0", maxLength: 2_048) { input in
        guard let values = readAMF0(ByteBuffer(bytes: input.rest), AMFLimits()) else { return }
        var written = ByteBuffer()
        for value in values { written.writeAMF0(value) }
        expect(readAMF0(written, AMFLimits()) == values, "written and read, other values")
        let tight = AMFLimits(depth: 3, entriesPerContainer: 4, totalValues: 12, stringBytes: 64)
        guard let few = readAMF0(ByteBuffer(bytes: input.rest), tight) else { return }
        expect(few == values, "under tight limits, other values")
        expect(few.reduce(0) { $0 + $1.count } <= tight.totalValues, "too many values")
        expect(few.allSatisfy { $0.depth <= tight.depth }, "too deep")
    }

    /// Decodes AMF3. The values survive encoding and decoding, and tight limits do not change them.
    static let amf3 = FuzzTarget("amf3", maxLength: 2_048) { input in
        guard let values = readAMF3(ByteBuffer(bytes: input.rest), AMFLimits()) else { return }
        var written = ByteBuffer()
        for value in values { written.writeAMF3(value) }
        expect(readAMF3(written, AMFLimits()) == values, "written and read, other values")
        let tight = AMFLimits(depth: 3, entriesPerContainer: 4, totalValues: 12, stringBytes: 64)
        if let few = readAMF3(ByteBuffer(bytes: input.rest), tight) { expect(few == values, "under tight limits, other values") }
    }
}

private func readAMF0(_ bytes: ByteBuffer, _ limits: AMFLimits) -> [AMF0Value]? {
    var decoder = AMF0Decoder(bytes, limits: limits)
    do throws(AMFError) {
        let values = try decoder.all()
        for index in [0, 1, UInt16(truncatingIfNeeded: bytes.readableBytes), .max] { _ = decoder.resolve(index) }
        return values
    } catch {
        expect(!"\(error)".isEmpty, "an error without words")
        return nil
    }
}

private func readAMF3(_ bytes: ByteBuffer, _ limits: AMFLimits) -> [AMF3Value]? {
    var decoder = AMF3Decoder(bytes, limits: limits)
    do throws(AMFError) {
        let values = try decoder.all()
        for index in [-1, 0, 1, bytes.readableBytes, .max] { _ = decoder.resolve(index) }
        return values
    } catch {
        expect(!"\(error)".isEmpty, "an error without words")
        return nil
    }
}

extension AMF0Value {
    private var inner: [AMF0Value] {
        switch self {
        case .object(let properties), .ecmaArray(let properties), .typedObject(_, let properties): properties.map(\.value)
        case .strictArray(let values): values
        default: []
        }
    }

    /// The number of values in it, including itself but not those inside AMF3.
    fileprivate var count: Int { self.inner.reduce(1) { $0 + $1.count } }
    /// The nesting depth of its containers.
    fileprivate var depth: Int {
        switch self {
        case .object, .ecmaArray, .typedObject, .strictArray: 1 + (self.inner.map(\.depth).max() ?? 0)
        default: 0
        }
    }
}
