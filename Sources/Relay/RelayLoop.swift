import DequeModule
package import NIOCore

/// The relay's part on one event loop: the streams that live here, the viewers that are connected here, and the pump.
///
/// `@unchecked Sendable`: every stored `var` is touched on `eventLoop` only; ``run(_:)`` is the way in from elsewhere.
package final class RelayLoop: @unchecked Sendable {
    package let eventLoop: any EventLoop
    let rtmp: any ReversibleEncoder
    /// By packaging.
    private let encoders: [any FrameEncoder]
    let policy: RelayPolicy
    private let turns: (any TurnTaking)?
    private let sendsPerTurn: Int
    /// Milliseconds of the server's monotonic clock.
    private let clock: @Sendable () -> Int64

    var homes: [ObjectIdentifier: HomeStream] = [:]
    /// By stream and packaging.
    private var fanouts: [FanoutKey: LoopFanout] = [:]
    /// Those with viewers to pump, in turn.
    private var dirty: Deque<LoopFanout> = []
    /// Memory for the next list of the same kind, so that a frame allocates none.
    var spareItems: [StreamState.Item] = []
    /// One closure for all pumps.
    private lazy var pumpTask: @Sendable () -> Void = { [weak self] in self?.pumpDirty() }
    private var isPumpScheduled = false
    private var isPumping = false
    private let scratch = PumpScratch()
    private var sweeps: UInt = 0
    private var sweepTask: RepeatedTask?
    /// Viewers closed because they were over the age limit, since start.
    package private(set) var viewersTooSlow = 0

    /// What a burst of frames may leave behind.
    static let spareItemsLimit = 256
    /// ``LoopFanout/pumpOn(sends:scratch:policy:nowMs:)``'s before the loop looks at its sockets again, for about 4 ms: what is read then goes to
    /// the viewers that are still to come, and nobody waits for a whole lap of a large stream.
    package static let usualSendsPerTurn = 512
    /// Where nobody keeps the turns: long enough for a little else that is due, no more.
    private static let turnPause = TimeAmount.microseconds(50)
    package static let sweepInterval = TimeAmount.milliseconds(100)

    package init(
        eventLoop: any EventLoop, encoder: any ReversibleEncoder, policy: RelayPolicy = RelayPolicy(), turns: (any TurnTaking)? = nil,
        sendsPerTurn: Int = RelayLoop.usualSendsPerTurn,
        clock: @escaping @Sendable () -> Int64 = { Int64(NIODeadline.now().uptimeNanoseconds / 1_000_000) }
    ) {
        self.eventLoop = eventLoop
        self.rtmp = encoder
        self.encoders = Packaging.allCases.map { packaging in
            switch packaging {
            case .rtmp: encoder
            case .flvOverHTTP: BodyEncoder(.flvTag, .httpChunk)
            case .flvOverWebSocket: BodyEncoder(.flvTag, .webSocket)
            case .payloadOverHTTP: BodyEncoder(.payload, .httpChunk)
            case .payloadOverWebSocket: BodyEncoder(.payload, .webSocket)
            }
        }
        self.policy = policy
        self.turns = turns
        self.sendsPerTurn = sendsPerTurn
        self.clock = clock
    }

    package var nowMs: Int64 { self.clock() }

    func encoder(_ packaging: Packaging) -> any FrameEncoder { self.encoders[packaging.rawValue] }

    /// Runs on the loop: at once when called there, otherwise as its next task.
    package func run(_ body: @escaping @Sendable (RelayLoop) -> Void) {
        if self.eventLoop.inEventLoop { body(self) } else { self.eventLoop.execute { body(self) } }
    }

    /// Starts the sweep: one timer for all streams and viewers of the loop.
    package func start() {
        self.run { loop in
            loop.sweepTask = loop.eventLoop.scheduleRepeatedTask(initialDelay: Self.sweepInterval, delay: Self.sweepInterval) { _ in
                loop.sweep()
            }
        }
    }

    package func stop() {
        self.run { loop in
            loop.sweepTask?.cancel()
            loop.sweepTask = nil
        }
    }

    // MARK: Home streams

    func adopt(_ stream: Stream, registry: StreamRegistry) {
        let fanout = self.makeFanout(stream, .rtmp, ring: FanoutRing(bounds: self.policy.ring), isSeeded: true)
        self.homes[stream.id] = HomeStream(stream, registry, grace: self.policy.grace, rtmp: PackagedStream(fanout))
    }

    /// Nobody uses the stream any more.
    func abandon(_ stream: Stream) {
        self.homes[stream.id] = nil
        for packaging in Packaging.allCases { self.fanouts[FanoutKey(stream, packaging)] = nil }
    }

    private func makeFanout(_ stream: Stream, _ packaging: Packaging, ring: FanoutRing, isSeeded: Bool) -> LoopFanout {
        let fanout = LoopFanout(
            stream, packaging, ring: ring, isSeeded: isSeeded, encoder: self.encoder(packaging), policy: self.policy, nowMs: self.nowMs)
        self.fanouts[FanoutKey(stream, packaging)] = fanout
        return fanout
    }

    /// The home stream in this packaging, made of what RTMP's ring holds when somebody asks for it first.
    private func packaged(_ home: HomeStream, _ packaging: Packaging) -> PackagedStream {
        if let there = home.packaged(packaging) { return there }
        var allocator = SlabAllocator()
        let ring = home.ring.repackaged { message in
            message.frame(self.rtmp).map {
                EncodedMessage($0, encoder: self.encoder(packaging), allocator: &allocator, arrivalMs: message.arrivalMs)
            }
        }
        let made = PackagedStream(self.makeFanout(home.stream, packaging, ring: ring, isSeeded: true))
        made.allocator = allocator
        home.packagings.append(made)
        return made
    }

    // MARK: Viewers

    func apply(_ updates: [RingUpdate], to stream: Stream, _ packaging: Packaging) {
        guard let fanout = self.fanouts[FanoutKey(stream, packaging)], fanout.isSeeded else { return }
        fanout.apply(updates)
        self.markDirty(fanout)
    }

    /// Adds a viewer that is connected on this loop; it is sent what is due at once.
    package func attach(_ viewer: Viewer) {
        self.eventLoop.preconditionInEventLoop()
        let stream = viewer.stream
        let packaging = viewer.packaging
        if let home = self.homes[stream.id] { _ = self.packaged(home, packaging) }
        if let fanout = self.fanouts[FanoutKey(stream, packaging)] {
            fanout.add(viewer, nowMs: self.nowMs)
            self.pump(viewer)
            return
        }
        // First viewer of a stream that lives on another loop: subscribe, and take its ring over as it is.
        self.makeFanout(stream, packaging, ring: FanoutRing(bounds: self.policy.ring), isSeeded: false).add(viewer, nowMs: self.nowMs)
        stream.home.eventLoop.execute {
            let packaged = stream.home.homes[stream.id].map { stream.home.packaged($0, packaging) }
            packaged?.subscribers.append(self)
            // An empty ring when the stream is gone: this loop drops the fanout at its next sweep.
            let ring = packaged?.fanout.ring.copy() ?? FanoutRing(bounds: FanoutRing.Bounds())
            self.eventLoop.execute {
                guard let fanout = self.fanouts[FanoutKey(stream, packaging)], !fanout.isSeeded else { return }
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

    /// The viewer's connection has room again, or what it wants has changed.
    package func pump(_ viewer: Viewer) {
        guard let fanout = self.fanouts[FanoutKey(viewer)], fanout.isSeeded else { return }
        // A write may complete at once and come back here for another viewer of the same connection.
        guard !self.isPumping else { return self.markDirty(fanout) }
        self.isPumping = true
        fanout.pump(viewer, scratch: self.scratch, policy: self.policy, nowMs: self.nowMs)
        self.isPumping = false
    }

    package func setPaused(_ viewer: Viewer, _ paused: Bool) {
        guard viewer.isPaused != paused else { return }
        viewer.isPaused = paused
        viewer.isSteady = false
        guard !paused, let fanout = self.fanouts[FanoutKey(viewer)], fanout.isSeeded else { return }
        // On at the live position: the newest keyframe, or the next one when that was seen already.
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

    /// Nobody waits for what is here already.
    var hasPumped: Bool { self.dirty.isEmpty }

    func fanout(of stream: Stream) -> LoopFanout? { self.fanouts[FanoutKey(stream, .rtmp)] }

    /// Viewers of it may have something to be sent.
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

    /// Not now but as the loop's next task: what the loop reads meanwhile goes out in the same writes (natural batching).
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
        let nowMs = self.nowMs
        var sends = self.sendsPerTurn
        // Still scheduled: what is marked meanwhile is pumped here, or in the next turn.
        self.isPumping = true
        while sends > 0, let fanout = self.dirty.popFirst() {
            let isWholeTurn = sends == self.sendsPerTurn
            fanout.pumpOn(sends: &sends, scratch: self.scratch, policy: self.policy, nowMs: nowMs)
            if !fanout.isDue {
                fanout.isQueued = false
            } else if isWholeTurn {
                self.dirty.append(fanout)
            } else {
                // It had what another left.
                self.dirty.prepend(fanout)
            }
        }
        self.isPumping = false
        self.isPumpScheduled = !self.dirty.isEmpty
        guard self.isPumpScheduled else { return }
        if let turns = self.turns { return turns.next(self.pumpTask) }
        self.eventLoop.assumeIsolated().scheduleTask(in: Self.turnPause, self.pumpTask)
    }

    // MARK: Sweep

    /// Deadlines, slow viewers and memory; every ``sweepInterval``.
    package func sweep() {
        let nowMs = self.nowMs
        self.sweeps &+= 1
        for home in Array(self.homes.values) {
            var items: [StreamState.Item] = []
            let result = home.state.tick(nowMs: nowMs, items: &items)
            self.perform(items, for: home)
            switch result {
            case .nothing: break
            case .publisherIdle(let token):
                home.delegate?.publishEnded(token, reason: .mediaIdle)
                home.delegate = nil
            case .ended: home.registry.release(home.stream)
            }
            for tap in home.taps { tap.sweep() }
            home.meter.tick(nowMs: nowMs)
            home.history.tick(home.meter, viewers: home.stream.viewerCount, isLive: home.state.publisherToken != nil, nowMs: nowMs)
        }
        let samplesKernel = self.sweeps % 10 == 0
        for fanout in Array(self.fanouts.values) {
            fanout.sweepDetached()
            if self.dropIfUnused(fanout) { continue }
            // Where all stand near the live edge, only a look into the kernel can tell of a slow one.
            if samplesKernel || fanout.slowestWaitMs(nowMs: nowMs) > self.policy.maxBehindMs {
                self.closeSlow(fanout, samplesKernel: samplesKernel, nowMs: nowMs)
            }
            fanout.trim(nowMs: nowMs)
        }
    }

    private func closeSlow(_ fanout: LoopFanout, samplesKernel: Bool, nowMs: Int64) {
        // What was in the kernel at the last look may have left since: only a fresh look counts.
        let rate = samplesKernel ? fanout.rate.peak : 0
        // A quarter of a second of the stream may wait in the kernel unsent.
        let lowWater = fanout.lowWater
        for index in 0..<fanout.viewers.count {
            let viewer = fanout.viewers[index]
            guard !viewer.isDetached else { continue }
            if samplesKernel {
                viewer.unsentBytes = viewer.sink.unsentBytes()
                // Only for a marked change: it is a system call.
                if lowWater > 0, viewer.lowWater == 0 || lowWater > viewer.lowWater * 3 / 2 || lowWater < viewer.lowWater / 2 {
                    viewer.lowWater = lowWater
                    viewer.sink.setLowWater(lowWater)
                }
                viewer.judgeBurst(in: fanout, limitMs: self.policy.ring.gopMs, nowMs: nowMs)
            }
            guard !viewer.isPaused else { continue }
            let behindMs = viewer.behindMs(in: fanout.ring, bytesPerSecond: rate, nowMs: nowMs)
            if behindMs - viewer.headStart.ms > self.policy.maxBehindMs {
                self.viewersTooSlow += 1
                viewer.sink.fellTooFarBehind(viewer, ms: behindMs)
            }
        }
    }

    /// A loop without viewers of a stream costs that stream nothing, nor does a packaging that nobody is sent. Returns whether the fanout
    /// is gone.
    private func dropIfUnused(_ fanout: LoopFanout) -> Bool {
        let stream = fanout.stream
        let packaging = fanout.packaging
        guard fanout.isSeeded, fanout.viewers.isEmpty else { return false }
        if stream.home === self {
            guard packaging != .rtmp, let home = self.homes[stream.id], home.packaged(packaging)?.subscribers.isEmpty == true else {
                return false
            }
            home.packagings.removeAll { $0.fanout === fanout }
            self.fanouts[FanoutKey(stream, packaging)] = nil
            return true
        }
        self.fanouts[FanoutKey(stream, packaging)] = nil
        stream.home.run { home in
            guard let packaged = home.homes[stream.id]?.packaged(packaging),
                let index = packaged.subscribers.firstIndex(where: { $0 === self })
            else { return }
            packaged.subscribers.remove(at: index)
        }
        return true
    }

    // MARK: What the API shows

    /// Streams whose home is this loop.
    package func streamSnapshots() -> [StreamSnapshot] {
        let nowMs = self.nowMs
        return self.homes.values.filter(\.registry.isListed).map { self.snapshot(of: $0, nowMs: nowMs) }
    }

    private func snapshot(of home: HomeStream, nowMs: Int64) -> StreamSnapshot {
        StreamSnapshot(
            path: home.stream.path, phase: home.state.phase, liveForMs: home.state.liveSinceMs.map { nowMs - $0 }, meter: home.meter,
            viewers: home.stream.viewerCount, ringBytes: home.packagings.reduce(0) { $0 + $1.fanout.ring.bytes })
    }

    /// One stream whose home is this loop, and the loops that have viewers of it; nil when it has gone.
    package func snapshot(of stream: Stream) -> (stream: StreamSnapshot, loops: [RelayLoop])? {
        self.homes[stream.id].map { (self.snapshot(of: $0, nowMs: self.nowMs), [self] + $0.subscribers) }
    }

    /// To the stream's present viewers on this loop.
    package func bytesSent(of stream: Stream) -> UInt64 {
        Packaging.allCases.reduce(0) { sum, packaging in
            self.fanouts[FanoutKey(stream, packaging)]?.viewers.reduce(sum) { $1.isDetached ? $0 : $0 + $1.bytesSent } ?? sum
        }
    }

    /// The last minutes of a stream whose home is this loop, oldest first.
    package func history(of stream: Stream) -> [StreamHistory.Second] { self.homes[stream.id]?.history.seconds ?? [] }

    package func snapshot(of viewer: Viewer) -> ViewerSnapshot {
        let fanout = self.fanouts[FanoutKey(viewer)]
        let behindMs = fanout.map { viewer.behindMs(in: $0.ring, bytesPerSecond: $0.rate.peak, nowMs: self.nowMs) } ?? 0
        return ViewerSnapshot(
            path: viewer.stream.path, streamID: viewer.streamID, behindMs: behindMs, skippedFrames: viewer.gate.skippedFrames,
            bytesSent: viewer.bytesSent, messagesSent: viewer.messagesSent, isPaused: viewer.isPaused, joinedMs: viewer.joinedMs)
    }
}

/// Where a loop keeps a stream's fanout.
private struct FanoutKey: Hashable {
    private let stream: ObjectIdentifier
    private let packaging: Packaging

    init(_ stream: Stream, _ packaging: Packaging) {
        self.stream = stream.id
        self.packaging = packaging
    }

    init(_ viewer: Viewer) { self.init(viewer.stream, viewer.packaging) }
}
