import NIOCore

/// Splits an aggregate message (type 22, RTMP 1.0 §7.1.6) into its inner messages.
///
/// ```
/// +------+--------+-----------+-----+--------+---------+-----------------+
/// | type | length | timestamp | ext | stream | payload | back pointer    |   repeated
/// |  8   |   24   |    24     |  8  |   24   | length  | 32 (length+11)  |
/// +------+--------+-----------+-----+--------+---------+-----------------+
/// ```
package struct Aggregate {
    private var body: ByteBuffer
    private let outerTimestamp: UInt32
    private let streamID: UInt32
    private var firstTimestamp: UInt32?

    package init(_ message: Message) {
        self.body = message.payload
        self.outerTimestamp = message.timestamp
        self.streamID = message.streamID
    }

    /// Returns the next inner message; `nil` at the end. Shifts inner timestamps so that the first equals the aggregate's own.
    package mutating func next() throws(RTMPError) -> Message? {
        guard self.body.readableBytes > 0 else { return nil }
        guard
            let type = self.body.readInteger(as: UInt8.self),
            let length = self.body.readUInt24(),
            let low = self.body.readUInt24(),
            let high = self.body.readInteger(as: UInt8.self),
            self.body.readUInt24() != nil,
            let payload = self.body.readSlice(length: Int(length))
        else { throw .malformedAggregate }
        // Some encoders omit the last message's back pointer.
        if self.body.readableBytes > 0, self.body.readInteger(as: UInt32.self) == nil { throw .malformedAggregate }
        let inner = UInt32(high) << 24 | low
        let first = self.firstTimestamp ?? inner
        self.firstTimestamp = first
        // RTMP 1.0 §7.1.6: all timestamps shift by the offset between the aggregate's and its first message's.
        return Message(
            type: MessageType(rawValue: type), streamID: self.streamID,
            timestamp: self.outerTimestamp &+ (inner &- first), payload: payload)
    }
}
