import Dispatch
import LibC
import Logging
import NIOCore
import Synchronization
import Talk

/// A talk channel, as its clock sees it.
protocol ClockedChannel: AnyObject, Sendable {
    /// Whether all missed ticks are to be made up for.
    var isRecorded: Bool { get }
    /// Adds the frames that wait, and the loops that may read more.
    func addReading(to found: inout ReadingTurns.Waiting)
    /// Runs one tick, on the clock's thread. `nowUs`: when it was due. `isMadeUp`: the tick is so late that only a recording can use it.
    func tick(nowUs: Int64, isMadeUp: Bool)
}

/// Ticks its talk channels every 1,024 samples at 48 kHz, by the monotonic clock. Any thread.
///
/// Runs on its own thread while it has channels. A tick waits for nobody; late ticks are caught up, up to a second. Listeners lose the time of a
/// longer stall, so that they hear nothing old; a recording gets all of it, up to half a minute.
package final class TalkClock: Sendable {
    private struct State {
        var rooms: [any ClockedChannel] = []
        var isRunning = false
    }

    private let state = Mutex(State())
    private let log: Logger
    /// A serial queue has a thread for itself while it is busy.
    private let thread = DispatchQueue(label: "talk", qos: .userInteractive)

    /// Delay of a late tick, and the event loops' time to read then. Microseconds.
    private static let lateUs: Int64 = 1_000
    private static let readingUs: UInt32 = 500
    /// Beyond this delay listeners lose the missed ticks.
    private static let mostLateTicks: Int64 = 47
    /// Beyond this delay recordings lose them, too: the machine slept. 30 s.
    private static let mostRecordedTicks: Int64 = 1_406

    /// Microseconds of the monotonic clock, which all of talk uses.
    static var nowUs: Int64 { Int64(NIODeadline.now().uptimeNanoseconds / 1_000) }

    init(log: Logger) { self.log = log }

    var load: Int { self.state.withLock { $0.rooms.count } }

    func add(_ room: any ClockedChannel) {
        let isFirst = self.state.withLock { state -> Bool in
            guard !state.rooms.contains(where: { $0 === room }) else { return false }
            state.rooms.append(room)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if isFirst { self.start() }
    }

    func remove(_ room: any ClockedChannel) { self.state.withLock { $0.rooms.removeAll { $0 === room } } }

    private func start() { self.thread.async { self.run() } }

    private func run() {
        let origin = Self.nowUs
        var tick: Int64 = 0
        // Whether the present stall has been handled.
        var isCatchingUp = false
        while true {
            let rooms = self.state.withLock { state -> [any ClockedChannel]? in
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
            // After a stall or a long tick, data waiting in the sockets belongs to this tick.
            let lateUs = Self.nowUs - dueUs
            if lateUs <= TalkFormat.microseconds(tick: 1) {
                isCatchingUp = false
                if lateUs > Self.lateUs { usleep(Self.readingUs) }
            } else if !isCatchingUp {
                isCatchingUp = true
                ReadingTurns.wait { rooms.reduce(into: .init()) { $1.addReading(to: &$0) } }
            }
            if lateUs > TalkFormat.microseconds(tick: Self.mostLateTicks) {
                // The last missed tick runs as the next one.
                let missed = lateUs * 3 / 64_000
                self.makeUp(missed, from: tick, origin, rooms)
                tick += missed - 1
                continue
            }
            for room in rooms { room.tick(nowUs: dueUs, isMadeUp: false) }
        }
    }

    /// Runs the missed ticks of a long stall for recordings; listeners lose that time.
    private func makeUp(_ missed: Int64, from tick: Int64, _ origin: Int64, _ rooms: [any ClockedChannel]) {
        let seconds = Double(TalkFormat.microseconds(tick: missed) / 100_000) / 10
        self.log.warning(
            "The server stood still: talk listeners miss that time, recordings contain up to 30 s of it",
            metadata: ["seconds": "\(seconds)"])
        for room in rooms where room.isRecorded {
            for step in max(0, missed - Self.mostRecordedTicks)..<missed {
                room.tick(nowUs: origin + TalkFormat.microseconds(tick: tick + step), isMadeUp: true)
            }
        }
    }
}
