/// The messages of one connection that were skipped because they could not be read. A value, owned by the connection.
struct SkippedMessages {
    /// Messages skipped so far.
    private(set) var count: UInt64 = 0
    /// Unreadable audio and video messages since the last one that the stream accepted.
    private var run = 0
    /// Bytes that the stream had accepted when the run began.
    private var acceptedBytes: UInt64 = 0

    /// A push ends after this many unreadable audio and video messages in a row.
    static let longestRun = 256
    /// Bytes of a message without room for media. Devices send such in place of an empty one, and they end no push.
    static let emptyBytes = 2

    /// Counts one message. Returns whether it is to be recorded: the first, the second, the fourth and so on, so that a flood does not push
    /// everything else out of the trace.
    mutating func add() -> Bool {
        self.count &+= 1
        return self.count & (self.count &- 1) == 0
    }

    /// Notes that the message is audio or video of this many bytes. Returns whether the push has sent nothing readable for too long.
    mutating func isRunTooLong(with bytes: Int, acceptedBytes: UInt64) -> Bool {
        guard bytes > Self.emptyBytes else { return false }
        if self.acceptedBytes != acceptedBytes {
            self.acceptedBytes = acceptedBytes
            self.run = 0
        }
        self.run += 1
        return self.run >= Self.longestRun
    }
}
