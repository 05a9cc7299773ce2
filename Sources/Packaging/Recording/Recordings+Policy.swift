import Logging
package import Relay
package import Rooms
package import ServerConfiguration
import Streaming
import Support
import Synchronization

/// Recordings without a call: by ``RecordingPolicy``, and retries of failed ones.
extension Recordings {
    /// Starts to buffer a publisher's frames if they are to be recorded. Called before its first frame, in order with its frames. Any
    /// thread.
    package func publishBegan(_ stream: Relay.Stream, _ grant: PushGrant) {
        let path = stream.path
        let isDue = self.state.withLock { state in
            let isWanted = state.policy.isWanted(grant.path.app, grant.policy.record)
            guard !state.isStopping, isWanted || state.orders[path] != nil else { return false }
            // A running recorder carries on with the new publisher.
            if let running = state.running[path], !running.isOver { return false }
            return !state.policy.isHeld(path, stream)
        }
        if isDue {
            self.heads.add(stream, of: self.streams.registry, limitBytes: self.frameQueueBytes, ledger: self.ledger)
        }
    }

    /// Applies changed settings, also to live streams. Files that have begun keep their format.
    package func apply(_ settings: ServerConfig.Recording, liveRooms: @escaping @Sendable () -> Set<RoomID>) {
        self.budget.set(settings)
        let new = RecordingPolicy(apps: settings.apps)
        let old = self.state.withLock { state in
            defer { state.policy.apps = settings.apps }
            return RecordingPolicy(apps: state.policy.apps)
        }
        guard old.apps != new.apps else { return }
        Task {
            // Listed after the change, so that it includes a push that begins meanwhile. Handled one by one, since each room is read from the store.
            for roomID in liveRooms() {
                await self.policyChanged(of: roomID) { old.isWanted($0, $1) != new.isWanted($0, $1) }
            }
        }
    }

    /// Reacts to the registry's outcomes: starts recordings, applies policy changes, and drops orders of rooms that are over. On the registry's queue; does not
    /// block.
    package func handle(_ outcomes: [RoomOutcome]) {
        for outcome in outcomes {
            switch outcome {
            case .streamBegan(let path, let roomID, let slot):
                Task { await self.streamBegan(path, roomID: roomID, slot: slot) }
            case .policyChanged(let roomID, _, let old, let new) where old.record != new.record:
                Task { await self.policyChanged(of: roomID) }
            case .event(let event), .eventElsewhere(let event): self.handle(event.mark)
            case .eventMark(let mark): self.handle(mark)
            default: break
            }
        }
    }

    private func handle(_ mark: EventMark) {
        switch mark.kind {
        case .roomExpired, .roomClosed, .roomDeleted: if let roomID = mark.roomID { self.dropOrders(of: roomID) }
        default: break
        }
    }

    private func dropOrders(of roomID: RoomID) {
        let left = self.state.withLock { state in
            let left = state.orders.filter { $0.value.task.roomID == roomID }
            for path in left.keys { state.orders[path] = nil }
            return left.values
        }
        for order in left { Task { await self.drop(order, .streamEnded) } }
    }

    private func streamBegan(_ path: StreamPath, roomID: RoomID, slot: Int) async {
        let goesOn = self.state.withLock { $0.orders[path.description] != nil }
        if !goesOn { guard await self.isWanted(path.app, roomID) else { return } }
        await self.beginByPolicy(RecordingSource(path: path, roomID: roomID, slot: slot, isByCall: false), isRetry: false)
    }

    private func isWanted(_ app: String, _ roomID: RoomID) async -> Bool {
        do {
            return self.isWanted(app, try await self.rooms.room(roomID.rawValue).policy.record)
        } catch {
            self.log.error("A room's policy could not be read", metadata: ["room": "\(roomID)", "error": "\(error)"])
            return self.isWanted(app, .apps)
        }
    }

    private func isWanted(_ app: String, _ record: RoomPolicy.Record) -> Bool {
        self.state.withLock { $0.policy.isWanted(app, record) }
    }

    /// Applies a room's new policy at once to streams that are live.
    private func policyChanged(
        of id: RoomID, where isConcerned: (_ app: String, _ record: RoomPolicy.Record) -> Bool = { _, _ in true }
    ) async {
        do {
            let room = try await self.rooms.room(id.rawValue)
            for slot in room.slots where isConcerned(slot.app, room.policy.record) {
                let path = slot.path.description
                if self.isWanted(slot.app, room.policy.record) {
                    // A new policy overrides an earlier stop.
                    self.state.withLock { $0.policy.release(path) }
                    guard slot.isActive else { continue }
                    let source = RecordingSource(path: slot.path, roomID: id, slot: slot.number, isByCall: false)
                    await self.beginByPolicy(source, isRetry: false)
                } else {
                    let recorder = self.state.withLock { state in
                        state.retries.unwanted(path)
                        return state.running[path].flatMap { $0.isOver || $0.isByCall ? nil : $0 }
                    }
                    await recorder?.stop(.stopped)
                }
            }
        } catch {
            self.log.error("A room's policy could not be read", metadata: ["room": "\(id)", "error": "\(error)"])
        }
    }

    func beginByPolicy(_ source: RecordingSource, isRetry: Bool) async {
        let path = source.path.description
        // The recording was stopped, and the same stream's publisher has returned.
        guard !self.state.withLock({ $0.policy.isHeld(path, self.streams.registry.find(path)) }) else { return }
        do throws(Refusal) {
            _ = try await self.begin(
                source.path, roomID: source.roomID, slot: source.slot, isByCall: source.isByCall, triesAgain: true)
        } catch {
            if error == .isRecording, self.streams.registry.find(path) != nil {
                // The recorder may still write the previous run to a slow disk. This one starts afterwards.
                let isFree = self.state.withLock { state in
                    guard state.running[path] != nil else { return true }
                    state.retries.queued(source)
                    return false
                }
                if isFree, !isRetry { await self.beginByPolicy(source, isRetry: true) }
                return
            }
            guard case .end(let end) = error, !isRetry else { return }
            self.reportRefused(source.path, roomID: source.roomID, slot: source.slot, end)
        }
    }

    /// Logs and stores a refusal, once per stream rather than per attempt.
    package func reportRefused(_ path: StreamPath, roomID: RoomID?, slot: Int, _ end: RecordingEnd) {
        self.log.error("Not recording", metadata: ["stream": "\(path)", "reason": "\(end.rawValue)"])
        let task = RecordingTask(id: RecordingWriter.randomID(), path: path, roomID: roomID, slot: slot)
        self.rooms.recordingTaskEnded(task, end, wasStarted: false) {}
    }

    /// Retries failed recordings that are due and whose streams are still live.
    func retry(nowMs: Int64) async {
        self.heads.dropStale(nowMs: nowMs)
        let due = self.state.withLock { state in
            state.policy.forgetGone()
            return state.retries.due(nowMs: nowMs) { self.streams.registry.find($0) }
        }
        for source in due { await self.beginByPolicy(source, isRetry: true) }
    }
}
