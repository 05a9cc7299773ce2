package import NIOCore

/// RTMP message type ids (RTMP 1.0 §5.4, §6, §7.1). Unknown ids keep their number.
package struct MessageType: RawRepresentable, Hashable, Sendable {
    package var rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let setChunkSize = MessageType(rawValue: 1)
    package static let abort = MessageType(rawValue: 2)
    package static let acknowledgement = MessageType(rawValue: 3)
    package static let userControl = MessageType(rawValue: 4)
    package static let windowAcknowledgementSize = MessageType(rawValue: 5)
    package static let setPeerBandwidth = MessageType(rawValue: 6)
    package static let audio = MessageType(rawValue: 8)
    package static let video = MessageType(rawValue: 9)
    package static let dataAMF3 = MessageType(rawValue: 15)
    package static let sharedObjectAMF3 = MessageType(rawValue: 16)
    package static let commandAMF3 = MessageType(rawValue: 17)
    package static let dataAMF0 = MessageType(rawValue: 18)
    package static let sharedObjectAMF0 = MessageType(rawValue: 19)
    package static let commandAMF0 = MessageType(rawValue: 20)
    package static let aggregate = MessageType(rawValue: 22)

    /// Whether it is metadata or other script data, in either encoding.
    package var isData: Bool { self == .dataAMF0 || self == .dataAMF3 }
}

/// One whole RTMP message, as it leaves the chunk decoder or before it enters the encoder. A plain value.
package struct Message: Sendable, Equatable {
    package var type: MessageType
    /// Message stream id; 0 is the connection itself.
    package var streamID: UInt32
    /// Milliseconds, modulo 2^32 (RTMP 1.0 §4, §5.3.1).
    package var timestamp: UInt32
    package var payload: ByteBuffer

    package init(type: MessageType, streamID: UInt32 = 0, timestamp: UInt32 = 0, payload: ByteBuffer) {
        self.type = type
        self.streamID = streamID
        self.timestamp = timestamp
        self.payload = payload
    }

    /// The payload of a command or data message from the start of its AMF0. Types 15 and 17 are a zero byte, then AMF0 whose values may switch to
    /// AMF3 (marker 0x11).
    package var amf0Payload: ByteBuffer {
        var payload = self.payload
        if self.type == .commandAMF3 || self.type == .dataAMF3, payload.getInteger(at: payload.readerIndex, as: UInt8.self) == 0 {
            payload.moveReaderIndex(forwardBy: 1)
        }
        return payload
    }
}
