package import Logging
import Relay
package import Rooms
package import ServerConfiguration
package import Streaming
package import Support
import Synchronization

/// Starts and stops recorders, by call and by policy. Any thread.
///
/// ``RecordingPolicy`` decides which streams are recorded without a call, ``RecordingRetries`` when failures are retried, and ``RecordingRetention``
/// which files are deleted.
package final class Recordings: Sendable {
    package let folder: RecordingFolder
    package let budget: RecordingBudget
    package let retention: RecordingRetention
    let finisher: RecordingFinisher
    private let config: Live<ServerConfig>
    let rooms: any RecordingIndex
    let streams: LiveStreams
    let ledger: MemoryLedger
    let limits: LimitHits
    let log: Logger
    private let talk: any RoomTalk
    let state: Mutex<State>
    /// First frames of streams whose recorders are about to begin.
    let heads = RecordingHeads()

    struct State {
        /// By stream path.
        var running: NameTable<Recorder> = [:]
        /// Orders that a restart interrupted, by stream path: each resumes when its stream is back.
        var orders: NameTable<RecordingOrder> = [:]
        var policy: RecordingPolicy
        var retries = RecordingRetries()
        var isStopping = false
        /// Recorders that have ended, but whose end is not stored yet.
        var unreported = 0
    }

    /// The reason why no recording begins.
    package enum Refusal: Error, Equatable {
        case isRecording
        /// Nobody publishes, and the grace period is over.
        case notLive
        case end(RecordingEnd)
        case stopping
        /// A call with an Idempotency-Key takes effect only if its key is stored too.
        case notStored(RegistryError)
    }

    package init(
        _ config: Live<ServerConfig>, _ rooms: any RecordingIndex, _ streams: LiveStreams, _ ledger: MemoryLedger, limits: LimitHits,
        talk: any RoomTalk, log: Logger
    ) {
        self.config = config
        self.streams = streams
        self.ledger = ledger
        self.limits = limits
        self.talk = talk
        self.folder = RecordingFolder(config.current)
        self.budget = RecordingBudget(self.folder, config.recording, limits: limits)
        self.rooms = rooms
        self.log = log
        let finisher = RecordingFinisher(folder: self.folder, budget: self.budget, rooms: rooms, log: log)
        self.finisher = finisher
        self.retention = RecordingRetention(
            retentionMs: { config.recording.retentionMs }, folder: self.folder, budget: self.budget, rooms: rooms, log: log,
            isBusy: { finisher.isBusy(with: $0) })
        self.state = Mutex(State(policy: RecordingPolicy(apps: config.recording.apps)))
    }

    /// Bytes of frames that may wait for one recorder.
    var frameQueueBytes: Int { self.config.limits.frameQueueBytes }

    private var settings: ServerConfig.Recording { self.config.recording }

    // MARK: What is recorded

    /// Whether this stream is being recorded.
    package func isRecording(_ path: StreamPath) -> Bool { self.recorder(of: path) != nil }

    func recorder(of path: StreamPath) -> Recorder? {
        self.state.withLock { $0.running[path.description] }.flatMap { $0.isOver ? nil : $0 }
    }

    /// Whether the recording failed or had no space, and will be retried.
    func isWaiting(_ path: StreamPath) -> Bool { self.state.withLock { $0.retries.isWaiting(path.description) } }

    /// Bytes in whole fragments of a file being written; nil when none has this id.
    package func writtenBytes(of id: String) -> Int64? {
        self.state.withLock { Array($0.running.values) }.lazy.compactMap(\.position).first { $0.id == id }?.bytes
    }

    // MARK: Start and stop

    /// Records a live stream, or resumes an order that a restart interrupted. With `triesAgain` it retries later if ``RecordingBudget`` refuses.
    package func begin(
        _ path: StreamPath, roomID: RoomID?, slot: Int, isByCall: Bool, triesAgain: Bool,
        keeping: KeptAnswer<RecordingOrder>? = nil
    ) async throws(Refusal) -> Recorder {
        if self.isRecording(path) { throw .isRecording }
        let acquired = await self.streams.onHome(of: path.description) { home, stream -> Relay.Stream? in
            guard let snapshot = home.snapshot(of: stream)?.stream, snapshot.phase != .idle else { return nil }
            return self.streams.registry.acquire(path.description, on: home)
        }
        guard let acquired, let stream = acquired else { throw .notLive }
        if let refusal = await DiskWork.run({ [budget] in budget.refusalToBegin }) {
            // Without `triesAgain` the caller gets the error and may call again.
            if triesAgain {
                let source = RecordingSource(path: path, roomID: roomID, slot: slot, isByCall: isByCall)
                self.state.withLock { $0.retries.refused(source, of: stream, nowMs: LoopSweeper.nowMs) }
            }
            self.heads.remove(stream)?.drop()
            self.streams.registry.release(stream)
            throw .end(refusal)
        }
        let earlier = self.state.withLock { $0.orders[path.description] }
        let order =
            earlier
            ?? RecordingOrder(
                task: RecordingTask(id: RecordingWriter.randomID(), path: path, roomID: roomID, slot: slot), startedAt: self.rooms.now)
        let finisher = self.finisher
        let means = RecordingWriter.Means(
            settings: self.settings, folder: self.folder, budget: self.budget, rooms: self.rooms, log: self.log,
            ended: { finisher.add($0) })
        let made = Recorder(self, stream, order, isByCall: isByCall || earlier != nil, means: means)
        let refusal = self.state.withLock { state -> Refusal? in
            if state.isStopping { return .stopping }
            if let other = state.running[path.description], !other.isOver { return .isRecording }
            // Another call has stopped or resumed the order meanwhile.
            if earlier != nil, state.orders.removeValue(forKey: path.description) == nil { return .isRecording }
            state.running[path.description] = made
            state.retries.began(path.description)
            state.policy.release(path.description)
            return nil
        }
        if let refusal {
            self.streams.registry.release(stream)
            throw refusal
        }
        if let keeping {
            do throws(RegistryError) {
                try await self.rooms.order(order, isNew: earlier == nil, keeping: keeping)
            } catch {
                self.heads.remove(stream)?.drop()
                self.giveUp(made, earlier, of: stream)
                throw .notStored(error)
            }
        } else if made.isByCall, earlier == nil {
            self.rooms.recordingOrdered(order)
        }
        await made.start(with: self.heads.remove(stream))
        Task { await self.recordTalk(beside: path, of: roomID) }
        return made
    }

    /// Undoes a start that was not carried out.
    private func giveUp(_ recorder: Recorder, _ earlier: RecordingOrder?, of stream: Relay.Stream) {
        let path = recorder.task.path.description
        self.state.withLock { state in
            if state.running[path] === recorder { state.running[path] = nil }
            if let earlier { state.orders[path] = earlier }
        }
        // Otherwise a call stopped it meanwhile, and it has released the stream itself.
        if !recorder.isOver { self.streams.registry.release(stream) }
    }

    /// Records the room's talk along with a stream's recording that has begun.
    private func recordTalk(beside stream: StreamPath, of roomID: RoomID?) async {
        guard self.settings.talk, let roomID, await self.talk.hold(beside: stream, of: roomID) else { return }
        let mix = self.talk.mix(of: roomID)
        // If the mix was recorded before, `endTalk` stopped that and not a call, so policy may record it again, even if its stream is still the same.
        self.state.withLock { $0.policy.release(mix.description) }
        await self.beginByPolicy(RecordingSource(path: mix, roomID: roomID, slot: 0, isByCall: false), isRetry: false)
        // The stream's recording may have ended meanwhile.
        if !self.isRecording(stream) { await self.endTalk(beside: stream, of: roomID) }
    }

    /// Ends the talk's recording when the last stream's recording has ended.
    private func endTalk(beside stream: StreamPath, of roomID: RoomID?) async {
        guard let roomID, self.talk.letGo(beside: stream, of: roomID) else { return }
        _ = await self.stop(self.talk.mix(of: roomID))
    }

    /// Stops a recording by call, even one that waits for its stream since a restart. Nil: there was none.
    func stop(_ path: StreamPath) async -> RecordingOrder? { await self.stop(path, isDropped: false) }

    /// The same, but stores `keeping` with the order's end before the recording itself ends.
    package func stop(_ path: StreamPath, keeping: KeptAnswer<RecordingOrder>?) async throws(RegistryError) -> RecordingOrder? {
        guard let keeping else { return await self.stop(path) }
        let (running, waiting) = self.state.withLock { state in
            (state.running[path.description].flatMap { $0.isOver ? nil : $0 }, state.orders[path.description])
        }
        guard let order = running.map({ RecordingOrder(task: $0.task, startedAt: $0.startedAt) }) ?? waiting else {
            return await self.stop(path)
        }
        try await self.rooms.endOrder(order, isRunning: running != nil, keeping: keeping)
        return await self.stop(path, isDropped: true) ?? order
    }

    /// `isDropped`: the store already knows the end of an order without a recorder.
    private func stop(_ path: StreamPath, isDropped: Bool) async -> RecordingOrder? {
        let (recorder, order) = self.state.withLock { state -> (Recorder?, RecordingOrder?) in
            // A pending retry counts too.
            let wasWaiting = state.retries.stopped(path.description)
            let recorder = state.running[path.description].flatMap { $0.isOver ? nil : $0 }
            if recorder != nil || wasWaiting {
                state.policy.hold(path.description, self.streams.registry.find(path.description))
            }
            return (recorder, state.orders.removeValue(forKey: path.description))
        }
        if let order, !isDropped { await self.drop(order, .stopped) }
        guard let recorder else { return order }
        await recorder.stop(.stopped)
        return RecordingOrder(task: recorder.task, startedAt: recorder.startedAt)
    }

    /// Ends an order that does not resume.
    func drop(_ order: RecordingOrder, _ end: RecordingEnd) async {
        await withCheckedContinuation { done in
            self.rooms.recordingTaskEnded(order.task, end, wasStarted: order.isStarted) { done.resume() }
        }
    }

    /// Called when a recorder has written everything: starts the next recording, or schedules a retry.
    func ended(_ recorder: Recorder, _ end: RecordingEnd, of stream: Relay.Stream) {
        let task = recorder.task
        Task { await self.endTalk(beside: task.path, of: task.roomID) }
        let next = self.state.withLock { state -> RecordingSource? in
            state.unreported += 1
            guard state.running[task.path.description] === recorder else { return nil }
            state.running[task.path.description] = nil
            return state.retries.ended(
                RecordingSource(path: task.path, roomID: task.roomID, slot: task.slot, isByCall: recorder.isByCall), of: stream, end,
                ranMs: self.rooms.now - recorder.startedAt, nowMs: LoopSweeper.nowMs)
        }
        guard let next else { return }
        Task { await self.beginByPolicy(next, isRetry: false) }
    }

    // MARK: Life

    /// Resumes the orders of the last run. Call before anything is recorded.
    package func start() async throws(RegistryError) {
        try await self.rooms.closeLeftRecordings()
        self.budget.add(try await self.rooms.recordingBytes(scope: .all))
        for order in try await self.rooms.recordingOrders() {
            if let room = try await self.rooms.room(ofStream: order.task.path), room.id == order.task.roomID, !room.state.isTerminal {
                self.state.withLock { $0.orders[order.task.path.description] = order }
            } else {
                await self.drop(order, .streamEnded)
            }
        }
        var last: Int64 = 0
        while true {
            let left = try await self.rooms.unfinishedRecordings(after: last, limit: 200)
            guard let newest = left.last else { return }
            for recording in left { self.finisher.add(recording.id) }
            last = newest.row
        }
    }

    /// Called when the end of a recorder is stored, and its files are with the finisher.
    func endStored() { self.state.withLock { $0.unreported -= 1 } }

    /// Whether nothing is recorded but these streams, and all recordings that have ended are seekable.
    package func haveFinished(but paths: Set<ExactText>) -> Bool {
        // In this order: what leaves the first is in the second.
        self.state.withLock { state in state.unreported == 0 && state.running.keys.allSatisfy { paths.contains($0.exact) } }
            && self.finisher.isIdle
    }

    /// Ends all recordings. Those still unfinished are finished at the next start.
    func stopAll() async {
        let running = self.state.withLock { state in
            state.isStopping = true
            return Array(state.running.values)
        }
        self.heads.dropAll()
        self.finisher.stop()
        await withDiscardingTaskGroup { group in
            for recorder in running { group.addTask { await recorder.stop(.serverShutdown) } }
        }
    }
}
