package import Delivery
package import Logging
package import Relay
package import RoomStore
package import Rooms
package import ServerConfiguration
import Support
import Synchronization

/// Starts, stops and retries recorders, by call and by policy. Keeps the files within their limits. Any thread.
package final class Recordings: Sendable {
    package let folder: RecordingFolder
    package let budget: RecordingBudget
    let finisher: RecordingFinisher
    let settings: ServerConfig.Recording
    let rooms: RoomRegistry
    let streams: LiveStreams
    let ledger: MemoryLedger
    let log: Logger
    /// Bytes of frames that may wait for one recorder.
    let frameQueueBytes: Int
    private let talk: any RoomTalk
    let state = Mutex(State())
    private let share = Mutex(RetentionShare())
    /// First frames of streams whose recorders are about to begin.
    let heads = RecordingHeads()

    struct State {
        /// By stream path, like all below.
        var running: [String: Recorder] = [:]
        /// Streams whose recording a call has stopped: policy does not restart it while they live.
        var stopped: [String: Held] = [:]
        /// Failed recordings to retry.
        var broken: [String: Broken] = [:]
        /// Orders by calls that a restart cut off: each resumes when its stream is back.
        var orders: [String: RecordingOrder] = [:]
        /// Publishers that arrived while the name's previous recording was still being written: they start when it ends.
        var next: [String: Broken] = [:]
        /// Consecutive failures.
        var failures: [String: Int] = [:]
        var isStopping = false
    }

    struct Held {
        weak var stream: Relay.Stream?
    }

    struct Broken {
        weak var stream: Relay.Stream?
        let roomID: RoomID?
        let slot: Int
        let isByCall: Bool
        /// Milliseconds of the steady clock.
        var retryAtMs: Int64
    }

    /// Why no recording begins.
    package enum Refusal: Error, Equatable {
        case isRecording
        /// Nobody publishes, and the publisher's grace period is over.
        case notLive
        case end(RecordingEnd)
        case stopping
        /// A call with an Idempotency-Key takes effect only if its key is stored, too.
        case notStored(RegistryError)
    }

    /// Delay before the first retry; doubles after each failure, up to about a quarter of an hour.
    private static let retryMs: Int64 = 30_000
    private static let mostDoublings = 5
    /// After running this long, a recording's failure starts the delays anew.
    private static let soundMs: Int64 = 120_000
    private static let retentionBatch = 100

    package init(
        _ config: ServerConfig, _ rooms: RoomRegistry, _ streams: LiveStreams, _ ledger: MemoryLedger, talk: any RoomTalk, log: Logger
    ) {
        self.settings = config.recording
        self.streams = streams
        self.ledger = ledger
        self.talk = talk
        self.frameQueueBytes = config.limits.frameQueueBytes
        self.folder = RecordingFolder(config)
        self.budget = RecordingBudget(self.folder, config.recording)
        self.rooms = rooms
        self.log = log
        self.finisher = RecordingFinisher(folder: self.folder, budget: self.budget, rooms: rooms, log: log)
    }

    // MARK: What is recorded

    /// Whether this stream is being recorded.
    package func isRecording(_ path: StreamPath) -> Bool { self.recorder(of: path) != nil }

    func recorder(of path: StreamPath) -> Recorder? {
        self.state.withLock { $0.running[path.description] }.flatMap { $0.isOver ? nil : $0 }
    }

    /// Whether it failed, or had no space, and will be retried.
    func isWaiting(_ path: StreamPath) -> Bool { self.state.withLock { $0.broken[path.description] != nil } }

    /// Bytes in whole fragments of a file being written; nil when none has this id.
    package func writtenBytes(of id: String) -> Int64? {
        self.state.withLock { Array($0.running.values) }.lazy.compactMap(\.position).first { $0.id == id }?.bytes
    }

    // MARK: Start and stop

    /// Records a live stream, or resumes what a restart cut off. With `triesAgain` it retries later if ``RecordingBudget`` refuses.
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
                self.state.withLock { state in
                    state.broken[path.description] = Broken(
                        stream: stream, roomID: roomID, slot: slot, isByCall: isByCall, retryAtMs: LoopSweeper.nowMs + Self.retryMs)
                }
            }
            self.heads.take(stream)?.drop()
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
            state.broken[path.description] = nil
            state.stopped[path.description] = nil
            state.next[path.description] = nil
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
                self.heads.take(stream)?.drop()
                self.giveUp(made, earlier, of: stream)
                throw .notStored(error)
            }
        } else if made.isByCall, earlier == nil {
            self.rooms.recordingOrdered(order)
        }
        await made.start(with: self.heads.take(stream))
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
        // The other recording's end stopped the last one, not a call. Its stream may be the same.
        self.state.withLock { $0.stopped[mix.description] = nil }
        await self.beginByPolicy(mix, roomID: roomID, slot: 0, isByCall: false, isRetry: false)
        // The stream's recording may have ended meanwhile.
        if !self.isRecording(stream) { await self.endTalk(beside: stream, of: roomID) }
    }

    /// Ends the talk's recording when the last stream's recording has ended.
    private func endTalk(beside stream: StreamPath, of roomID: RoomID?) async {
        guard let roomID, self.talk.letGo(beside: stream, of: roomID) else { return }
        _ = await self.stop(self.talk.mix(of: roomID))
    }

    /// Stops a recording by call, even one that waits for its stream since a restart. Nil: there was none.
    func stop(_ path: StreamPath) async -> RecordingOrder? { await self.stop(path, isTold: false) }

    /// The same, but stores `keeping` with the order's end before the recording itself ends.
    package func stop(
        _ path: StreamPath, keeping: KeptAnswer<RecordingOrder>?
    ) async throws(RegistryError) -> RecordingOrder? {
        guard let keeping else { return await self.stop(path) }
        let (running, waiting) = self.state.withLock { state in
            (state.running[path.description].flatMap { $0.isOver ? nil : $0 }, state.orders[path.description])
        }
        guard let order = running.map({ RecordingOrder(task: $0.task, startedAt: $0.startedAt) }) ?? waiting else {
            return await self.stop(path)
        }
        try await self.rooms.endOrder(order, isRunning: running != nil, keeping: keeping)
        return await self.stop(path, isTold: true) ?? order
    }

    /// `isTold`: the store already knows the end of an order without a recorder.
    private func stop(_ path: StreamPath, isTold: Bool) async -> RecordingOrder? {
        let (recorder, order) = self.state.withLock { state -> (Recorder?, RecordingOrder?) in
            // A pending retry counts, too.
            let wasBroken = state.broken.removeValue(forKey: path.description) != nil
            state.next[path.description] = nil
            let recorder = state.running[path.description].flatMap { $0.isOver ? nil : $0 }
            if recorder != nil || wasBroken { state.stopped[path.description] = Held(stream: self.streams.registry.find(path.description)) }
            return (recorder, state.orders.removeValue(forKey: path.description))
        }
        if let order, !isTold { await self.drop(order, .stopped) }
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

    /// Called when a recorder has written everything: starts what is next, or schedules a retry.
    func ended(_ recorder: Recorder, _ end: RecordingEnd, of stream: Relay.Stream) {
        let path = recorder.task.path.description
        Task { await self.endTalk(beside: recorder.task.path, of: recorder.task.roomID) }
        let next = self.state.withLock { state -> Broken? in
            guard state.running[path] === recorder else { return nil }
            let next = state.next.removeValue(forKey: path)
            state.running[path] = nil
            let failures = self.rooms.now - recorder.startedAt >= Self.soundMs ? 0 : state.failures[path] ?? 0
            state.failures[path] = nil
            guard end.isFailure, end != .unsupportedMedia else { return end == .streamEnded ? next : nil }
            state.failures[path] = failures + 1
            let pauseMs = Self.retryMs << Int64(min(failures, Self.mostDoublings))
            state.broken[path] = Broken(
                stream: stream, roomID: recorder.task.roomID, slot: recorder.task.slot, isByCall: recorder.isByCall,
                retryAtMs: LoopSweeper.nowMs + pauseMs)
            return nil
        }
        guard let next else { return }
        let whole = recorder.task.path
        Task {
            await self.beginByPolicy(whole, roomID: next.roomID, slot: next.slot, isByCall: next.isByCall, isRetry: false)
        }
    }

    // MARK: Files

    /// Removes the file, then its index row. Nil: there is no such recording, or it is not finished. Throws the disk's errors.
    package func delete(_ recording: Recording) async throws -> Recording? {
        guard recording.state == .finished || recording.state == .failed, !self.finisher.isBusy(with: recording.id) else { return nil }
        let folder = self.folder
        if let failure = await DiskWork.run({ () -> RecordingFolder.Failure? in
            do throws(RecordingFolder.Failure) {
                try folder.remove(recording.file)
                return nil
            } catch {
                return error
            }
        }) {
            throw failure
        }
        let old = try await self.rooms.recordingDeleted(recording.id)
        if let old { self.budget.free(old.bytes) }
        return old
    }

    /// Deletes recordings older than the settings allow. `nowMs` is room time, like the recordings' own times.
    func forget(nowMs: Int64, steadyMs: Int64) async {
        guard self.settings.retentionMs > 0 else { return }
        do {
            let old = try await self.rooms.recordings(endedBefore: nowMs - self.settings.retentionMs, limit: Self.retentionBatch)
            guard !old.isEmpty else { return }
            // A wrong clock that was believed for long deletes some recordings, not all.
            let held = try await self.rooms.recordingCount()
            let allowed = self.share.withLock {
                $0.allowance(held: held, retentionMs: self.settings.retentionMs, steadyMs: steadyMs)
            }
            for (index, recording) in old.enumerated() {
                // Old recordings beyond the allowance go at once when new ones find no space.
                if index >= allowed, await !DiskWork.run({ [budget] in budget.needsRoom }) { break }
                do {
                    guard try await self.delete(recording) != nil else { continue }
                    self.share.withLock { $0.spend(1) }
                    self.log.info(
                        "Recording deleted: older than recording.retention",
                        metadata: ["id": "\(recording.id)", "file": "\(recording.file)"])
                } catch {
                    // One that cannot be removed does not keep the others.
                    self.log.error("An old recording could not be deleted", metadata: ["id": "\(recording.id)", "error": "\(error)"])
                }
            }
        } catch {
            self.log.error("Old recordings could not be deleted", metadata: ["error": "\(error)"])
        }
    }

    // MARK: Life

    /// Resumes what the last run left. Call before anything is recorded.
    package func start() async throws(RegistryError) {
        try await self.rooms.closeLeftRecordings()
        self.budget.add(try await self.rooms.recordingBytes())
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
