import Synchronization

/// A loop's smoothed lag, and the load level derived from it. A plain value, fed by each sweep; times are in milliseconds.
///
/// ```
/// calm --lag ≥ busyMs--> busy --lag ≥ overloadMs--> overloaded
/// calm <--lag < 0.6 × busyMs-- busy <--lag < 0.9 × overloadMs-- overloaded
/// ```
/// Lag is the longer of two: how late the loop's timer fired, and how long a message waited for the loop to reach a viewer whose socket was ready. A
/// loop with more viewers than it can carry sends each of them more at a time, later: its lag grows before anything is lost.
package struct LoopLoad: Sendable, Equatable {
    package enum Level: Int, Sendable, Comparable {
        /// Admits everybody.
        case calm
        /// Admits a few at a time, so that present viewers stay on time.
        case busy
        /// Admits no viewers.
        case overloaded

        package static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
    }

    package private(set) var level = Level.calm
    /// Averaged over about the last half second.
    package private(set) var lagMs: Double = 0
    private let overloadMs: Double
    /// How long the lag has been so high that refusing new viewers does not suffice.
    private var severeMs: Int64 = 0
    private var sinceShedMs: Int64 = 0

    package static let sampleMs: Int64 = 100
    /// Weight of a new sample in the average.
    private static let weight = 0.2
    /// Hysteresis: the level falls again below these shares of its limit. Without new viewers the lag stays constant, so the second share must be
    /// near the limit; otherwise a spike would keep out viewers that the loop could carry.
    private static let busyReturns = 0.6
    private static let overloadReturns = 0.9
    /// Share of `overloadMs` from which refusing new viewers does not suffice. Each refusal costs something too, and there may be very many.
    private static let severe = 1.5
    private static let severeLimitMs: Int64 = 5_000
    private static let shedIntervalMs: Int64 = 1_000
    /// Connections that a busy loop may have opening, before they play or publish. The limit keeps laps short for running streams, and still allows
    /// as many joins a second as the loop can serve. It shrinks as the lag grows.
    private static let mostOpening = 128.0
    private static let fewestOpening = 4.0

    package init(overloadMs: Int64) { self.overloadMs = Double(max(1, overloadMs)) }

    private var busyMs: Double { self.overloadMs / 5 }

    /// Records the lag measured over the last `elapsedMs`.
    package mutating func sample(lagMs: Int64, elapsedMs: Int64) {
        // Limited, so that one long pause, which is no overload, is forgotten within a second.
        let sample = min(Double(lagMs), self.overloadMs * 4)
        let steps = max(1, min(20, elapsedMs / Self.sampleMs))
        for _ in 0..<steps { self.lagMs += (sample - self.lagMs) * Self.weight }
        switch self.level {
        case .calm, .busy:
            if self.lagMs >= self.overloadMs {
                self.level = .overloaded
            } else if self.lagMs >= self.busyMs {
                self.level = .busy
            } else if self.lagMs < self.busyMs * Self.busyReturns {
                self.level = .calm
            }
        case .overloaded:
            if self.lagMs < self.busyMs * Self.busyReturns {
                self.level = .calm
            } else if self.lagMs < self.overloadMs * Self.overloadReturns {
                self.level = .busy
            }
        }
        self.severeMs = self.lagMs >= self.overloadMs * Self.severe ? min(self.severeMs + elapsedMs, Self.severeLimitMs) : 0
        self.sinceShedMs = min(self.sinceShedMs + elapsedMs, Self.shedIntervalMs)
    }

    /// Limit of connections that do not play or publish yet; nil: no limit.
    package var window: Int? {
        switch self.level {
        case .calm: return nil
        case .busy:
            let share = (self.overloadMs - self.lagMs) / (self.overloadMs - self.busyMs)
            return Int(max(Self.fewestOpening, Self.mostOpening * min(1, share)))
        case .overloaded: return Int(Self.fewestOpening)
        }
    }

    /// The number of viewers to disconnect now so that the others are served: one in a hundred, once a second, after the lag has been at 1.5 times
    /// `overloadMs` for five seconds. 0 for fewer than a hundred viewers, which do not make a loop late.
    package mutating func shed(of viewers: Int) -> Int {
        guard self.severeMs >= Self.severeLimitMs, self.sinceShedMs >= Self.shedIntervalMs else { return 0 }
        self.sinceShedMs = 0
        return viewers / 100
    }
}

/// A loop's ``LoopLoad``, published to other threads. Any thread; the loop writes it ten times a second.
package final class LoopPressure: Sendable {
    private let levelValue = Atomic<Int>(0)
    private let lagValue = Atomic<Int>(0)
    private let windowValue = Atomic<Int>(0)

    package init() {}

    package var level: LoopLoad.Level { LoopLoad.Level(rawValue: self.levelValue.load(ordering: .relaxed)) ?? .calm }
    package var lagMs: Int { self.lagValue.load(ordering: .relaxed) }
    /// 0 for a calm loop, which has no limit.
    package var window: Int { self.windowValue.load(ordering: .relaxed) }

    package func publish(_ load: LoopLoad) {
        self.windowValue.store(load.window ?? 0, ordering: .relaxed)
        self.lagValue.store(Int(load.lagMs), ordering: .relaxed)
        self.levelValue.store(load.level.rawValue, ordering: .relaxed)
    }
}
