import Dispatch
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
/// as there is one. A tick waits for nobody; ticks that came too late are made up for, up to a second.
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
    /// Later than that, ticks are left out: a machine that slept.
    private static let mostLateTicks: Int64 = 47

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
        var origin = Self.nowUs
        var tick: Int64 = 0
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
            if dueUs > nowUs {
                usleep(UInt32(clamping: dueUs - nowUs))
            } else if nowUs - dueUs > TalkFormat.microseconds(tick: Self.mostLateTicks) {
                origin = nowUs
                tick = 0
                continue
            }
            // The machine stood still, or the last tick was long: what has come meanwhile waits in the sockets, and is for this tick.
            if Self.nowUs - dueUs > Self.lateUs { usleep(Self.readingUs) }
            for room in rooms { room.tick(nowUs: dueUs) }
        }
    }
}
