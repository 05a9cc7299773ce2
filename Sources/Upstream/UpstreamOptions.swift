/// How a link behaves; a plain value. Times in milliseconds, sizes in bytes.
package struct UpstreamOptions: Sendable {
    /// What speaks against connecting to an address (4 or 16 bytes, network order), in words; nil: nothing does. Asked on the link's thread
    /// for the very address that is then connected to.
    package var objection: @Sendable ([UInt8]) -> String?
    /// Why so many descriptors may not be opened now, in words; nil: they may. Asked before they are; must not block.
    package var shortage: @Sendable (_ count: Int) -> String? = { _ in nil }
    /// PEM file of authorities to be trusted beside the system's.
    package var caFile: String?
    /// Name lookup, TCP and TLS together.
    package var connectTimeoutMs = 10_000
    /// From the connection to "publish started" or "play started".
    package var handshakeTimeoutMs = 10_000
    /// Pulling: without a media message.
    package var silenceMs = 15_000
    /// Pushing: without the peer taking a byte.
    package var sendStallMs = 10_000
    /// Pulling: the buffer that the server is told of (SetBufferLength, RTMP 1.0 §7.1.7).
    package var bufferMs = 3_000
    /// Pushing: what may wait to be sent. Beyond it video is dropped up to a keyframe.
    package var queueBytes = 16 << 20
    /// Pushing: how long a frame may wait.
    package var queueMs = 5_000
    /// Pushing: how long audio may wait once there is no video left to drop.
    package var queueAudioMs = 30_000
    /// Pushing: each connection begins at timestamp 0, as services expect of a publisher; otherwise the stream's own times go out.
    package var timestampsFromZero = true
    package var reconnect = ReconnectPolicy()
    /// Texts added to the command object of `connect`. Asked for each connection, on the link's thread.
    package var connectProperties: @Sendable () -> [(name: String, value: String)] = { [] }
    /// Pulling: a property of the server's statuses, and what speaks against going on when it has this text (nil: nothing does). Asked on
    /// the link's thread.
    package var wayObjection: (property: String, objection: @Sendable (String) -> String?)?
    /// Names to addresses; may block, is called on a thread of its own. The system's resolver but in tests.
    var lookup: @Sendable (String) -> Result<[[UInt8]], LookupFailure> = HostLookup.system

    package init(objection: @escaping @Sendable ([UInt8]) -> String?) { self.objection = objection }
}

/// When a link that ended is tried again; a plain value.
package struct ReconnectPolicy: Sendable, Equatable {
    /// Milliseconds before the first new try.
    package var firstMs = 1_000
    /// Milliseconds: no wait is longer, jitter included.
    package var maxMs = 60_000
    /// Each wait is this many times the one before.
    package var factor = 2.0
    /// A wait is this part shorter at most, by chance: links that broke together do not come back together.
    package var jitter = 0.25
    /// Milliseconds of running after which the next wait is the first one again.
    package var stableMs = 30_000
    /// Tries in a row without becoming stable, before the link fails for good; nil: for ever.
    package var maxAttempts: Int?

    package init() {}

    /// Milliseconds to wait after `failures` (1 and up) ends in a row; `random` is in 0..<1.
    package func delayMs(failures: Int, random: Double) -> Int {
        let first = Double(max(self.firstMs, 0))
        let longest = max(Double(self.maxMs), first)
        var delay = first
        for _ in 1..<max(failures, 1) where delay < longest { delay *= max(self.factor, 1) }
        return Int(min(delay, longest) * (1 - min(max(self.jitter, 0), 1) * random))
    }
}
