import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
// Where the compiler has read Foundation before this file, it holds this module, not the C library, to be the one that defines `timespec`.
#if canImport(CoreFoundation)
import CoreFoundation
#endif

/// Milliseconds since 1970 for all that the store keeps: the machine's steady clock and an offset, so that a leap of the wall clock moves
/// no deadline. Any thread.
///
/// ```
/// apart = wall − room time
/// |apart| ≤ leapMs    followed by slewing, at most a tenth faster or slower: room time never stands still or goes back
/// |apart| > leapMs    a leap: room time goes on as before; followed at once by ``adopt()`` when it has held for holdMs
/// ```
///
/// Credentials are no business of this clock: their times are the wall clock's.
package final class RoomClock: Sendable {
    /// The clocks of a machine.
    package struct Sources: Sendable {
        /// Milliseconds since the machine's start, time asleep included.
        let steadyMs: @Sendable () -> Int64
        /// Milliseconds since 1970 that anybody may set.
        let wallMs: @Sendable () -> Int64
        /// The same for as long as the machine runs; nil when the system does not say.
        let bootID: String?

        package init(steadyMs: @escaping @Sendable () -> Int64, wallMs: @escaping @Sendable () -> Int64, bootID: String?) {
            self.steadyMs = steadyMs
            self.wallMs = wallMs
            self.bootID = bootID
        }
    }

    /// What a look at the wall clock has found.
    enum Finding: Equatable {
        /// It has leapt by so many milliseconds, and is followed at that room time if it stays so. Found once for each leap.
        case leapt(byMs: Int64, adoptsAt: Int64)
        /// The leap has held long enough for ``RoomClock/adopt()``.
        case held
    }

    private struct Leap {
        /// What the room time's offset is to be.
        var offsetMs: Int64
        /// Steady clock.
        let sinceMs: Int64
        var isTold = false
    }

    private struct State {
        /// Room time less steady time.
        var offsetMs: Int64
        /// Steady clock, of the last look.
        var seenMs: Int64
        /// Steady milliseconds that slewing may still use.
        var slewMs: Int64 = 0
        var leap: Leap?
    }

    /// A difference from there on is a leap; a smaller one is slewed.
    package static let leapMs: Int64 = 60_000
    package static let defaultHoldMs: Int64 = 600_000
    /// One millisecond of correction takes so many.
    private static let slewCost: Int64 = 10
    /// A look after a long pause corrects no more than this pays for.
    private static let mostSlewMs: Int64 = 10_000

    private let sources: Sources
    /// How long a leap must hold.
    let holdMs: Int64
    /// Of tests: the clock says what they say.
    private let fixed: (@Sendable () -> Int64)?
    private let state: Mutex<State>

    package convenience init(holdMs: Int64 = RoomClock.defaultHoldMs) { self.init(.system, holdMs: holdMs) }

    /// Begins at the wall clock's time.
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

    /// Goes on where an earlier run of the server was: by the time that the machine has run since, when it is the same run of the machine, and
    /// otherwise by the wall clock; never before what the store has seen. Before the clock is used.
    func resume(from mark: ClockMark?, newestMs: Int64?) {
        guard self.fixed == nil else { return }
        self.state.withLock { state in
            let steady = self.sources.steadyMs()
            var now = self.sources.wallMs()
            if let mark, let boot = self.sources.bootID, mark.bootID == boot, mark.steadyMs <= steady {
                now = mark.roomMs + (steady - mark.steadyMs)
                // What is stored may be a little ahead of that, by slewing. What is far ahead is of a time when the clock was wrong.
                if let newestMs, newestMs - now <= Self.leapMs { now = max(now, newestMs) }
            } else if let newestMs {
                now = max(now, newestMs)
            }
            state = State(offsetMs: now - steady, seenMs: steady)
        }
    }

    /// Never goes back, but by ``adopt()``.
    package func now() -> Int64 {
        if let fixed { return fixed() }
        return self.state.withLock { state in
            let steady = self.look(&state)
            return steady + state.offsetMs
        }
    }

    /// What there is to be said of the wall clock; to be asked every second or so.
    func finding() -> Finding? {
        guard self.fixed == nil else { return nil }
        return self.state.withLock { state in
            let steady = self.look(&state)
            guard let leap = state.leap else { return nil }
            if !leap.isTold {
                state.leap?.isTold = true
                // Room time is not slewed during a leap.
                return .leapt(byMs: leap.offsetMs - state.offsetMs, adoptsAt: leap.sinceMs + self.holdMs + state.offsetMs)
            }
            return steady - leap.sinceMs >= self.holdMs ? .held : nil
        }
    }

    /// Follows a leap that has held: by how many milliseconds room time moves. Nil: there is none (any more).
    func adopt() -> Int64? {
        guard self.fixed == nil else { return nil }
        return self.state.withLock { state in
            let steady = self.look(&state)
            guard let leap = state.leap, steady - leap.sinceMs >= self.holdMs else { return nil }
            let by = leap.offsetMs - state.offsetMs
            state.offsetMs = leap.offsetMs
            state.leap = nil
            return by
        }
    }

    /// Milliseconds that never leap.
    package var steadyMs: Int64 { self.fixed?() ?? self.sources.steadyMs() }

    /// Where the clock stands, for the next start.
    func mark() -> ClockMark {
        if let fixed { return ClockMark(bootID: nil, steadyMs: 0, roomMs: fixed()) }
        return self.state.withLock { state in
            let steady = self.look(&state)
            return ClockMark(bootID: self.sources.bootID, steadyMs: steady, roomMs: steady + state.offsetMs)
        }
    }

    /// Compares the clocks. Returns the steady one.
    private func look(_ state: inout State) -> Int64 {
        let steady = max(self.sources.steadyMs(), state.seenMs)
        state.slewMs = min(Self.mostSlewMs, state.slewMs + (steady - state.seenMs))
        state.seenMs = steady
        let offset = self.sources.wallMs() - steady
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
            // Another leap: it has to hold anew.
            state.leap = Leap(offsetMs: offset, sinceMs: steady)
        }
        return steady
    }
}

/// Room time at a moment of the machine's run. A value, kept in the store.
struct ClockMark: Equatable {
    let bootID: String?
    /// Milliseconds since the machine's start.
    let steadyMs: Int64
    let roomMs: Int64
}

extension RoomClock.Sources {
    /// This machine's.
    package static let system = RoomClock.Sources(
        steadyMs: { Self.read(Self.steadyClock) }, wallMs: { Int64(Date().timeIntervalSince1970 * 1_000) },
        bootID: Self.readBootID())

    #if os(Linux)
    /// Unlike CLOCK_MONOTONIC it counts the time for which the machine sleeps, as the wall clock does.
    private static let steadyClock = CLOCK_BOOTTIME
    #else
    private static let steadyClock = CLOCK_MONOTONIC
    #endif

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// Random, made by the kernel at its start.
    private static func readBootID() -> String? {
        guard let bytes = FileManager.default.contents(atPath: "/proc/sys/kernel/random/boot_id") else { return nil }
        let text = String(decoding: bytes, as: UTF8.self).filter { !$0.isWhitespace }
        return text.isEmpty ? nil : text
    }
}
