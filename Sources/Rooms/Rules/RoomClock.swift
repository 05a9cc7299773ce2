import Support
import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// CoreFoundation, not the C library, defines `timespec` if the compiler has already read Foundation.
#if canImport(CoreFoundation)
import CoreFoundation
#endif

/// Room time: milliseconds since 1970 for everything the store keeps. Any thread. It is the machine's steady clock plus an offset, so that
/// a leap of the wall clock moves no deadline.
///
/// ```
/// apart = wall − room time
/// |apart| ≤ leapMs    slews, at most a tenth faster or slower: room time never stands still or goes back
/// |apart| > leapMs    a leap: room time goes on as before; ``adopt()`` follows it at once when it has held for holdMs
/// ```
///
/// Credentials do not use this clock; their times follow the wall clock.
package final class RoomClock: Sendable {
    /// The clocks of a machine.
    package struct Sources: Sendable {
        /// Milliseconds since the machine's start, time asleep included.
        package let steadyMs: @Sendable () -> Int64
        /// Milliseconds since 1970; may be set at any time.
        let wallMs: @Sendable () -> Int64
        /// Identifies this boot of the machine; nil if the system does not provide it.
        let bootID: String?

        package init(steadyMs: @escaping @Sendable () -> Int64, wallMs: @escaping @Sendable () -> Int64, bootID: String?) {
            (self.steadyMs, self.wallMs, self.bootID) = (steadyMs, wallMs, bootID)
        }
    }

    /// The result of comparing the wall clock with room time.
    package enum Finding: Equatable {
        /// A leap by `byMs`. If it holds, room time follows when it reaches `adoptsAt`. Found once for each leap.
        case leapt(byMs: Int64, adoptsAt: Int64)
        /// The leap has held long enough for ``RoomClock/adopt()``.
        case held
    }

    private struct Leap {
        /// Room time's offset after the leap is adopted.
        var offsetMs: Int64
        /// Steady clock.
        let sinceMs: Int64
        var isReported = false
    }

    private struct State {
        /// Room time minus steady time.
        var offsetMs: Int64
        /// Steady clock at the last comparison.
        var seenMs: Int64
        /// Steady milliseconds still available for slewing.
        var slewMs: Int64 = 0
        var leap: Leap?
        /// Another clock less the steady one, which is followed instead of this machine's wall clock.
        var followedMs: Int64?
    }

    /// Larger differences are leaps; others are slewed.
    package static let leapMs: Int64 = 60_000
    package static let defaultHoldMs: Int64 = 600_000
    /// Steady milliseconds per millisecond of correction.
    private static let slewCost: Int64 = 10
    /// Limits the correction after a long pause between comparisons.
    private static let mostSlewMs: Int64 = 10_000

    private let sources: Sources
    /// How long a leap must hold before room time follows.
    package let holdMs: Int64
    /// Replaces the clock in tests.
    private let fixed: (@Sendable () -> Int64)?
    private let state: Mutex<State>

    package convenience init(holdMs: Int64 = RoomClock.defaultHoldMs) { self.init(.system, holdMs: holdMs) }

    /// Starts room time at the wall clock's time.
    package init(_ sources: Sources, holdMs: Int64 = RoomClock.defaultHoldMs) {
        self.sources = sources
        self.holdMs = holdMs
        self.fixed = nil
        let steady = sources.steadyMs()
        self.state = Mutex(State(offsetMs: sources.wallMs() - steady, seenMs: steady))
    }

    /// A clock that tests set.
    package init(now: @escaping @Sendable () -> Int64) {
        self.sources = Sources(steadyMs: { 0 }, wallMs: now, bootID: nil)
        self.holdMs = Self.defaultHoldMs
        self.fixed = now
        self.state = Mutex(State(offsetMs: 0, seenMs: 0))
    }

    /// Continues room time from an earlier run of the server. Within the same boot it adds the steady time since then; otherwise it uses
    /// the wall clock. It never starts before the store's newest instant, unless that is more than ``leapMs`` ahead within the same boot.
    /// Call before the clock is used.
    package func resume(from mark: ClockMark?, newestMs: Int64?) {
        guard self.fixed == nil else { return }
        self.state.withLock { state in
            let steady = self.sources.steadyMs()
            var now = steady + self.offset(state, at: steady)
            if let mark, let boot = self.sources.bootID, mark.bootID == boot, mark.steadyMs <= steady {
                now = mark.roomMs + (steady - mark.steadyMs)
                // Slewing may put stored times slightly ahead. Times far ahead are from when the clock was wrong.
                if let newestMs, newestMs - now <= Self.leapMs { now = max(now, newestMs) }
            } else if let newestMs {
                now = max(now, newestMs)
            }
            state = State(offsetMs: now - steady, seenMs: steady, followedMs: state.followedMs)
        }
    }

    /// Follows another machine's clock instead of the wall clock: `offsetMs` is that clock less this machine's steady one.
    package func follow(offsetMs: Int64) { self.state.withLock { $0.followedMs = offsetMs } }

    /// The followed clock less the wall clock, in milliseconds; nil if it follows none.
    package var aheadOfWallMs: Int64? {
        self.state.withLock { $0.followedMs }.map { $0 + self.sources.steadyMs() - self.sources.wallMs() }
    }

    /// The followed clock less the steady one, at this instant of the latter.
    private func offset(_ state: State, at steady: Int64) -> Int64 { state.followedMs ?? self.sources.wallMs() - steady }

    /// Current room time. Goes back only through ``adopt()``.
    package func now() -> Int64 {
        if let fixed { return fixed() }
        return self.state.withLock { state in
            let steady = self.adjust(&state)
            return steady + state.offsetMs
        }
    }

    /// Reports a leap of the wall clock, or that it has held. Call every second or so.
    package func finding() -> Finding? {
        guard self.fixed == nil else { return nil }
        return self.state.withLock { state in
            let steady = self.adjust(&state)
            guard let leap = state.leap else { return nil }
            if !leap.isReported {
                state.leap?.isReported = true
                // Room time is not slewed during a leap.
                return .leapt(byMs: leap.offsetMs - state.offsetMs, adoptsAt: leap.sinceMs + self.holdMs + state.offsetMs)
            }
            return steady - leap.sinceMs >= self.holdMs ? .held : nil
        }
    }

    /// Follows a leap that has held and returns the milliseconds moved. Nil if there is no such leap.
    package func adopt() -> Int64? {
        guard self.fixed == nil else { return nil }
        return self.state.withLock { state in
            let steady = self.adjust(&state)
            guard let leap = state.leap, steady - leap.sinceMs >= self.holdMs else { return nil }
            let by = leap.offsetMs - state.offsetMs
            state.offsetMs = leap.offsetMs
            state.leap = nil
            return by
        }
    }

    /// Milliseconds of the steady clock, which never leaps.
    package var steadyMs: Int64 { self.fixed?() ?? self.sources.steadyMs() }

    /// The clock's position, stored for the next start.
    package func mark() -> ClockMark {
        if let fixed { return ClockMark(bootID: nil, steadyMs: 0, roomMs: fixed()) }
        return self.state.withLock { state in
            let steady = self.adjust(&state)
            return ClockMark(bootID: self.sources.bootID, steadyMs: steady, roomMs: steady + state.offsetMs)
        }
    }

    /// Compares the clocks and corrects the offset. Returns steady time.
    private func adjust(_ state: inout State) -> Int64 {
        let steady = max(self.sources.steadyMs(), state.seenMs)
        state.slewMs = min(Self.mostSlewMs, state.slewMs + (steady - state.seenMs))
        state.seenMs = steady
        let offset = self.offset(state, at: steady)
        let apart = offset - state.offsetMs
        guard apart.magnitude > UInt64(Self.leapMs) else {
            state.leap = nil
            let step = min(Int64(apart.magnitude), state.slewMs / Self.slewCost)
            state.offsetMs += apart < 0 ? -step : step
            state.slewMs = apart.magnitude == UInt64(step) ? 0 : state.slewMs - step * Self.slewCost
            return steady
        }
        if let leap = state.leap, (offset - leap.offsetMs).magnitude <= UInt64(Self.leapMs) {
            state.leap?.offsetMs = offset
        } else {
            // A different leap must hold from its own start.
            state.leap = Leap(offsetMs: offset, sinceMs: steady)
        }
        return steady
    }
}

/// Room time at an instant of the steady clock. A value, kept in the store.
package struct ClockMark: Equatable {
    package let bootID: String?
    /// Milliseconds since the machine's start.
    package let steadyMs: Int64
    package let roomMs: Int64

    package init(bootID: String?, steadyMs: Int64, roomMs: Int64) {
        self.bootID = bootID
        self.steadyMs = steadyMs
        self.roomMs = roomMs
    }
}

extension RoomClock.Sources {
    /// The clocks of this machine.
    package static let system = RoomClock.Sources(
        steadyMs: { Self.read(Self.steadyClock) }, wallMs: { Int64(Date().timeIntervalSince1970 * 1_000) },
        bootID: ProcessIdentity.bootID())

    #if os(Linux)
    /// Unlike CLOCK_MONOTONIC, it counts time asleep, as the wall clock does.
    private static let steadyClock = CLOCK_BOOTTIME
    #else
    private static let steadyClock = CLOCK_MONOTONIC
    #endif

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }
}
