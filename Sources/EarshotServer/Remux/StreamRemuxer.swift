import Dispatch
import FFmpeg
import HLS
import Logging
import Media
import NIOCore
import Relay
import Rooms
import Synchronization

/// Remuxes one stream for those who play it over HTTP: its pieces go to HLS's window and to the viewers of fragmented MP4.
///
/// An actor on a thread of its own, for as long as somebody wants it: nobody watching means no work. It is one of the stream's users, but none
/// of its viewers.
actor StreamRemuxer {
    nonisolated let path: String
    private nonisolated let executor: QueueExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    private let core: ServerCore
    private let stream: Relay.Stream
    private let maker: PieceMaker
    private let taker: WindowTaker
    /// The window's segments.
    private let charge: MemoryCharge
    private let makeWindow: @Sendable () throws(HLSError) -> MediaWindow
    private var mailbox: FrameMailbox?
    private var timer: (any DispatchSourceTimer)?
    private var waiters: [Waiter] = []
    /// Milliseconds of the steady clock.
    private var piecesAskedMs: Int64 = 0
    /// The stream of pieces is being made.
    private var opening: Task<Void, Never>?
    /// Requests that wait for the first playlist.
    private var playlistWaiters = 0
    private var toldProblems = 0
    private var toldRefusal: String?
    private var hasToldDropped = false
    private var seenVersion = -1
    private var phase = Phase.running
    /// Milliseconds of the steady clock.
    private let lastUse: Atomic<Int64>
    private let hasEnded = Atomic<Bool>(false)

    private enum Phase: Equatable {
        case running
        /// The stream is over; what is listed stays for a moment.
        case ended(untilMs: Int64)
        case stopped
    }

    /// Somebody who waits until the window has changed so far.
    private struct Waiter {
        let isDone: (MediaWindow) -> Bool
        /// Whether a part, or less, may be what it waits for; otherwise it is a whole segment.
        let isUrgent: Bool
        let untilMs: Int64
        let answer: CheckedContinuation<Bool, Never>
    }

    private struct Weak: Sendable {
        weak let remuxer: StreamRemuxer?
    }

    /// How long frames wait for being asked for.
    private static let lazyMs: Int64 = 2_000
    /// For what is not urgent: an end that nobody waits for, and waits that were in vain.
    private static let tickMs = 1_000
    /// Without a request and without a viewer.
    static let idleMs: Int64 = 30_000
    /// The same while memory is short, and no viewer by HLS is known.
    private static let unwatchedMs: Int64 = 2_000
    private static let lingerMs: Int64 = 30_000
    private static let waiterLimit = 20_000

    /// Media Sequence Numbers at one URL must never go back, whatever a window before this one reached (RFC 8216bis §6.2.2): they grow
    /// by three a second, segments by two at most. Counted from 2020 they fit 31 bits until 2042, which is all that some players read.
    private static func firstSequence() -> Int { max(0, Int(WallClock.seconds) - 1_577_836_800) * 3 }

    /// `stream` was acquired for it. `keyframeIntervalMs`: as its publisher was seen to send keyframes, if known.
    init(core: ServerCore, stream: Relay.Stream, keyframeIntervalMs: Int64?) throws(HLSError) {
        self.core = core
        self.stream = stream
        self.path = stream.path
        self.executor = QueueExecutor(label: "remux \(stream.path)")
        let settings = core.config.hls
        let makeWindow = { @Sendable () throws(HLSError) -> MediaWindow in
            try MediaWindow(
                epoch: SecretText.hex((0..<4).map { _ in UInt8.random(in: 0...255) }), firstSequence: Self.firstSequence(),
                configuration: settings.window)
        }
        self.makeWindow = makeWindow
        self.charge = MemoryCharge(core.memory.ledger)
        let cache = core.config.relay.gopCache
        self.taker = WindowTaker(try makeWindow(), cacheLimit: (cache.maxBytes, cache.maxDurationMs))
        self.taker.keyframeIntervalMs = keyframeIntervalMs
        self.maker = PieceMaker(settings.container == .ts ? .mpegTS : .fmp4, for: self.taker)
        self.lastUse = Atomic(LoopSweeper.nowMs)
    }

    /// Begins to take frames. Once.
    func start() {
        let me = Weak(remuxer: self)
        let mailbox = FrameMailbox(
            on: self.stream.home.eventLoop, limitBytes: self.core.config.limits.frameQueueBytes, ledger: self.core.memory.ledger
        ) { [executor] in
            executor.queue.async { me.remuxer?.assumeIsolated { $0.drain() } }
        }
        self.mailbox = mailbox
        RelayLoop.add(mailbox, to: self.stream)
        let timer = DispatchSource.makeTimerSource(queue: self.executor.queue)
        timer.schedule(
            deadline: .now() + .milliseconds(Self.tickMs), repeating: .milliseconds(Self.tickMs), leeway: .milliseconds(Self.tickMs / 4))
        timer.setEventHandler { me.remuxer?.assumeIsolated { $0.tick() } }
        timer.resume()
        self.timer = timer
    }

    /// Whoever asks something of it says so first: it does not stop then.
    nonisolated func touch() { self.lastUse.store(LoopSweeper.nowMs, ordering: .relaxed) }

    nonisolated func isIdle(nowMs: Int64, idleMs: Int64 = StreamRemuxer.idleMs) -> Bool {
        nowMs - self.lastUse.load(ordering: .relaxed) >= idleMs
    }

    /// The stream that it was made for is over.
    nonisolated var isOver: Bool { self.hasEnded.load(ordering: .relaxed) }

    // MARK: Frames

    /// Takes what has come, until there is nothing worth staying awake for.
    private func drain() {
        while let mailbox = self.mailbox, self.phase == .running {
            let batch = mailbox.drain()
            let nowMs = LoopSweeper.nowMs
            self.maker.take(batch.items, nowMs: nowMs, wallMs: self.core.rooms.now - batch.idleMs)
            if batch.items.contains(where: { if case .ended = $0 { true } else { false } }) {
                self.taker.end(nowMs: nowMs)
                self.streamEnded()
            } else if batch.isStalled {
                self.maker.closeStalled(nowMs: nowMs)
            }
            if self.playlistWaiters > 0 { self.taker.startEarly(nowMs: nowMs) }
            self.tellProblems()
            self.changed()
            self.charge.set(self.taker.window.heldBytes)
            if mailbox.rest(self.patience) { break }
        }
        // Nothing of it may stay: whoever waits for more is told so now.
        if case .ended(let untilMs) = self.phase, LoopSweeper.nowMs >= untilMs { self.tick() }
    }

    /// While nobody waits for the next part it is enough to have the frames: who asks has them made into parts first. So a stream that is
    /// watched by plain players, or by nobody, wakes this thread once a segment.
    private var patience: FrameMailbox.Patience? {
        guard var patience = self.maker.patience, self.taker.window.isReady else { return nil }
        guard self.waiters.allSatisfy({ !$0.isUrgent }), !self.sendsPieces, !self.taker.window.isStartingEarly else { return patience }
        patience.dueMs = .max / 2
        patience.holdMs = Self.lazyMs
        return patience
    }

    /// There are viewers of pieces, or one is about to come.
    private var sendsPieces: Bool {
        guard let pieces = self.taker.pieces else { return false }
        return pieces.viewers > 0 || LoopSweeper.nowMs - self.piecesAskedMs < Self.idleMs
    }

    private func tellProblems() {
        for problem in self.maker.problems[self.toldProblems...] {
            self.core.log.warning("Not remuxed", metadata: ["stream": "\(self.path)", "problem": "\(problem)"])
        }
        self.toldProblems = self.maker.problems.count
        if let dropped = self.mailbox?.dropped, dropped > 0, !self.hasToldDropped {
            self.hasToldDropped = true
            self.core.log.warning(
                "Remuxing does not keep up: pictures are left out up to a keyframe",
                metadata: ["stream": "\(self.path)", "limit": "\(FrameMailbox.words(self.core.config.limits.frameQueueBytes))"])
        }
        guard let problem = self.taker.problem, problem != self.toldRefusal else { return }
        self.toldRefusal = problem
        self.core.log.warning("Not in the playlist", metadata: ["stream": "\(self.path)", "problem": "\(problem)"])
    }

    private func streamEnded() {
        self.hasEnded.store(true, ordering: .relaxed)
        // Who may not watch any more must not find what there was, either.
        if self.core.rooms.playRefusal(self.path) != nil {
            do { self.taker.purge(try self.makeWindow()) } catch { self.core.log.error("Remuxing", metadata: ["error": "\(error)"]) }
            self.phase = .ended(untilMs: LoopSweeper.nowMs)
        } else {
            self.phase = .ended(untilMs: LoopSweeper.nowMs + Self.lingerMs)
        }
        self.letGo()
    }

    /// Takes no more frames.
    private func letGo() {
        guard let mailbox = self.mailbox else { return }
        self.mailbox = nil
        RelayLoop.remove(mailbox, from: self.stream)
        self.core.registry.release(self.stream)
        self.taker.pieces?.end()
        self.taker.pieces = nil
    }

    private func tick() {
        let nowMs = LoopSweeper.nowMs
        if self.phase == .running { self.taker.expire(nowMs: nowMs) }
        self.charge.set(self.taker.window.heldBytes)
        if (self.taker.pieces?.viewers ?? 0) > 0 { self.touch() }
        self.changed()
        for index in self.waiters.indices.reversed() where nowMs >= self.waiters[index].untilMs {
            self.waiters.remove(at: index).answer.resume(returning: false)
        }
        switch self.phase {
        case .running:
            if self.isIdle(nowMs: nowMs), !self.core.config.hls.always, self.core.remuxers.remove(self, ifIdleAt: nowMs) { self.stop() }
        case .ended(let untilMs):
            if nowMs >= untilMs {
                self.core.remuxers.remove(self)
                self.stop()
            }
        case .stopped: break
        }
    }

    /// Memory is short: what nobody watches goes. Who asks for it later has it made anew.
    func dropIfUnwatched() {
        guard self.phase != .stopped, self.waiters.isEmpty, !self.sendsPieces, !self.core.hlsSessions.play(self.path) else { return }
        if self.core.remuxers.remove(self, ifIdleAt: LoopSweeper.nowMs, idleMs: Self.unwatchedMs) { self.stop() }
    }

    /// Nobody wants it any more, or the server goes.
    func stop() {
        self.phase = .stopped
        self.letGo()
        self.timer?.cancel()
        self.timer = nil
        for waiter in self.waiters { waiter.answer.resume(returning: false) }
        self.waiters = []
    }

    // MARK: Pieces

    /// Sees to it that there is a stream of pieces. Returns what they are, as MediaSource and the Content-Type name it; nil when nothing came
    /// that can be remuxed.
    func openPieces(waitMs: Int) async -> String? {
        self.touch()
        guard self.maker.format == .fmp4 else { return nil }
        _ = await self.wait(ms: waitMs) { _ in self.taker.beginning != nil }
        guard self.taker.beginning != nil, self.phase == .running else { return nil }
        self.piecesAskedMs = LoopSweeper.nowMs
        if self.taker.pieces == nil {
            // Of several who come at once each waits for the same.
            let opening = self.opening ?? Task { await self.makePieces() }
            self.opening = opening
            await opening.value
        }
        self.drain()
        // Of the newest, should that have changed meanwhile.
        return self.taker.pieces == nil ? nil : self.taker.beginning?.mimeType
    }

    private func makePieces() async {
        let opened = await DerivedStream.open(self.path, by: "remuxer", in: self.core.pieces, on: self.stream.home)
        self.opening = nil
        // The stream may have ended meanwhile.
        guard self.taker.pieces == nil, self.phase == .running, let beginning = self.taker.beginning, let opened else {
            opened?.end()
            return
        }
        let pieces = PieceStream(opened)
        pieces.begin(beginning.initialization, mimeType: beginning.mimeType)
        for fragment in self.taker.sinceKeyframe { pieces.publish(fragment) }
        self.taker.pieces = pieces
    }

    // MARK: HLS

    /// Bytes that the window holds, and those that the memory's ledger has of it.
    var memory: (held: Int, charged: Int) { (self.taker.window.heldBytes, self.charge.bytes) }

    /// Whatever is published from now on comes to it.
    var isFollowing: Bool { self.mailbox != nil }

    /// How many playlists were put together so far.
    var playlistsWritten: Int { self.taker.window.playlistsWritten }

    /// Requests that wait for what is not there yet.
    var waiting: Int { self.waiters.count }

    private func changed() {
        guard self.taker.window.version != self.seenVersion, !self.waiters.isEmpty else { return }
        self.seenVersion = self.taker.window.version
        let window = self.taker.window
        var left: [Waiter] = []
        for waiter in self.waiters {
            if waiter.isDone(window) { waiter.answer.resume(returning: true) } else { left.append(waiter) }
        }
        self.waiters = left
    }

    private func wait(ms: Int, isUrgent: Bool = true, until isDone: @escaping (MediaWindow) -> Bool) async -> Bool {
        if isDone(self.taker.window) { return true }
        self.drain()
        if isDone(self.taker.window) { return true }
        guard self.phase != .stopped, self.waiters.count < Self.waiterLimit else { return false }
        let untilMs = LoopSweeper.nowMs + Int64(ms)
        return await withCheckedContinuation {
            let isFirst = isUrgent && self.waiters.allSatisfy { !$0.isUrgent }
            self.waiters.append(Waiter(isDone: isDone, isUrgent: isUrgent, untilMs: untilMs, answer: $0))
            // What was not worth waking for may be now.
            if isFirst, let mailbox = self.mailbox, !mailbox.rest(self.patience) { self.drain() }
        }
    }

    enum PlaylistReply: Sendable {
        /// `last`: the Media Sequence Number of the last whole segment in it.
        case playlist(PlaylistText, CacheAdvice, last: Int)
        case badRequest(String)
        case notYet
    }

    /// - Parameter after: of a request without directives, the last segment that the session was told of before. A playlist that lists no
    ///   other is held until there is one, for a target duration at most: Chromium's native player reads ten seconds ahead, asks again
    ///   at once while it has less, and gives up when it gets the same list again.
    func mediaPlaylist(_ request: PlaylistRequest, after: Int? = nil) async -> PlaylistReply {
        self.touch()
        let isLowLatency = self.core.config.hls.lowLatency
        if self.taker.window.isReady { self.drain() } else { await self.waitUntilReady(ms: self.core.config.http.firstWaitMs) }
        switch self.taker.window.answer(request) {
        case .now:
            if let after, !request.isBlocking, after == self.taker.window.lastEnded {
                _ = await self.wait(ms: self.taker.window.targetDuration * 1_000, isUrgent: false) { $0.lastEnded != after || $0.hasEnded }
            }
        case .badRequest(let why): return .badRequest(why)
        case .unavailable: return .notYet
        case .wait(let point):
            guard await self.wait(ms: self.taker.window.longestWaitMs, until: { $0.isSatisfied(point) }) else { return .notYet }
        }
        guard let text = self.taker.mediaPlaylist(PlaylistKind(isLowLatency: isLowLatency, skips: request.skips)) else {
            return .notYet
        }
        return .playlist(text, self.taker.window.cacheAdvice(for: request), last: self.taker.window.lastEnded)
    }

    /// Nil: there is nothing to be played yet.
    func multivariantPlaylist(mediaURI: String, waitMs: Int) async -> String? {
        self.touch()
        await self.waitUntilReady(ms: Int64(waitMs))
        return self.taker.window.multivariantPlaylist(mediaURI: mediaURI)
    }

    /// Until there is a playlist. While somebody waits here, what there is is listed as soon as a player can start with it.
    private func waitUntilReady(ms: Int64) async {
        self.playlistWaiters += 1
        _ = await self.wait(ms: Int(ms)) { $0.isReady }
        self.playlistWaiters -= 1
    }

    func resource(_ name: String) async -> ResourceLookup {
        self.touch()
        let found = self.taker.window.resource(named: name)
        guard case .pending = found else { return found }
        _ = await self.wait(ms: self.taker.window.longestWaitMs) {
            if case .pending = $0.resource(named: name) { false } else { true }
        }
        return self.taker.window.resource(named: name)
    }
}
