import NIOCore
import NIOHTTP2

/// Limits of one HTTP/2 connection, besides those of its requests in ``HTTPLimits``.
enum HTTP2Limits {
    /// Concurrent requests (RFC 9113 §5.1.2).
    static let streams = 100
    /// Multiple of ``HTTPLimits/headBytes`` that a decoded head may have. A head between the two limits gets an answer; a larger one ends
    /// the connection.
    static let headAllowance = 2
    /// RST_STREAM frames from a client (CVE-2023-44487), and errors that make the server send one (CVE-2025-8671).
    static let resets = 200
    /// PING, SETTINGS and PRIORITY frames from a client (CVE-2019-9512, -9515).
    static let controlFrames = 200
    /// The window in which ``resets`` and ``controlFrames`` are counted.
    static let floodWindow = TimeAmount.seconds(30)
    /// Answers to control frames buffered for a client that does not read.
    static let bufferedControlFrames = 1_000
    /// Empty DATA frames in a row (CVE-2019-9518).
    static let emptyDataFrames = 8
    /// Watermarks of a stream's outbound buffer, in bytes: writers pause at the high one and resume at the low one.
    static let outboundHigh = 64 << 10
    static let outboundLow = 32 << 10
    /// Flow-control window of a stream, and of the whole connection, in bytes. Requests are small.
    static let window = 64 << 10
    /// Grace period between announcing the shutdown and refusing further requests (RFC 9113 §6.8).
    static let announceMs: Int64 = 500
    /// Grace period for requests already accepted at shutdown; the server ends within 4 s.
    static let leaveMs: Int64 = 2_500
    /// Time limit for the last writes to drain, TLS's close_notify included.
    static let drainMs: Int64 = 6_000
    /// The same, for a client that broke the protocol.
    static let brokenMs: Int64 = 1_000
    /// Time limit for a request's body to end after its answer. Some clients drop an answer if its stream is reset at once.
    static let bodyMs: Int64 = 2_000

    /// The configuration of NIO's HTTP/2 handler.
    static func configuration(_ limits: HTTPLimits) -> NIOHTTP2Handler.Configuration {
        var configuration = NIOHTTP2Handler.Configuration()
        configuration.connection.initialSettings = [
            HTTP2Setting(parameter: .maxConcurrentStreams, value: Self.streams),
            HTTP2Setting(parameter: .maxHeaderListSize, value: limits.headBytes * Self.headAllowance),
        ]
        configuration.connection.maximumBufferedControlFrames = Self.bufferedControlFrames
        configuration.connection.maximumSequentialEmptyDataFrames = Self.emptyDataFrames
        configuration.connection.maximumConnectionGlitches = Self.resets
        configuration.connection.controlFrameRateLimit.maximumCount = Self.controlFrames
        configuration.connection.controlFrameRateLimit.windowLength = Self.floodWindow
        configuration.connection.targetWindowSize = Self.window
        configuration.stream.targetWindowSize = Self.window
        configuration.stream.outboundBufferSizeHighWatermark = Self.outboundHigh
        configuration.stream.outboundBufferSizeLowWatermark = Self.outboundLow
        configuration.stream.streamResetFrameRateLimit.maximumCount = Self.resets
        configuration.stream.streamResetFrameRateLimit.windowLength = Self.floodWindow
        configuration.stream.streamErrorRateLimit.maximumCount = Self.resets
        configuration.stream.streamErrorRateLimit.windowLength = Self.floodWindow
        return configuration
    }
}
