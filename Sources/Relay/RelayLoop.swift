import DequeModule
package import NIOCore
package import Support

/// The relay's part on one event loop: its home streams, its viewers, and the pump.
///
/// `@unchecked Sendable`: every stored `var` is touched on `eventLoop` only; ``run(_:)`` is the way in from elsewhere.
package final class RelayLoop: @unchecked Sendable {
    package let eventLoop: any EventLoop
    let rtmp: any ReversibleEncoder
    /// Indexed by wire format.
    private let encoders: [any FrameEncoder]
    let policy: RelayPolicy
    private let turns: (any TurnTaking)?
    private let sendsPerTurn: Int
    /// Replaces the server's monotonic clock, in milliseconds; nil: the real clock.
    private let clock: (@Sendable () -> Int64)?

    var homes: [ObjectIdentifier: HomeStream] = [:]
    /// By stream and wire format.
    private(set) var fanouts: [FanoutKey: LoopFanout] = [:]
    /// Whether viewers here have ever chosen a track.
    private(set) var hasChosenTracks = false
    /// Fanouts with viewers to pump, in turn.
    @exclusivity(unchecked) private var dirty: Deque<LoopFanout> = []
    /// A spare list for the next batch of items, so that a frame allocates none.
    @exclusivity(unchecked) var spareItems: [StreamState.Item] = []
    /// One closure for all pumps.
    @exclusivity(unchecked) private var pumpTask: @Sendable () -> Void = {}
    @exclusivity(unchecked) private var isPumpScheduled = false
    @exclusivity(unchecked) private var isPumping = false
    private let scratch = PumpScratch()
    private var sweeps: UInt = 0
    @exclusivity(unchecked) private var turnsTaken: UInt64 = 0
    @exclusivity(unchecked) private var gathering: Gathering
    private var sweepTask: RepeatedTask?
    /// Viewers closed because they were over the age limit, since start.
    package private(set) var viewersTooSlow = 0

    /// Viewers shed because the loop was overloaded, since start.
    package private(set) var viewersShed = 0
    private var load: LoopLoad
    private var lateness = Lateness()
    /// How late the loop is, for any thread.
    package let pressure = LoopPressure()
    /// How promptly it serves its viewers.
    package let figures = RelayFigures()
    /// Called at the end of each sweep.
    package var whenSwept: (() -> Void)?

    /// Largest capacity of ``spareItems`` kept after a burst of frames.
    static let spareItemsLimit = 256
    /// Sends per turn, about 4 ms, before the loop polls its sockets again. Messages read then go to the viewers that are still to come in the lap,
    /// and nobody waits for a whole lap of a large stream. See ``LoopFanout/pumpOn(sends:scratch:policy:nowMs:)``.
    package static let usualSendsPerTurn = 512
    /// Delay before the next turn without a ``TurnTaking``. Long enough for a little other due work, no more.
    private static let turnPause = TimeAmount.microseconds(50)
    package static let sweepInterval = TimeAmount.milliseconds(LoopLoad.sampleMs)

    package init(
        eventLoop: any EventLoop, encoder: any ReversibleEncoder, policy: RelayPolicy = RelayPolicy(), turns: (any TurnTaking)? = nil,
        sendsPerTurn: Int = RelayLoop.usualSendsPerTurn,
        clock: (@Sendable () -> Int64)? = nil
    ) {
        self.eventLoop = eventLoop
        self.rtmp = encoder
        self.encoders = WireFormat.allCases.map { wireFormat in
            switch wireFormat {
            case .rtmp: encoder
            case .flvOverHTTP: BodyEncoder(.flvTag, .httpChunk)
            case .flvOverWebSocket: BodyEncoder(.flvTag, .webSocket)
            case .payloadOverHTTP: BodyEncoder(.payload, .httpChunk)
            case .payloadOverWebSocket: BodyEncoder(.payload, .webSocket)
            case .packets: BodyEncoder(.payload, .none)
            }
        }
        self.policy = policy
        self.gathering = Gathering(pauseNs: UInt64(max(0, policy.gatherMicros)) * 1_000)
        self.load = LoopLoad(overloadMs: policy.overloadMs)
        self.turns = turns
        self.sendsPerTurn = sendsPerTurn
        self.clock = clock
        self.pumpTask = { [weak self] in self?.pumpDirty() }
    }

    package var nowMs: Int64 { self.clock?() ?? NIODeadline.now().relayMs }

    func encoder(_ wireFormat: WireFormat) -> any FrameEncoder { self.encoders[wireFormat.rawValue] }

    /// Runs the body on the loop: at once when called there, otherwise as the loop's next task.
    package func run(_ body: @escaping @Sendable (RelayLoop) -> Void) {
        if self.eventLoop.inEventLoop { body(self) } else { self.eventLoop.execute { body(self) } }
    }

    /// Starts the sweep: one timer for all streams and viewers of the loop.
    ///
    /// It does not share the timer of ``LoopSweeper``, which ticks only while somebody has a deadline. This one measures how late the loop is, so it
    /// ticks evenly and always.
    package func start() {
        self.run { loop in
            loop.planSweep()
            loop.sweepTask = loop.eventLoop.scheduleRepeatedTask(initialDelay: Self.sweepInterval, delay: Self.sweepInterval) { _ in
                loop.sweep()
                loop.planSweep()
            }
        }
    }

    private func planSweep() {
        self.lateness.planned(dueMs: self.nowMs + LoopLoad.sampleMs)
        for fanout in self.fanouts.values { fanout.lateness = self.lateness }
    }

    /// Drops all streams, to break the reference cycle between them and this loop. Later calls for a stream find none.
    package func stop() {
        self.run { loop in
            loop.sweepTask?.cancel()
            loop.sweepTask = nil
            loop.dirty = []
            loop.fanouts = [:]
            for home in loop.homes.values { home.stream.local = nil }
            loop.homes = [:]
        }
    }

    // MARK: Home streams

    func adopt(_ stream: Stream, registry: StreamRegistry) {
        let fanout = self.makeFanout(stream, .rtmp, ring: FanoutRing(bounds: self.policy.ring), isSeeded: true)
        let home = HomeStream(stream, registry, grace: self.policy.grace, rtmp: PackagedStream(fanout))
        self.homes[stream.id] = home
        stream.local = home
    }

    /// Removes a stream that nobody uses any more.
    func abandon(_ stream: Stream) {
        stream.local = nil
        for packaged in self.homes.removeValue(forKey: stream.id)?.wireFormats ?? [] {
            self.fanouts[FanoutKey(stream, packaged.fanout.form)] = nil
        }
        for form in FanoutForm.plain { self.fanouts[FanoutKey(stream, form)] = nil }
    }

    private func makeFanout(_ stream: Stream, _ form: FanoutForm, ring: FanoutRing, isSeeded: Bool) -> LoopFanout {
        let fanout = LoopFanout(
            stream, form, ring: ring, isSeeded: isSeeded, encoder: self.encoder(form.wireFormat), policy: self.policy,
            figures: self.figures, nowMs: self.nowMs)
        self.fanouts[FanoutKey(stream, form)] = fanout
        if form.track != nil { self.hasChosenTracks = true }
        return fanout
    }

    /// The home stream in this form, made from RTMP's ring on first use.
    private func packaged(_ home: HomeStream, _ form: FanoutForm) -> PackagedStream {
        if let there = home.packaged(form) { return there }
        var allocator = SlabAllocator(ledger: self.policy.ledger)
        let encoder = self.encoder(form.wireFormat)
        let ring: FanoutRing
        if let track = form.track {
            ring = home.ring.retracked(
                { home.state.headers($0, ofTrack: track) },
                { message in
                    message.frame(self.rtmp).flatMap { home.state.tracks.chosen($0, track) }.map {
                        EncodedMessage($0, encoder: encoder, allocator: &allocator, arrivalMs: message.arrivalMs)
                    }
                })
        } else {
            ring = home.ring.repackaged { message in
                message.frame(self.rtmp).map {
                    EncodedMessage($0, encoder: encoder, allocator: &allocator, arrivalMs: message.arrivalMs)
                }
            }
        }
        let made = PackagedStream(self.makeFanout(home.stream, form, ring: ring, isSeeded: true))
        made.allocator = allocator
        home.wireFormats.append(made)
        return made
    }

    // MARK: Viewers

    func apply(_ updates: [RingUpdate], to stream: Stream, _ form: FanoutForm) {
        guard let fanout = self.fanouts[FanoutKey(stream, form)], fanout.isSeeded else { return }
        fanout.apply(updates)
        self.markDirty(fanout)
    }

    /// Adds a viewer connected on this loop, and sends it its first messages at once.
    package func attach(_ viewer: Viewer) {
        self.eventLoop.preconditionInEventLoop()
        let stream = viewer.stream
        let form = viewer.form
        if let home = self.homes[stream.id] { _ = self.packaged(home, form) }
        if let fanout = self.fanouts[FanoutKey(stream, form)] {
            fanout.add(viewer, nowMs: self.nowMs)
            self.pump(viewer)
            return
        }
        // First viewer here of a stream from another loop: subscribe, and copy its ring.
        self.makeFanout(stream, form, ring: FanoutRing(bounds: self.policy.ring), isSeeded: false).add(viewer, nowMs: self.nowMs)
        stream.home.eventLoop.execute {
            let packaged = stream.home.homes[stream.id].map { stream.home.packaged($0, form) }
            packaged?.subscribers.append(self)
            // Empty when the stream is gone: this loop drops the fanout at its next sweep.
            let ring = packaged?.fanout.ring.copy() ?? FanoutRing(bounds: FanoutRing.Bounds())
            self.eventLoop.execute {
                guard let fanout = self.fanouts[FanoutKey(stream, form)], !fanout.isSeeded else { return }
                fanout.seed(ring, nowMs: self.nowMs)
                self.markDirty(fanout)
            }
        }
    }

    package func detach(_ viewer: Viewer) {
        self.eventLoop.preconditionInEventLoop()
        guard !viewer.isDetached else { return }
        if let fanout = self.fanouts[FanoutKey(viewer)] {
            fanout.markDetached(viewer)
        } else {
            viewer.detach()
        }
    }

    /// Pumps one viewer: its connection has room again, or its requests have changed.
    package func pump(_ viewer: Viewer) {
        guard let fanout = self.fanouts[FanoutKey(viewer)], fanout.isSeeded else { return }
        // A write may complete at once and re-enter here for another of the connection's viewers.
        guard !self.isPumping else { return self.markDirty(fanout) }
        self.isPumping = true
        fanout.pump(viewer, scratch: self.scratch, policy: self.policy, nowMs: self.nowMs)
        self.isPumping = false
    }

    /// Sends the viewer the cached pictures from their keyframe on, though it may have got them: it has lost what it needs to go on. Without cached
    /// pictures it waits for the next keyframe.
    package func restart(_ viewer: Viewer) {
        guard !viewer.isDetached, let fanout = self.fanouts[FanoutKey(viewer)], fanout.isSeeded else { return }
        viewer.isSteady = false
        viewer.start(in: fanout, nowMs: self.nowMs)
        // It joined long ago.
        viewer.isJoining = false
        self.pump(viewer)
    }

    package func setPaused(_ viewer: Viewer, _ paused: Bool) {
        guard viewer.isPaused != paused else { return }
        viewer.isPaused = paused
        viewer.isSteady = false
        guard !paused, let fanout = self.fanouts[FanoutKey(viewer)], fanout.isSeeded else { return }
        // The viewer resumes live: at the newest keyframe, or at the next one if it has already got the newest.
        fanout.rejoin(viewer, nowMs: self.nowMs)
        viewer.unsentBytes = viewer.sink.unsentBytes()
        viewer.beginBurst(in: fanout, nowMs: self.nowMs)
        self.pump(viewer)
    }

    package func setAudio(_ viewer: Viewer, _ wanted: Bool) {
        viewer.gate.setAudio(wanted)
        viewer.isSteady = false
    }

    package func setVideo(_ viewer: Viewer, _ wanted: Bool) {
        viewer.gate.setVideo(wanted)
        viewer.isSteady = false
    }

    /// No fanout waits to be pumped.
    var hasPumped: Bool { self.dirty.isEmpty }

    /// Schedules the fanout's pump, after ``LoopFanout/coalesceMs`` if that is set.
    func markDirty(_ fanout: LoopFanout) {
        guard !fanout.viewers.isEmpty else { return }
        guard fanout.coalesceMs > 0 else { return self.makeDue(fanout) }
        guard !fanout.isGathering else { return }
        fanout.isGathering = true
        self.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(fanout.coalesceMs)) {
            fanout.isGathering = false
            self.makeDue(fanout)
        }
    }

    /// Queues the fanout for the loop's next task. Messages read before that go out in the same writes (natural batching).
    private func makeDue(_ fanout: LoopFanout) {
        fanout.beginLap()
        guard !fanout.isQueued else { return }
        fanout.isQueued = true
        self.dirty.append(fanout)
        guard !self.isPumpScheduled else { return }
        self.isPumpScheduled = true
        self.eventLoop.execute(self.pumpTask)
    }

    private func pumpDirty() {
        let began = NIODeadline.now()
        let nowMs = self.clock?() ?? began.relayMs
        var laps: UInt64 = 0
        var sends = self.sendsPerTurn
        // Still counts as scheduled: fanouts marked meanwhile are pumped here, or in the next turn.
        self.isPumping = true
        while sends > 0, let fanout = self.dirty.popFirst() {
            let isWholeTurn = sends == self.sendsPerTurn
            fanout.pumpOn(sends: &sends, scratch: self.scratch, policy: self.policy, nowMs: nowMs)
            if !fanout.isDue {
                fanout.isQueued = false
                if let lapBegan = fanout.lapBegan.take() { self.noteLaps(1, since: lapBegan) } else { laps += 1 }
                continue
            }
            if fanout.lapBegan == nil { fanout.lapBegan = began }
            if isWholeTurn {
                self.dirty.append(fanout)
            } else {
                // This fanout had only the rest of another's turn, so it goes first in the next turn.
                self.dirty.prepend(fanout)
            }
        }
        self.isPumping = false
        self.turnsTaken &+= 1
        if laps > 0, self.turnsTaken % RelayFigures.timedTurns == 0 { self.noteLaps(laps &* RelayFigures.timedTurns, since: began) }
        self.isPumpScheduled = !self.dirty.isEmpty
        guard self.isPumpScheduled else { return self.gather(messages: Int(laps)) }
        if let turns = self.turns { return turns.next(self.pumpTask) }
        self.eventLoop.assumeIsolated().scheduleTask(in: Self.turnPause, self.pumpTask)
    }

    /// Sleeps, if that lets the next turn find more to do.
    private func gather(messages: Int) {
        self.gathering.count(messages: messages)
        guard self.gathering.isOn, self.clock == nil else { return }
        let pauseNs = self.gathering.rest(nowNs: NIODeadline.now().uptimeNanoseconds)
        if pauseNs > 0 { Gathering.sleep(pauseNs) }
        self.gathering.woke(nowNs: NIODeadline.now().uptimeNanoseconds)
    }

    // MARK: Sweep

    /// Applies deadlines, closes slow viewers and frees memory; every ``sweepInterval``.
    package func sweep() {
        let nowMs = self.nowMs
        let lateMs = self.lateness.swept(nowMs: nowMs)
        var waitMs: Int64 = 0
        self.sweeps &+= 1
        self.gathering.judge(overMs: LoopLoad.sampleMs)
        for home in Array(self.homes.values) {
            var items: [StreamState.Item] = []
            let result = home.state.tick(nowMs: nowMs, items: &items)
            self.apply(items, for: home)
            switch result {
            case .nothing: break
            case .publisherIdle(let token):
                home.delegate?.publishEnded(token, reason: .mediaIdle)
                home.delegate = nil
            case .ended: home.registry.release(home.stream)
            }
            self.notifyOverflow(home)
            for tap in home.taps { tap.sweep() }
            home.meter.tick(nowMs: nowMs)
            home.history.tick(home.meter, viewers: home.stream.viewerCount, isLive: home.state.publisherToken != nil, nowMs: nowMs)
            home.judge(lateMs: self.lateness.totalMs, nowMs: nowMs)
        }
        if self.policy.ledger?.isOver == true { self.dropUnwatchedCaches() }
        let samplesKernel = self.sweeps % 10 == 0
        for fanout in Array(self.fanouts.values) {
            fanout.lateness = self.lateness
            waitMs = max(waitMs, fanout.popLongestWaitMs())
            fanout.sweepDetached()
            if self.dropIfUnused(fanout) { continue }
            // If all viewers are near live, only the kernel's queues can reveal a slow one.
            if samplesKernel || fanout.slowestWaitMs(nowMs: nowMs) > self.policy.maxBehindMs {
                self.closeSlow(fanout, samplesKernel: samplesKernel, nowMs: nowMs)
            }
            fanout.trim(nowMs: nowMs)
        }
        self.judgeLoad(waitMs: waitMs, lateMs: lateMs, nowMs: nowMs)
        self.whenSwept?()
    }

    private func closeSlow(_ fanout: LoopFanout, samplesKernel: Bool, nowMs: Int64) {
        if samplesKernel { fanout.sampleKernel(limitMs: self.policy.ring.gopMs, nowMs: nowMs) }
        // Bytes in the kernel may have left since the last sample, so only a fresh sample counts.
        let rate = samplesKernel ? fanout.rate.peak : 0
        for slow in fanout.tooSlow(
            bytesPerSecond: rate, maxBehindMs: self.policy.maxBehindMs, isSample: samplesKernel, nowMs: nowMs)
        {
            self.viewersTooSlow += 1
            slow.viewer.sink.fellTooFarBehind(slow.viewer, ms: slow.behindMs)
        }
    }

    /// Judges how late the loop is, and sheds viewers when refusing new ones is not enough.
    private func judgeLoad(waitMs: Int64, lateMs: Int64, nowMs: Int64) {
        self.figures.noteLag(ms: max(waitMs, lateMs))
        self.load.sample(lagMs: max(waitMs, lateMs), elapsedMs: LoopLoad.sampleMs + lateMs)
        self.pressure.publish(self.load)
        guard self.load.level == .overloaded else { return }
        let count = self.load.shed(of: self.fanouts.values.reduce(0) { $0 + $1.viewers.count })
        guard count > 0 else { return }
        let delayed = self.fanouts.values.flatMap { $0.delayedViewers(nowMs: nowMs) }
            .sorted { ($0.ownMs, $0.behindMs, $0.viewer.joinedMs) > ($1.ownMs, $1.behindMs, $1.viewer.joinedMs) }
        for late in delayed.prefix(count) {
            self.viewersShed += 1
            late.viewer.sink.shed(late.viewer)
        }
    }

    /// The clock minus the loop's lateness, in milliseconds. For deadlines of peers, which get no answer while the loop is late.
    package var punctualMs: Int64 { self.lateness.punctualMs(self.nowMs) }

    /// Drops an unused fanout, so that loops and forms without viewers cost the stream nothing. Returns whether the fanout is gone.
    private func dropIfUnused(_ fanout: LoopFanout) -> Bool {
        let stream = fanout.stream
        let form = fanout.form
        guard fanout.isSeeded, fanout.viewers.isEmpty else { return false }
        if stream.home === self {
            guard form != .rtmp, let home = self.homes[stream.id], home.packaged(form)?.subscribers.isEmpty == true else {
                return false
            }
            home.wireFormats.removeAll { $0.fanout === fanout }
            self.fanouts[FanoutKey(stream, form)] = nil
            return true
        }
        self.fanouts[FanoutKey(stream, form)] = nil
        stream.home.run { home in
            guard let packaged = home.homes[stream.id]?.packaged(form),
                let index = packaged.subscribers.firstIndex(where: { $0 === self })
            else { return }
            packaged.subscribers.remove(at: index)
        }
        return true
    }
}

/// Key of a stream's fanout on a loop.
struct FanoutKey: Hashable {
    private let stream: ObjectIdentifier
    private let form: FanoutForm

    init(_ stream: Stream, _ form: FanoutForm) {
        self.stream = stream.id
        self.form = form
    }

    init(_ viewer: Viewer) { self.init(viewer.stream, viewer.form) }
}
