import Dispatch
import Logging
import NIOCore
import Synchronization
import Talk

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Ticks for the talk channels that are put on it: every 1,024 samples at 48 kHz by the monotonic clock, on a thread of its own, for as long
/// as there is one. A tick waits for nobody; ticks that came too late are made up for, up to a second. A longer stall of the server costs its
/// listeners that time, so that they do not hear what is old; a recording gets all of it, up to half a minute.
///
/// Any thread.
final class TalkClock: Sendable {
    private struct State {
        var rooms: [TalkChannel] = []
        var isRunning = false
    }

    private let state = Mutex(State())
    /// A serial queue has a thread for itself while it is busy.
    private let thread = DispatchQueue(label: "talk", qos: .userInteractive)

    /// What counts as a late tick, and the time that the event loops then get to read.
    private static let lateUs: Int64 = 1_000
    private static let readingUs: UInt32 = 500
    /// Later than that, ticks are left out.
    private static let mostLateTicks: Int64 = 47
    /// Later than that, for recordings too: a machine that slept. 30 s.
    private static let mostRecordedTicks: Int64 = 1_406

    /// Microseconds of the monotonic clock that all of talk goes by.
    static var nowUs: Int64 { Int64(NIODeadline.now().uptimeNanoseconds / 1_000) }

    var load: Int { self.state.withLock { $0.rooms.count } }

    func add(_ room: TalkChannel) {
        let isFirst = self.state.withLock { state -> Bool in
            guard !state.rooms.contains(where: { $0 === room }) else { return false }
            state.rooms.append(room)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if isFirst { self.start() }
    }

    func remove(_ room: TalkChannel) {
        self.state.withLock { $0.rooms.removeAll { $0 === room } }
    }

    private func start() {
        self.thread.async { self.run() }
    }

    private func run() {
        let origin = Self.nowUs
        var tick: Int64 = 0
        // Of a stall, once.
        var isCatchingUp = false
        while true {
            let rooms = self.state.withLock { state -> [TalkChannel]? in
                guard !state.rooms.isEmpty else {
                    state.isRunning = false
                    return nil
                }
                return state.rooms
            }
            guard let rooms else { return }
            tick += 1
            let dueUs = origin + TalkFormat.microseconds(tick: tick)
            let nowUs = Self.nowUs
            if dueUs > nowUs { usleep(UInt32(clamping: dueUs - nowUs)) }
            // The machine stood still, or the last tick was long: what has come meanwhile waits in the sockets, and is for this tick.
            let lateUs = Self.nowUs - dueUs
            if lateUs <= TalkFormat.microseconds(tick: 1) {
                isCatchingUp = false
                if lateUs > Self.lateUs { usleep(Self.readingUs) }
            } else if !isCatchingUp {
                isCatchingUp = true
                ReadingTurns.wait(for: rooms)
            }
            if lateUs > TalkFormat.microseconds(tick: Self.mostLateTicks) {
                // The last of them is the next tick.
                let missed = lateUs * 3 / 64_000
                self.makeUp(missed, from: tick, origin, rooms)
                tick += missed - 1
                continue
            }
            for room in rooms { room.tick(nowUs: dueUs) }
        }
    }

    /// What stands still for long is over for those who listen, and not for what is recorded.
    private func makeUp(_ missed: Int64, from tick: Int64, _ origin: Int64, _ rooms: [TalkChannel]) {
        if let room = rooms.first {
            let seconds = Double(TalkFormat.microseconds(tick: missed) / 100_000) / 10
            room.core.log.warning(
                "The server stood still: who listens to talk misses that time, recordings have it", metadata: ["seconds": "\(seconds)"])
        }
        for room in rooms where room.isRecorded {
            for step in max(0, missed - Self.mostRecordedTicks)..<missed {
                room.tick(nowUs: origin + TalkFormat.microseconds(tick: tick + step), isMadeUp: true)
            }
        }
    }
}
