import NIOCore

/// A command message (types 20 and 17, RTMP 1.0 §7.1.1): name, transaction, command object, arguments. A plain value.
package struct Command: Sendable, Equatable {
    package var name: String
    /// 0 when no answer is expected (RTMP 1.0 §7.2.1).
    package var transaction: Double
    package var object: AMF0Value
    package var arguments: [AMF0Value]

    package init(_ name: String, transaction: Double = 0, object: AMF0Value = .null, arguments: [AMF0Value] = []) {
        self.name = name
        self.transaction = transaction
        self.object = object
        self.arguments = arguments
    }

    /// Decodes a message of type 20 or 17.
    package init(_ message: Message, limits: AMFLimits) throws(RTMPError) {
        var decoder = AMF0Decoder(message.amf0Payload, limits: limits)
        do throws(AMFError) {
            self.name = try decoder.next()?.string ?? ""
            self.transaction = try decoder.next()?.number ?? 0
            self.object = try decoder.next() ?? .null
            self.arguments = try decoder.all()
        } catch {
            throw .malformedCommand(error)
        }
    }

    /// The message that carries this command.
    package func message(streamID: UInt32, amf3: Bool = false) -> Message {
        var payload = ByteBuffer()
        if amf3 { payload.writeInteger(UInt8(0)) }
        payload.writeAMF0(.string(self.name))
        payload.writeAMF0(.number(self.transaction))
        payload.writeAMF0(self.object)
        for argument in self.arguments { payload.writeAMF0(argument) }
        return Message(type: amf3 ? .commandAMF3 : .commandAMF0, streamID: streamID, payload: payload)
    }

    /// The argument at this position as a string; `nil` when absent or of another type.
    package func string(at position: Int) -> String? {
        self.arguments.indices.contains(position) ? self.arguments[position].string : nil
    }

    package func number(at position: Int) -> Double? {
        self.arguments.indices.contains(position) ? self.arguments[position].number : nil
    }

    package func boolean(at position: Int) -> Bool? {
        self.arguments.indices.contains(position) ? self.arguments[position].boolean : nil
    }
}
