import NIOCore

/// The request in a publisher's data message.
enum DataFrame {
    /// Relay this payload; AMF0, without its `@setDataFrame`.
    case set(ByteBuffer)
    /// The publisher withdrew its metadata (`@clearDataFrame`).
    case clear

    private static let setName = AMF0Value.string("@setDataFrame")
    private static let clearName = AMF0Value.string("@clearDataFrame")

    init(_ message: Message) {
        let payload = message.amf0Payload
        if let rest = payload.after(Self.setName) {
            self = .set(rest)
        } else {
            self = payload.after(Self.clearName) != nil ? .clear : .set(payload)
        }
    }
}

extension ByteBuffer {
    /// The bytes after the given AMF0 value; `nil` if the buffer does not start with it.
    func after(_ value: AMF0Value) -> ByteBuffer? {
        var expected = ByteBuffer()
        expected.writeAMF0(value)
        var rest = self
        guard let front = rest.readSlice(length: expected.readableBytes), front == expected else { return nil }
        return rest
    }
}
