import Logging
import Relay
package import Rooms
import Support
import Synchronization

/// Execution of the room registry's decisions.
extension LiveControl {
    /// Makes this server carry out the registry's outcomes. Call before the registry starts.
    package func handleRoomOutcomes() {
        // Weak, so that the registry and this object, which live equally long, do not retain each other.
        self.rooms.onOutcome { [weak self] outcomes in self?.apply(outcomes) }
    }

    /// Adds an observer of events, called in order on the registry's queue; it must not block. Events of other nodes may be left out: see
    /// the registry's `readsEvents`.
    package func observeEvents(_ body: @escaping @Sendable ([RoomEvent]) -> Void) {
        self.eventObservers.withLock { $0.append(body) }
    }

    /// Adds an observer of all events' marks, called in order on the registry's queue; it must not block.
    package func observeMarks(_ body: @escaping @Sendable ([EventMark]) -> Void) {
        self.markObservers.withLock { $0.append(body) }
    }

    /// Adds an observer of all outcomes, called in order on the registry's queue after they were carried out; it must not block.
    package func observeOutcomes(_ body: @escaping @Sendable ([RoomOutcome]) -> Void) {
        self.outcomeObservers.withLock { $0.append(body) }
    }

    /// On the registry's queue.
    private func apply(_ outcomes: [RoomOutcome]) {
        var events: [RoomEvent] = []
        var marks: [EventMark] = []
        for outcome in outcomes {
            switch outcome {
            case .event(let event):
                events.append(event)
                marks.append(event.mark)
                self.logEvent(event)
            case .eventElsewhere(let event):
                events.append(event)
                marks.append(event.mark)
            case .eventMark(let mark): marks.append(mark)
            case .cut(let path, let sequence, let end, let endsViewers):
                self.cutNow(path, sequence: sequence, end, endsViewers: endsViewers)
            case .waits(let path, let wait):
                guard let stream = self.streams.registry.find(path.description) else { continue }
                let ms = GracePeriods.waitMs(untilMs: wait.untilMs, endsRoom: wait.endsRoom, nowMs: self.rooms.now)
                RelayLoop.wait(for: stream, ms: ms)
            // Of observers.
            case .streamBegan, .drainAsked: break
            case .policyChanged(_, let paths, _, let policy):
                let grace = GracePeriods(policy)
                for path in paths { if let stream = self.streams.registry.find(path.description) { RelayLoop.change(stream, to: grace) } }
            case .pauseAnnounced(let path):
                if let stream = self.streams.registry.find(path.description) { RelayLoop.announcePause(stream) }
            case .kick(let roomID, let user, let actor):
                Task { await self.endSessions(of: user, inRoom: roomID, by: actor) }
            case .clockAdopted(let byMs, let rooms):
                self.log.debug("Rooms follow the leap of the machine's clock", metadata: ["ms": "\(byMs)", "rooms": "\(rooms)"])
            }
        }
        if !events.isEmpty {
            for observer in self.eventObservers.withLock({ $0 }) { observer(events) }
        }
        if !marks.isEmpty {
            for observer in self.markObservers.withLock({ $0 }) { observer(marks) }
        }
        for observer in self.outcomeObservers.withLock({ $0 }) { observer(outcomes) }
    }

    private func endSessions(of user: String, inRoom roomID: RoomID, by actor: Actor) async {
        do {
            await self.endSessions(of: user, in: try await self.rooms.room(roomID.rawValue), by: actor)
        } catch {
            self.log.error("A member's sessions could not be ended", metadata: ["room": "\(roomID)", "error": "\(error)"])
        }
    }

    private func logEvent(_ event: RoomEvent) {
        if event.kind == .clockLeapt {
            return self.log.warning(
                "The machine's clock has leapt: rooms and recordings keep the old time until the leap has held for rooms.clockHold",
                metadata: ["leap": "\(event.data)", "number": "\(event.id)"])
        }
        guard event.kind.isTransition, let held = self.roomFlood.pass(nowMs: LoopSweeper.nowMs) else { return }
        var metadata: Logger.Metadata = ["event": "\(event.kind.rawValue)", "number": "\(event.number)"]
        if let roomID = event.roomID { metadata["room"] = "\(roomID)" }
        self.log.write("Room changed", metadata, heldBack: held)
    }
}
