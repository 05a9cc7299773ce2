import NIOCore

/// User control events (type 4, RTMP 1.0 §7.1.7).
package enum UserControlEvent: Sendable, Equatable {
    case streamBegin(UInt32)
    case streamEOF(UInt32)
    case streamDry(UInt32)
    case setBufferLength(streamID: UInt32, milliseconds: UInt32)
    case streamIsRecorded(UInt32)
    case pingRequest(UInt32)
    case pingResponse(UInt32)
    /// An unused event type; its body is dropped.
    case other(UInt16)
}

/// The type byte of Set Peer Bandwidth (RTMP 1.0 §5.4.5).
package enum PeerBandwidthLimit: UInt8, Sendable {
    case hard = 0
    case soft = 1
    case dynamic = 2
}

/// Protocol control and user control messages, types 1–6, decoded.
package enum ControlMessage: Sendable, Equatable {
    case setChunkSize(UInt32)
    case abort(chunkStream: UInt32)
    case acknowledgement(UInt32)
    case userControl(UserControlEvent)
    case windowAcknowledgementSize(UInt32)
    case setPeerBandwidth(UInt32, PeerBandwidthLimit)

    /// Decodes a control message; `nil` for other message types.
    package init?(_ message: Message) throws(RTMPError) {
        var body = message.payload
        let short = RTMPError.shortControlMessage(type: message.type.rawValue, length: body.readableBytes)
        switch message.type {
        case .setChunkSize, .abort, .acknowledgement, .windowAcknowledgementSize:
            guard let value = body.readInteger(as: UInt32.self) else { throw short }
            switch message.type {
            case .setChunkSize: self = .setChunkSize(value)
            case .abort: self = .abort(chunkStream: value)
            case .acknowledgement: self = .acknowledgement(value)
            default: self = .windowAcknowledgementSize(value)
            }
        case .setPeerBandwidth:
            guard let value = body.readInteger(as: UInt32.self) else { throw short }
            // Some encoders omit the limit type; dynamic is the mildest reading.
            let limit = body.readInteger(as: UInt8.self).flatMap(PeerBandwidthLimit.init(rawValue:)) ?? .dynamic
            self = .setPeerBandwidth(value, limit)
        case .userControl:
            guard let event = body.readInteger(as: UInt16.self) else { throw short }
            guard event <= 7 && event != 5 else {
                self = .userControl(.other(event))
                return
            }
            guard let first = body.readInteger(as: UInt32.self) else { throw short }
            switch event {
            case 0: self = .userControl(.streamBegin(first))
            case 1: self = .userControl(.streamEOF(first))
            case 2: self = .userControl(.streamDry(first))
            case 3:
                guard let milliseconds = body.readInteger(as: UInt32.self) else { throw short }
                self = .userControl(.setBufferLength(streamID: first, milliseconds: milliseconds))
            case 4: self = .userControl(.streamIsRecorded(first))
            case 6: self = .userControl(.pingRequest(first))
            default: self = .userControl(.pingResponse(first))
            }
        default:
            return nil
        }
    }

    /// The encoded message, on message stream 0 as the spec requires (RTMP 1.0 §5.4).
    package var message: Message {
        var payload = ByteBuffer()
        let type: MessageType
        switch self {
        case .setChunkSize(let size):
            type = .setChunkSize
            payload.writeInteger(size)
        case .abort(let chunkStream):
            type = .abort
            payload.writeInteger(chunkStream)
        case .acknowledgement(let sequence):
            type = .acknowledgement
            payload.writeInteger(sequence)
        case .windowAcknowledgementSize(let size):
            type = .windowAcknowledgementSize
            payload.writeInteger(size)
        case .setPeerBandwidth(let size, let limit):
            type = .setPeerBandwidth
            payload.writeMultipleIntegers(size, limit.rawValue)
        case .userControl(let event):
            type = .userControl
            switch event {
            case .streamBegin(let id): payload.writeMultipleIntegers(UInt16(0), id)
            case .streamEOF(let id): payload.writeMultipleIntegers(UInt16(1), id)
            case .streamDry(let id): payload.writeMultipleIntegers(UInt16(2), id)
            case .setBufferLength(let id, let milliseconds): payload.writeMultipleIntegers(UInt16(3), id, milliseconds)
            case .streamIsRecorded(let id): payload.writeMultipleIntegers(UInt16(4), id)
            case .pingRequest(let value): payload.writeMultipleIntegers(UInt16(6), value)
            case .pingResponse(let value): payload.writeMultipleIntegers(UInt16(7), value)
            case .other(let event): payload.writeInteger(event)
            }
        }
        return Message(type: type, payload: payload)
    }
}
