import NIOCore
import NIOHTTP2

/// What one HTTP/2 connection may ask of the server, beside what ``HTTPLimits`` say of requests.
enum HTTP2Limits {
    /// Requests at a time (RFC 9113 §5.1.2).
    static let streams = 100
    /// Of a decoded head, against what ``HTTPLimits/headBytes`` allow: a head between the two gets an answer, one above ends the connection.
    static let headAllowance = 2
    /// RST_STREAM frames that a client may send (CVE-2023-44487), and errors that make the server send one (CVE-2025-8671).
    static let resets = 200
    /// PING, SETTINGS and PRIORITY frames (CVE-2019-9512, -9515).
    static let controlFrames = 200
    /// Within this time.
    static let floodWindow = TimeAmount.seconds(30)
    /// Answers to control frames that wait for a client that does not read.
    static let bufferedControlFrames = 1_000
    /// DATA frames with nothing in them, in a row (CVE-2019-9518).
    static let emptyDataFrames = 8
    /// Bytes of bodies that wait for a stream's window before its writers are told to pause, and to go on.
    static let outboundHigh = 64 << 10
    static let outboundLow = 32 << 10
    /// Bytes that a client may send ahead on a stream, and on all of a connection's together: requests are small.
    static let window = 64 << 10
    /// For a client to learn that the server goes before its further requests are refused (RFC 9113 §6.8).
    static let announceMs: Int64 = 500
    /// For the requests that the server has taken when it goes; it ends 4 s after it was told to.
    static let leaveMs: Int64 = 2_500
    /// For what was written last, TLS's own end included.
    static let drainMs: Int64 = 6_000
    /// The same, for a client that broke the rules.
    static let brokenMs: Int64 = 1_000
    /// For a request's body to end whose answer is out. Some clients drop an answer when its stream is reset at once.
    static let bodyMs: Int64 = 2_000

    /// For NIO's handler.
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
