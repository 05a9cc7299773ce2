import Access
import LibC
import Logging
import NIOCore
import Notifications
import Relay
import RoomRegistry
package import Rooms
import ServerConfiguration
import Streaming
package import Support
package import Synchronization
package import Talk

/// A room's talk channel: its participants, the floor, and the mixes that have listeners.
///
/// Any thread: decisions are made under a lock that is held for moments; audio is the ``TalkEngine``'s, on the channel's clock. It ticks
/// while somebody is in it, and ends with the room.
package final class TalkChannel: Sendable {
    package let roomID: RoomID
    let talkback: Talkback
    /// Bits per second of its mixes, as set when the channel began.
    private let bitRate: Int
    private let clock: TalkClock
    private let engine: TalkEngine
    package let state: Mutex<TalkChannelState>

    /// The channel stops ticking after this long without talkers, listeners and recordings.
    private static let lingerMs: Int64 = 1_000
    /// Shortest interval between events about who speaks.
    private static let reportMs: Int64 = 500
    private static let heardMs: Int64 = 100
    /// Attempts to hold a mix whose name is still taken, and milliseconds between them.
    private static let holdTries = 5
    private static let holdRetryMs = 150

    init(_ roomID: RoomID, settings: TalkSettings, talkback: Talkback, clock: TalkClock) {
        self.roomID = roomID
        self.talkback = talkback
        self.bitRate = talkback.config.bitRate
        self.clock = clock
        var log = talkback.log
        log[metadataKey: "room"] = "\(roomID)"
        self.engine = TalkEngine(log: log)
        self.state = Mutex(
            TalkChannelState(
                settings: settings, members: TalkMembers(limits: settings.limits),
                floor: FloorRules(settings: settings.floor(idleMs: talkback.config.idleMs)))
        )
    }

    package static var nowMs: Int64 { TalkClock.nowUs / 1_000 }
    private static let thrownOut = "The participant was kicked from the talk channel."

    // MARK: Coming and going

    /// Admits a talker, or throws the refusal.
    func admitTalker(_ id: ParticipantID, _ pass: AdmissionPass, role: TalkRole) throws(TalkDenial) -> TalkPublishSession {
        try self.locked { state throws(TalkDenial) in
            guard !state.isClosed else { throw .closed }
            let admission: TalkAdmission
            do throws(TalkRefusal) {
                admission = try state.members.admitTalker(
                    id, identity: pass.identity, user: pass.participant, role: role, nowMs: Self.nowMs)
            } catch {
                throw .refused(error)
            }
            let talker = TalkPublishSession(self, id, user: pass.participant, role: role, session: admission.session)
            state.coming[talker.session] = talker
            self.wake(&state)
            return talker
        }
    }

    /// Admits a listener and opens its mix, if it plays one. Throws the refusal.
    func admitListener(
        _ target: TalkAddress, _ pass: AdmissionPass, codec: TalkCodec, role: (any ConnectedRole)?
    ) throws(TalkDenial) -> TalkListenSession {
        try self.locked { state throws(TalkDenial) in
            guard !state.isClosed else { throw .closed }
            let session: Int64
            do throws(TalkRefusal) {
                session = try state.members.admitListener(target, user: pass.participant, nowMs: Self.nowMs)
            } catch {
                throw .refused(error)
            }
            let codec = target.isMix ? codec : .aac
            let listening = TalkListenSession(self, target, codec: codec, session: session, role: role)
            state.listeners[session] = listening
            if target.isMix { self.open(listening.output, &state) }
            self.wake(&state)
            return listening
        }
    }

    /// Keeps the mix of all voices running for a stream's recording, even without listeners. Returns once it can be recorded. False if the channel is
    /// over or the mix's name stayed taken.
    func hold(for stream: StreamPath) async -> Bool {
        for _ in 0..<Self.holdTries {
            let opening = self.state.withLock { state -> Task<Void, Never>? in
                guard !state.isClosed else { return nil }
                state.held.insert(stream)
                self.open(TalkChannelState.recorded, &state)
                self.wake(&state)
                if case .opening(let task)? = state.outputs[TalkChannelState.recorded] { return task }
                return nil
            }
            await opening?.value
            let isOpen = self.state.withLock { state in if case .open? = state.outputs[TalkChannelState.recorded] { true } else { false } }
            if isOpen || self.isOver { return isOpen }
            // The previous mix of that name is still ending.
            try? await Task.sleep(for: .milliseconds(Self.holdRetryMs))
        }
        return false
    }

    /// Releases a stream recording's hold on the mix. Returns true if this was the last hold; the mix goes on while it has listeners.
    func letGo(for stream: StreamPath) -> Bool {
        self.state.withLock { state in state.held.remove(stream) != nil && state.held.isEmpty }
    }

    /// Runs `body` under the lock; `Mutex` does not pass on typed throws.
    private func locked<Value: Sendable>(_ body: (inout TalkChannelState) throws(TalkDenial) -> Value) throws(TalkDenial) -> Value {
        let outcome = self.state.withLock { state -> Result<Value, TalkDenial> in
            do throws(TalkDenial) { return .success(try body(&state)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }

    /// Starts to tick. Called with the lock held, so that arrivals and departures cannot overtake each other.
    private func wake(_ state: inout TalkChannelState) {
        state.emptySinceMs = nil
        guard !state.isTicking else { return }
        state.isTicking = true
        state.tickedMs = Self.nowMs
        self.clock.add(self)
    }

    /// Opens a mix unless it exists. With the lock held.
    private func open(_ key: TalkOutputs.Key, _ state: inout TalkChannelState) {
        guard state.outputs.lacks(key, nowMs: Self.nowMs), let loop = self.talkback.streams.allLoops.randomElement()?.relay else { return }
        let registry = self.talkback.registry(of: key.codec)
        let path = TalkStreamName.path(self.roomID, key.target)
        let task = Task {
            let stream = await DerivedStream.open(path, by: "talk", in: registry, on: loop)
            let isWanted = self.state.withLock { $0.outputs.opened(key, stream, nowMs: Self.nowMs) }
            if !isWanted { stream?.end() }
        }
        state.outputs.begin(key, task)
    }

    /// Puts the talker on air, now that it owns its stream: it is heard while it has the floor.
    package func began(_ talker: TalkPublishSession) {
        var isOver = false
        var isForbidden = false
        self.change { state in
            state.coming[talker.session] = nil
            isOver = state.isClosed
            let nowMs = Self.nowMs
            isForbidden =
                !talker.mayBegin
                || ([talker.id] + [talker.user].compactMap { $0 }).contains { state.members.forbiddenUntil($0, nowMs: nowMs) != nil }
            guard !isOver, !isForbidden else { return [] }
            state.talkers[talker.id] = talker
            state.members.began(session: talker.session, role: talker.role, nowMs: nowMs)
            return (state.members.isMuted(talker.id) ? state.floor.apply(.muted(talker.id, by: nil), nowMs: nowMs) : [])
                + state.floor.apply(.published(talker.id, talker.role), nowMs: nowMs)
        }
        // The room ended, or the participant was thrown out, while the stream was being claimed.
        if isOver { talker.connected?.end(.roomEnded, "The room's talk channel has ended.") }
        if isForbidden { talker.connected?.end(.kicked, Self.thrownOut) }
    }

    /// Whether the channel has ended for good.
    package var isOver: Bool { self.state.withLock { $0.isClosed } }

    package func ended(_ talker: TalkPublishSession) {
        self.change { state in
            state.coming[talker.session] = nil
            if state.talkers[talker.id] === talker { state.talkers[talker.id] = nil }
            // After a takeover the successor is the same participant and keeps the floor. If this session failed to take over, the talker on
            // air stays.
            guard state.members.left(session: talker.session) else { return [] }
            state.reports[talker.id] = nil
            state.heardMs[talker.id] = nil
            return state.floor.apply(.unpublished(talker.id), nowMs: Self.nowMs)
        }
    }

    package func ended(_ listening: TalkListenSession) {
        self.state.withLock { state in
            state.listeners[listening.session] = nil
            _ = state.members.left(session: listening.session)
        }
    }

    // MARK: The floor

    /// Applies a change and reports its events. `actor` is the caller, for the audit trail.
    @discardableResult
    private func change(by actor: Actor? = nil, _ body: (inout TalkChannelState) -> [FloorEvent]) -> [FloorEvent] {
        self.state.withLock { state -> [FloorEvent] in
            state.noteStall(nowMs: Self.nowMs)
            let events = body(&state)
            self.settle(events, by: actor, &state)
            return events
        }
    }

    /// Reports the events. Called with the lock held, so that the audit trail has the order of events.
    private func settle(_ events: [FloorEvent], by actor: Actor?, _ state: inout TalkChannelState) {
        for talker in state.talkers.values { talker.setOpen(state.floor.holds(talker.id)) }
        guard !events.isEmpty else { return }
        state.reportedMs = 0
        let mode = state.settings.mode.rawValue
        self.talkback.rooms.floorChanged(self.roomID, events.compactMap { FloorRecord($0, mode: mode, actor: actor) })
    }

    /// Applies a control channel's request. Returns its events and the participant's status; nil: the channel is over.
    package func floor(_ input: FloorInput, of id: ParticipantID, by actor: Actor) -> (events: [FloorEvent], status: FloorStatus)? {
        var status: FloorStatus?
        let events = self.change(by: actor) { state in
            guard !state.isClosed else { return [] }
            self.wake(&state)
            let nowMs = Self.nowMs
            let events = state.floor.apply(state.permitted(input, nowMs: nowMs), nowMs: nowMs)
            status = state.floor.status(of: id)
            return events
        }
        return status.map { (events, $0) }
    }

    /// The role at admission; for others, host if they own the room, else guest.
    package func role(of id: ParticipantID, owner: String?) -> TalkRole {
        self.state.withLock { $0.members.role(id) } ?? (owner?.exact == id.rawValue.exact ? .host : .guest)
    }

    /// Applies a participant's settings. Converts its ban from room time to the monotonic clock.
    package func set(_ setting: TalkMemberSetting, of id: ParticipantID, by actor: Actor?) {
        self.change(by: actor) { state in
            let wasMuted = state.members.isMuted(id)
            state.members.setMuted(id, setting.isMuted)
            state.members.setGain(id, Float(pow(10, setting.gainDB / 20)))
            state.members.forbid(id, untilMs: setting.bannedUntilMs.map { Self.nowMs + $0 - self.talkback.rooms.now })
            let nowMs = Self.nowMs
            let forgotten = state.floor.muted.filter { $0 != id && !state.members.isMuted($0) }
            let events = forgotten.flatMap { state.floor.apply(.unmuted($0), nowMs: nowMs) }
            guard wasMuted != setting.isMuted else { return events }
            return events + state.floor.apply(setting.isMuted ? .muted(id, by: nil) : .unmuted(id), nowMs: nowMs)
        }
    }

    /// Applies settings made while the channel was being created. Called in the registry's order; `before`: the settings that it began with.
    package func set(_ members: [TalkMemberSetting], instead before: [TalkMemberSetting] = []) {
        let lifted = before.filter { old in !members.contains { $0.user.exact == old.user.exact } }.map { TalkMemberSetting(user: $0.user) }
        for member in lifted + members where !before.contains(member) {
            // Names were checked when the settings were made.
            if let id = try? ParticipantID(member.user) { self.set(member, of: id, by: nil) }
        }
    }

    /// Whether the participant speaks or listens here, or is about to.
    package func has(_ id: ParticipantID) -> Bool {
        self.state.withLock { state in
            state.members.sessions(of: id).contains { state.listeners[$0] != nil } || state.talkers.values.contains { $0.isOf(id) }
                || state.coming.values.contains { $0.isOf(id) }
        }
    }

    /// Ends the participant's sessions here, including imminent ones. Returns whether there were any.
    package func kick(_ id: ParticipantID, by actor: Actor?) -> Bool {
        var roles: [any ConnectedRole] = []
        var wasThere = false
        self.change(by: actor) { state in
            for session in state.members.sessions(of: id) {
                guard let listening = state.listeners[session] else { continue }
                wasThere = true
                listening.throwOut()
                if let role = listening.role { roles.append(role) }
            }
            // Talkers on air end here and now; admitted ones when they own their stream.
            for talker in state.talkers.values where talker.isOf(id) {
                wasThere = true
                if let role = talker.connected { roles.append(role) }
            }
            for talker in state.coming.values where talker.isOf(id) {
                wasThere = true
                talker.throwOut()
            }
            return state.floor.apply(.kicked(id, by: nil), nowMs: Self.nowMs)
        }
        for role in roles { role.end(.kicked, Self.thrownOut) }
        return wasThere
    }

    package func set(_ settings: TalkSettings, by actor: Actor?) {
        self.change(by: actor) { state in
            guard state.settings != settings else { return [] }
            state.settings = settings
            state.members.limits = settings.limits
            return state.floor.apply(.settings(settings.floor(idleMs: self.talkback.config.idleMs)), nowMs: Self.nowMs)
        }
    }

    /// Closes the channel for good: the room is over or forbidden.
    package func close(_ reason: CloseReason) {
        var roles: [any ConnectedRole] = []
        var streams: [DerivedStream] = []
        self.change { state in
            guard !state.isClosed else { return [] }
            state.isClosed = true
            state.held = []
            roles = state.talkers.values.compactMap(\.connected) + state.listeners.values.compactMap(\.role)
            streams = state.outputs.removeAll()
            return state.floor.apply(.closed, nowMs: Self.nowMs)
        }
        for stream in streams { stream.end() }
        for role in roles { role.end(reason, "The room's talk channel has ended.") }
    }

    // MARK: Ticks

    /// Runs one tick, on the clock's thread.
    func tick(nowUs: Int64, isMadeUp: Bool) {
        let nowMs = nowUs / 1_000
        var unused: [DerivedStream] = []
        var plan = TalkEngine.Plan()
        self.change { state in
            state.tickedMs = max(state.tickedMs ?? nowMs, nowMs)
            unused = self.chooseOutputs(&state, nowMs)
            plan = state.plan(bitRate: self.bitRate)
            plan.isMadeUp = isMadeUp
            guard let deadline = state.floor.nextDeadlineMs, deadline <= nowMs else { return [] }
            return state.floor.apply(.tick, nowMs: nowMs)
        }
        for stream in unused { stream.end() }
        let report = self.engine.run(plan, nowUs: nowUs)
        var members: String?
        self.change { state in
            state.mixes = report.mixes
            state.totals = report.totals
            // Some may have left since the tick began.
            state.reports = report.voices.filter { state.talkers[$0.key] != nil }
            members = self.membersReport(&state, nowMs)
            var events: [FloorEvent] = []
            let unheard = state.talkers.values.filter { $0.wasLeftOut() }.map(\.id)
            let heard = report.heard.filter { state.talkers[$0] != nil }
            for id in heard + unheard where nowMs - (state.heardMs[id] ?? 0) >= Self.heardMs {
                state.heardMs[id] = nowMs
                events += state.floor.apply(.spoke(id), nowMs: nowMs)
            }
            return events
        }
        if let members { self.talkback.events.notify(members, of: self.roomID) }
    }

    /// Stops ticking if nobody has been here for a while; returns whether it did.
    private func rests(_ state: inout TalkChannelState, _ nowMs: Int64) -> Bool {
        guard state.members.talkers.isEmpty, state.members.listenerCount == 0, state.held.isEmpty, state.floor.nextDeadlineMs == nil else {
            state.emptySinceMs = nil
            return false
        }
        let since = state.emptySinceMs ?? nowMs
        state.emptySinceMs = since
        guard nowMs - since >= (state.isClosed ? 0 : Self.lingerMs) else { return false }
        state.isTicking = false
        self.clock.remove(self)
        return true
    }

    /// Returns the mixes to end. Also opens missing mixes that have listeners: their names may have been taken before.
    private func chooseOutputs(_ state: inout TalkChannelState, _ nowMs: Int64) -> [DerivedStream] {
        if self.rests(&state, nowMs) { return state.outputs.removeAll() }
        let wanted = state.wanted
        for key in wanted where !state.isClosed { self.open(key, &state) }
        return state.outputs.removeUnused(wanted, nowMs: nowMs)
    }

    /// The event about who speaks and how loud; nil if too soon or unchanged.
    private func membersReport(_ state: inout TalkChannelState, _ nowMs: Int64) -> String? {
        guard nowMs - state.reportedMs >= Self.reportMs else { return nil }
        state.reportedMs = nowMs
        let text = EventMessage.talkMembers(self.roomID, state.shown)
        guard text != state.reportedText else { return nil }
        state.reportedText = text
        return text
    }
}
