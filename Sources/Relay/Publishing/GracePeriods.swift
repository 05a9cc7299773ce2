/// How long a stream waits for its publisher. Milliseconds.
package struct GracePeriods: Sendable {
    package var brokenPipeMs: Int64 = 30_000
    package var cleanStopMs: Int64 = 3_000
    /// Longest silence of a connected publisher; then it is dropped.
    package var mediaIdleMs: Int64 = 120_000
    /// The longest silence after an announced pause.
    package var pausedMs: Int64 = 120_000
    /// Silence after which a publisher counts as quiet.
    package var quietMs: Int64 = 15_000
    /// Silence of a connected publisher after which viewers get StreamDry.
    package var dryMs: Int64 = 5_000
    /// Silence after which players get a ``Flush``; nil: never.
    package var flushMs: Int64?
    package init() {}
}
