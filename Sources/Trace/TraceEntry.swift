/// The kind of event that a trace's entry records.
package enum TraceKind: UInt8, Sendable, CaseIterable {
    /// An RTMP command.
    case command
    /// A protocol or user control message of RTMP.
    case control
    /// The header of another RTMP message: media, data, or of an unknown type.
    case message
    /// An HTTP request with its status.
    case request
    /// A WebSocket control frame.
    case frame
    /// A change of the session itself, such as `admitted` or `closed`.
    case state

    package var word: String { "\(self)" }
}

/// The sender of what an entry records. `here` is the server itself, for states.
package enum TraceDirection: UInt8, Sendable, CaseIterable {
    case received
    case sent
    case here

    package var word: String { "\(self)" }
}

/// One entry of a trace, unpacked. A plain value.
package struct TraceEntry: Sendable, Equatable {
    /// Milliseconds on the clock that the session passes in.
    package var atMs: Int64
    package var direction: TraceDirection
    package var kind: TraceKind
    /// The command, the kind of message, or the state.
    package var name: String
    /// The remaining details, as the writer rendered and redacted them.
    package var text: String
    /// Message stream id.
    package var streamID: UInt32?
    package var transaction: UInt32?
    package var header: TracedHeader?

    package init(
        atMs: Int64, _ direction: TraceDirection, _ kind: TraceKind, _ name: String, _ text: String = "", streamID: UInt32? = nil,
        transaction: UInt32? = nil, header: TracedHeader? = nil
    ) {
        self.atMs = atMs
        self.direction = direction
        self.kind = kind
        self.name = name
        self.text = text
        self.streamID = streamID
        self.transaction = transaction
        self.header = header
    }
}

/// The header of an RTMP message, without its payload. A plain value.
///
///     | timestamp 32 | length 24, type 8 | message stream id 24, flags 8 |
package struct TracedHeader: Sendable, Equatable {
    /// The first six flags have the bits of a media tag's flags.
    package struct Flags: OptionSet, Sendable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        package static let keyframe = Flags(rawValue: 1 << 0)
        package static let sequenceHeader = Flags(rawValue: 1 << 1)
        package static let endOfSequence = Flags(rawValue: 1 << 2)
        package static let metadata = Flags(rawValue: 1 << 3)
        package static let multitrack = Flags(rawValue: 1 << 4)
        package static let enhanced = Flags(rawValue: 1 << 5)
        /// The header of the media in the message cannot be read.
        package static let unreadable = Flags(rawValue: 1 << 7)

        /// The flags of a media tag, of which the lowest six count.
        package init(tag: UInt16) { self.rawValue = UInt8(truncatingIfNeeded: tag) & 0x3F }
    }

    /// Milliseconds, modulo 2^32.
    package let timestamp: UInt32
    /// Message type id.
    package let type: UInt8
    /// Bytes of payload.
    package let length: UInt32
    /// At most ``largestStreamID``, which also represents any larger id. The server itself assigns small ones.
    package let streamID: UInt32
    package let flags: Flags

    static let largestStreamID: UInt32 = 0xFF_FFFF

    package init(timestamp: UInt32, type: UInt8, length: Int, streamID: UInt32, flags: Flags = []) {
        self.timestamp = timestamp
        self.type = type
        self.length = UInt32(truncatingIfNeeded: min(length, 0xFF_FFFF))
        self.streamID = min(streamID, Self.largestStreamID)
        self.flags = flags
    }

    /// Three words, as in the picture above.
    var packed: (UInt32, UInt32, UInt32) {
        (self.timestamp, self.length << 8 | UInt32(self.type), self.streamID << 8 | UInt32(self.flags.rawValue))
    }

    init(packed: (UInt32, UInt32, UInt32)) {
        self.timestamp = packed.0
        self.length = packed.1 >> 8
        self.type = UInt8(truncatingIfNeeded: packed.1)
        self.streamID = packed.2 >> 8
        self.flags = Flags(rawValue: UInt8(truncatingIfNeeded: packed.2))
    }

    /// The name of the message type (RTMP 1.0 §5.4, §7.1).
    package var name: String {
        switch self.type {
        case 8: "audio"
        case 9: "video"
        case 15, 18: "data"
        case 16, 19: "sharedObject"
        case 17, 20: "command"
        case 22: "aggregate"
        default: "type\(self.type)"
        }
    }

    /// The names of the flags, in the order of their bits.
    package var flagNames: [String] {
        let words: [(Flags, String)] = [
            (.keyframe, "keyframe"), (.sequenceHeader, "sequenceHeader"), (.endOfSequence, "endOfSequence"), (.metadata, "metadata"),
            (.multitrack, "multitrack"), (.enhanced, "enhanced"), (.unreadable, "unreadable"),
        ]
        return words.filter { self.flags.contains($0.0) }.map(\.1)
    }
}
