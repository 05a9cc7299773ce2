import Support

/// The settings of a link; a plain value. Times in milliseconds, sizes in bytes.
package struct LinkOptions: Sendable {
    /// Returns why an address (4 or 16 bytes, network order) is forbidden; nil when it is allowed. Called on the link's thread with the same address
    /// that is then connected to.
    package var objection: @Sendable ([UInt8]) -> String?
    /// Returns why this many descriptors may not be opened now; nil when they may. Called before opening them; must not block.
    package var shortage: @Sendable (_ count: Int) -> String? = { _ in nil }
    /// A PEM file of authorities trusted beside the system's.
    package var caFile: String?
    /// Name lookup, TCP and TLS together.
    package var connectTimeoutMs = 10_000
    /// The RTMP handshake; after it, the same time again until "publish started" or "play started".
    package var handshakeTimeoutMs = 10_000
    /// Pulling: the longest time without audio or video.
    package var silenceMs = 15_000
    /// Pushing: the longest time in which the peer accepts no byte.
    package var sendStallMs = 10_000
    /// Pulling: the buffer length announced to the server (SetBufferLength, RTMP 1.0 §7.1.7).
    package var bufferMs = 3_000
    /// Pushing: the queue's limit. Beyond it video is dropped up to a keyframe.
    package var queueBytes = 16 << 20
    /// Pushing: the longest time a frame may wait.
    package var queueMs = 5_000
    /// Pushing: the longest time audio may wait when no video is left to drop.
    package var queueAudioMs = 30_000
    /// Pushing: starts each connection at timestamp 0, as services expect. Otherwise the stream's own times are sent.
    package var timestampsFromZero = true
    /// Pushing: the longest time in which nothing is sent while the stream is silent; nil: no limit. See ``KeepAlive``.
    package var keepAliveMs: Int?
    package var reconnect = ReconnectPolicy()
    /// Strings added to the command object of `connect`. Called for each connection, on the link's thread.
    package var connectProperties: @Sendable () -> [(name: String, value: String)] = { [] }
    /// Pulling: a property of the server's statuses, and a check of its text. Returns why the link must end; nil when it may continue. Called on the
    /// link's thread.
    package var wayObjection: (property: String, objection: @Sendable (String) -> String?)?
    /// Resolves names; may block, and runs on a thread of its own. Only tests replace the system's resolver.
    var lookup: @Sendable (String) -> Result<[[UInt8]], LookupFailure> = SystemResolver.lookup

    package init(objection: @escaping @Sendable ([UInt8]) -> String?) { self.objection = objection }
}

/// When to retry a link that ended; a plain value.
package struct ReconnectPolicy: Sendable, Equatable {
    /// Milliseconds before the first retry.
    package var firstMs = 1_000
    /// Milliseconds of the longest wait, jitter included.
    package var maxMs = 60_000
    /// The ratio of each wait to the one before.
    package var factor = 2.0
    /// The largest part by which a wait is shortened at random. Links that broke together then do not retry together.
    package var jitter = 0.25
    /// Milliseconds of running after which the waits start again from the first.
    package var stableMs = 30_000
    /// Consecutive attempts without a stable run before the link fails for good; nil: no limit.
    package var maxAttempts: Int?

    package init() {}

    /// Milliseconds to wait after `failures` (1 and up) consecutive ends; `random` is in 0..<1.
    package func delayMs(failures: Int, random: Double) -> Int {
        let first = Double(max(self.firstMs, 0))
        let longest = max(Double(self.maxMs), first)
        var delay = first
        for _ in 1..<max(failures, 1) where delay < longest { delay *= max(self.factor, 1) }
        return Int(min(delay, longest) * (1 - min(max(self.jitter, 0), 1) * random))
    }
}
