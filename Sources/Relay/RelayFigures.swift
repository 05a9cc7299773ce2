package import Health
import NIOCore

/// How promptly a loop serves its viewers, for metrics. Loop-bound; counts nothing per frame and viewer.
package final class RelayFigures {
    /// A copy of the figures, for other threads.
    package struct Values: Sendable, Equatable {
        /// The loop's lag at each sweep, ten times a second.
        package var lag = Histogram(boundsMicros: [1_000, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000])
        /// Time from the turn in which a lap began to the end of the turn in which it ended.
        package var lap = Histogram(
            boundsMicros: [50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000])
        /// How far behind live each viewer is, once a second.
        package var behind = Histogram(
            boundsMicros: [50_000, 100_000, 250_000, 500_000, 1_000_000, 2_000_000, 3_000_000, 5_000_000, 10_000_000, 30_000_000])
        /// Time from a viewer's admission to its first picture or sound, if the ring had media for it.
        package var join = Histogram(
            boundsMicros: [1_000, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000])

        package init() {}

        package mutating func add(_ other: Values) {
            self.lag.add(other.lag)
            self.lap.add(other.lap)
            self.behind.add(other.behind)
            self.join.add(other.join)
        }
    }

    package private(set) var values = Values()

    /// One in this many turns is timed for laps within a single turn, and its laps count for all these turns. Laps over several turns are always
    /// timed.
    static let timedTurns: UInt64 = 8
    /// A viewer less far behind is in the first range of ``Values/behind``. Milliseconds.
    static let nearMs: Int64 = 50

    func noteLag(ms: Int64) { self.values.lag.observe(ms: ms) }
    func noteLaps(_ count: UInt64, micros: Int64) { self.values.lap.observe(micros: micros, times: count) }
    func noteBehind(ms: Int64, viewers: UInt64 = 1) { self.values.behind.observe(micros: ms &* 1_000, times: viewers) }
    func noteJoin(ms: Int64) { self.values.join.observe(ms: ms) }
}

extension RelayLoop {
    /// Records laps that end now.
    func noteLaps(_ count: UInt64, since began: NIODeadline) {
        self.figures.noteLaps(count, micros: (NIODeadline.now() - began).nanoseconds / 1_000)
    }
}

extension LoopFanout {
    /// Records the viewer's wait, once it has been sent its headers and the ring's first message for it.
    func noteJoin(of viewer: Viewer, nowMs: Int64) {
        guard !viewer.isDetached, viewer.prelude.isEmpty, !viewer.gate.waitsForKeyframe, let cursor = viewer.cursor,
            cursor > viewer.joinSequence
        else { return }
        viewer.isJoining = false
        self.figures.noteJoin(ms: nowMs - viewer.joinedMs)
    }
}

extension NIODeadline {
    /// Milliseconds of the server's monotonic clock.
    var relayMs: Int64 { Int64(self.uptimeNanoseconds / 1_000_000) }
}
