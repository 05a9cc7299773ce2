package import Logging
import Relay
package import Rooms
package import Streaming
import Support
import Synchronization

/// Figures over time, and finished plays and pushes. Any thread.
///
/// ```
/// connections ──ends──►  Statistics ──rows, bounded──► StatisticsStore (a queue of its own) ──► stats.db
/// event loops ──samples──►  (a lock for moments)
/// ```
package final class Statistics: SessionObserver {
    /// The time of day and a steady clock, in milliseconds.
    package struct Clock: Sendable {
        package let wallMs: @Sendable () -> Int64
        package let steadyMs: @Sendable () -> Int64

        package static let system = Clock(wallMs: { WallClock.ms }, steadyMs: { LoopSweeper.nowMs })
    }

    private struct State {
        var table: FigureTable
        var pending = PendingRows()
        var lost: UInt64 = 0
        var isWriting = false
        /// The last write failed; the next one waits for its time.
        var isFailing = false

        var isDue: Bool { self.pending.count >= Statistics.batch && !self.isWriting && !self.isFailing }
    }

    package let store: StatisticsStore
    private let clock: Clock
    private let mostPending: Int
    private let state: Mutex<State>

    /// Number of rows that starts a write early.
    private static let batch = 1_000

    package init(directory: String, settings: StatisticsSettings = StatisticsSettings(), clock: Clock = .system, log: Logger) {
        self.store = StatisticsStore(directory: directory, settings: settings, log: log)
        self.clock = clock
        self.mostPending = settings.mostPending
        self.state = Mutex(State(table: FigureTable(nowMs: clock.steadyMs())))
    }

    /// Rows lost since the start, because too many were waiting.
    package var lost: UInt64 { self.state.withLock { $0.lost &+ $0.table.overflows } }
    package var waiting: Int { self.state.withLock { $0.pending.count } }
    package var nowMs: Int64 { self.clock.wallMs() }

    // MARK: SessionObserver

    /// Remembers the room of a stream, for its plays.
    package func published(_ path: String, room: RoomID) {
        let nowMs = self.clock.steadyMs()
        self.state.withLock { $0.table.published(path, room: room.rawValue, nowMs: nowMs) }
    }

    package func playBegan(_ path: String, viewers: Int) {
        let nowMs = self.clock.steadyMs()
        self.state.withLock { $0.table.playBegan(path, viewers: viewers, nowMs: nowMs) }
    }

    package func playEnded(_ play: FinishedPlay, viewers: Int) {
        let (nowMs, wallMs) = (self.clock.steadyMs(), self.clock.wallMs())
        let isDue = self.state.withLock { state in
            var play = play
            play.room = state.table.room(of: play.path) ?? play.room
            play.client = Self.short(play.client)
            play.user = Self.short(play.user)
            state.table.playEnded(play.path, viewers: viewers, bytes: play.bytes, nowMs: nowMs)
            let row = Finished(session: play, beganMs: wallMs - play.durationMs, endedMs: wallMs)
            state.lost += UInt64(state.pending.add(row, most: self.mostPending))
            return state.isDue
        }
        if isDue { self.writeSoon() }
    }

    package func pushEnded(_ push: FinishedPush) {
        let (nowMs, wallMs) = (self.clock.steadyMs(), self.clock.wallMs())
        let isDue = self.state.withLock { state in
            var push = push
            push.client = Self.short(push.client)
            push.user = Self.short(push.user)
            state.table.pushEnded(push.path, bytes: push.bytes, nowMs: nowMs)
            let row = Finished(session: push, beganMs: wallMs - push.durationMs, endedMs: wallMs)
            state.lost += UInt64(state.pending.add(row, most: self.mostPending))
            return state.isDue
        }
        if isDue { self.writeSoon() }
    }

    /// Limits names, which clients choose and which may have 64 KiB.
    private static func short(_ text: String?) -> String? { text.map { String($0.prefix(200)) } }

    // MARK: Samples

    /// Settles ended sessions. Then read the present connections, and call ``endSample(_:connections:)``.
    func beginSample() { self.state.withLock { $0.table.beginSample() } }

    /// `connections`: the present number by protocol. `midpointAgeMs`: half the time since the last sample; the sample counts for the minute of its
    /// midpoint.
    func endSample(_ streams: NameTable<FigureTable.Present>, connections: [String: Int], midpointAgeMs: Int64 = 0) {
        let nowMs = self.clock.steadyMs()
        let minute = Self.minute(of: self.clock.wallMs() - midpointAgeMs)
        self.state.withLock { state in
            for row in state.table.endSample(streams, connections: connections, nowMs: nowMs) {
                let key = FigureKey(atMs: minute, subject: row.subject)
                state.lost += UInt64(state.pending.add(key, row.figures, most: self.mostPending))
            }
        }
    }

    static func minute(of ms: Int64) -> Int64 { ms / 60_000 * 60_000 }

    // MARK: Writing

    /// Opens the store. Never fails: without a store, nothing is kept.
    package func start() async { await self.store.open(nowMs: self.nowMs) }

    /// Writes all waiting rows. Rows that cannot be written keep waiting.
    package func write() async {
        let rows = self.state.withLock { state -> PendingRows? in
            guard !state.isWriting else { return nil }
            state.isWriting = true
            defer { state.pending = PendingRows() }
            return state.pending
        }
        guard let rows else { return }
        let isWritten = await self.store.write(rows, nowMs: self.nowMs)
        self.state.withLock { state in
            state.isWriting = false
            state.isFailing = !isWritten
            if !isWritten { state.lost += UInt64(state.pending.putBack(rows, most: self.mostPending)) }
        }
    }

    private func writeSoon() { Task { await self.write() } }

    /// Writes the waiting rows, and closes the store.
    package func stop() async {
        await self.write()
        await self.store.close()
    }
}
