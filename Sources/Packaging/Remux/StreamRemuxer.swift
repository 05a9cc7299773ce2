import Dispatch
import FFmpeg
package import HLS
import Logging
import Media
import NIOCore
import Relay
import Rooms
import ServerConfiguration
import Streaming
import Support
import Synchronization

/// Remuxes one stream for playback over HTTP, into one form of segments: into HLS's window and for viewers of fragmented MP4.
///
/// An actor with its own thread, running only while it is in use. Counts as a user of the stream, but not as a viewer.
package actor StreamRemuxer {
    package nonisolated let path: String
    nonisolated let container: ServerConfig.HLS.Container
    private nonisolated let executor: QueueExecutor
    package nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    /// The settings at the time when the stream's segments began.
    private let settings: ServerConfig.HLS
    private let table: RemuxTable
    private let stream: Relay.Stream
    private let maker: FragmentPackager
    private let taker: WindowTaker
    nonisolated let shared: SharedWindow
    /// The memory charged for the window's segments.
    private let charge: MemoryCharge
    private let windowCharge: MemoryCharge
    private let makeWindow: @Sendable () throws(HLSError) -> MediaWindow
    private var mailbox: FrameMailbox?
    private var timer: (any DispatchSourceTimer)?
    private var waiters: [Waiter] = []
    /// The last request for pieces, in milliseconds of the steady clock.
    private var piecesAskedMs: Int64 = 0
    /// Opens the stream of pieces.
    private var opening: Task<Void, Never>?
    /// Requests that wait for the first playlist.
    private var playlistWaiters = 0
    /// Enough to make a playlist of media that is there.
    private static let earlyStartMs: Int64 = 1_000
    private var reportedProblems = 0
    private var reportedRefusal: String?
    private var hasReportedDrops = false
    private var seenVersion = -1
    private var phase = Phase.running
    /// The last use, in milliseconds of the steady clock.
    private let lastUse: Atomic<Int64>
    private let hasEnded = Atomic<Bool>(false)
    private let hasStopped = Atomic<Bool>(false)

    private enum Phase: Equatable {
        case running
        /// The stream is over; its playlist lingers for a moment.
        case ended(untilMs: Int64)
        case stopped
    }

    /// A request that waits until the window meets a condition.
    private struct Waiter {
        let isDone: (borrowing MediaWindow) -> Bool
        /// The request may wait for a part or less, rather than for a whole segment.
        let isUrgent: Bool
        let untilMs: Int64
        let answer: CheckedContinuation<Bool, Never>
    }

    private struct Weak: Sendable {
        weak let remuxer: StreamRemuxer?
    }

    /// Longest time that frames wait for a request. Milliseconds.
    private static let lazyMs: Int64 = 2_000
    /// Interval of non-urgent work: stopping when idle, and timing out waits. Milliseconds.
    private static let tickMs = 1_000
    /// The remuxer stops after this long without request or viewer. Milliseconds.
    static let idleMs: Int64 = 30_000
    /// The idle time while memory is short and no HLS viewer is known.
    private static let unwatchedMs: Int64 = 2_000
    private static let lingerMs: Int64 = 30_000

    /// The first Media Sequence Number: three per second since 2020. Numbers at one URL must never go back, whatever an earlier window reached (RFC
    /// 8216bis §6.2.2); this start grows by three a second, segments by two at most. It fits 31 bits until 2042; some players read no more bits.
    private static func firstSequence() -> Int { max(0, Int(WallClock.seconds) - 1_577_836_800) * 3 }

    /// `stream` is already acquired for this remuxer. `keyframeIntervalMs`: the measured interval of its publisher, if known.
    init(
        _ table: RemuxTable, _ stream: Relay.Stream, as container: ServerConfig.HLS.Container, keyframeIntervalMs: Int64?
    ) throws(HLSError) {
        self.table = table
        self.stream = stream
        self.path = stream.path
        self.container = container
        self.executor = QueueExecutor(label: "remux \(stream.path)")
        var settings = table.config.hls
        // The other form is made on demand all the same.
        settings.always = settings.always && settings.container == container
        settings.container = container
        self.settings = settings
        let window = settings.window
        let makeWindow = { @Sendable () throws(HLSError) -> MediaWindow in
            try MediaWindow(
                epoch: SecretText.hex((0..<4).map { _ in UInt8.random(in: 0...255) }), firstSequence: Self.firstSequence(),
                configuration: window)
        }
        self.makeWindow = makeWindow
        self.charge = MemoryCharge(table.ledger)
        self.windowCharge = MemoryCharge(table.windows)
        let cache = table.config.relay.gopCache
        let taker = WindowTaker(try makeWindow(), cacheLimit: (cache.maxBytes, cache.maxDurationMs))
        taker.keyframeIntervalMs = keyframeIntervalMs
        self.taker = taker
        self.shared = taker.shared
        self.maker = FragmentPackager(container == .ts ? .mpegTS : .fmp4, for: taker)
        self.lastUse = Atomic(LoopSweeper.nowMs)
    }

    /// Starts receiving frames. Call once.
    package func start() {
        let me = Weak(remuxer: self)
        let mailbox = FrameMailbox(
            on: self.stream.home.eventLoop, limitBytes: self.table.config.limits.frameQueueBytes, ledger: self.table.ledger
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

    /// Postpones the stop for idleness. Call before any other use.
    package nonisolated func touch() { self.lastUse.store(LoopSweeper.nowMs, ordering: .relaxed) }

    nonisolated func isIdle(nowMs: Int64, idleMs: Int64 = StreamRemuxer.idleMs) -> Bool {
        nowMs - self.lastUse.load(ordering: .relaxed) >= idleMs
    }

    /// Whether its stream is over.
    package nonisolated var isOver: Bool { self.hasEnded.load(ordering: .relaxed) }

    /// Whether its window is no longer filled nor served.
    nonisolated var isStopped: Bool { self.hasStopped.load(ordering: .relaxed) }

    // MARK: Frames

    /// Processes frames until none is worth staying awake for.
    private func drain() {
        while let mailbox = self.mailbox, self.phase == .running {
            let batch = mailbox.drain()
            let nowMs = LoopSweeper.nowMs
            self.maker.receive(batch.items, nowMs: nowMs, wallMs: self.table.rooms.now - batch.idleMs)
            if batch.items.contains(where: { if case .ended = $0 { true } else { false } }) {
                self.taker.end(nowMs: nowMs)
                self.streamEnded()
            } else if batch.isStalled {
                self.maker.closeStalled(nowMs: nowMs)
                self.taker.stalled()
            }
            if self.playlistWaiters > 0 { self.taker.startEarly(nowMs: nowMs) }
            self.reportProblems()
            self.changed()
            self.chargeWindow()
            if mailbox.rest(self.patience) { break }
        }
        // If it ended without a linger, stop now and answer the waiting requests.
        if case .ended(let untilMs) = self.phase, LoopSweeper.nowMs >= untilMs { self.tick() }
    }

    /// Lets frames wait while no request needs the next part; a request first has the waiting frames made into parts. So a stream that only plain
    /// players watch, or nobody, wakes this thread twice a segment: at its end, and with the first part of the next.
    private var patience: FrameMailbox.Patience? {
        let (isReady, needsNextPart) = self.shared.read { ($0.isReady, $0.needsNextPart) }
        guard var patience = self.maker.patience, isReady else { return nil }
        let isUrgent = self.shared.waiting > 0 || self.waiters.contains { $0.isUrgent }
        guard !isUrgent, !self.sendsPieces, !needsNextPart else { return patience }
        patience.dueMs = .max / 2
        patience.holdMs = Self.lazyMs
        return patience
    }

    /// Whether there are viewers of pieces, or one is expected.
    private var sendsPieces: Bool {
        guard let pieces = self.taker.pieces else { return false }
        return pieces.viewers > 0 || LoopSweeper.nowMs - self.piecesAskedMs < Self.idleMs
    }

    private func reportProblems() {
        self.maker.leftOut.report(to: self.stream)
        for problem in self.maker.problems[self.reportedProblems...] {
            self.table.log.warning("Not remuxed", metadata: ["stream": "\(self.path)", "problem": "\(problem)"])
        }
        self.reportedProblems = self.maker.problems.count
        if let dropped = self.mailbox?.dropped, dropped > 0, !self.hasReportedDrops {
            self.hasReportedDrops = true
            self.table.limits.hit(.frameQueue)
            self.table.log.warning(
                "Remuxing does not keep up: frames are dropped up to the next keyframe",
                metadata: ["stream": "\(self.path)", "limit": "\(FrameMailbox.words(self.table.config.limits.frameQueueBytes))"])
        }
        guard let problem = self.taker.problem, problem != self.reportedRefusal else { return }
        self.reportedRefusal = problem
        self.table.log.warning("Not in the playlist", metadata: ["stream": "\(self.path)", "problem": "\(problem)"])
    }

    private func streamEnded() {
        self.hasEnded.store(true, ordering: .relaxed)
        // Viewers who are refused from now on must not get the old segments either.
        if self.table.rooms.playRefusal(self.path) != nil {
            do { self.taker.purge(try self.makeWindow()) } catch { self.table.log.error("Remuxing", metadata: ["error": "\(error)"]) }
            self.phase = .ended(untilMs: LoopSweeper.nowMs)
        } else {
            self.phase = .ended(untilMs: LoopSweeper.nowMs + Self.lingerMs)
        }
        self.letGo()
    }

    /// Stops receiving frames and releases the stream.
    private func letGo() {
        guard let mailbox = self.mailbox else { return }
        self.mailbox = nil
        RelayLoop.remove(mailbox, from: self.stream)
        self.table.streams.registry.release(self.stream)
        self.taker.pieces?.end()
        self.taker.pieces = nil
    }

    private func tick() {
        let nowMs = LoopSweeper.nowMs
        if self.phase == .running { self.taker.expire(nowMs: nowMs) }
        self.chargeWindow()
        if (self.taker.pieces?.viewers ?? 0) > 0 { self.touch() }
        self.changed()
        self.shared.expire(nowMs: nowMs)
        for index in self.waiters.indices.reversed() where nowMs >= self.waiters[index].untilMs {
            self.waiters.remove(at: index).answer.resume(returning: false)
        }
        switch self.phase {
        case .running:
            if self.isIdle(nowMs: nowMs), !self.settings.always, self.table.remove(self, ifIdleAt: nowMs) { self.stop() }
        case .ended(let untilMs):
            if nowMs >= untilMs {
                self.table.remove(self)
                self.stop()
            }
        case .stopped: break
        }
    }

    /// Stops if memory is short and nobody watches. A later request starts a new remuxer.
    func dropIfUnwatched() {
        guard self.phase != .stopped, self.waiters.isEmpty, !self.sendsPieces, !self.table.isPlayed(self.path, self.container) else {
            return
        }
        if self.table.remove(self, ifIdleAt: LoopSweeper.nowMs, idleMs: Self.unwatchedMs) { self.stop() }
    }

    /// Stops because it is idle or the server shuts down.
    package func stop() {
        self.phase = .stopped
        self.hasStopped.store(true, ordering: .relaxed)
        self.shared.stop()
        self.letGo()
        self.timer?.cancel()
        self.timer = nil
        for waiter in self.waiters { waiter.answer.resume(returning: false) }
        self.waiters = []
    }

    // MARK: Pieces

    /// Opens the stream of pieces, if needed. Returns its type for MediaSource and the Content-Type; nil if no pieces can be made.
    package func openPieces(waitMs: Int) async -> String? {
        self.touch()
        guard self.maker.format == .fmp4 else { return nil }
        _ = await self.wait(ms: waitMs) { _ in self.taker.beginning != nil }
        guard self.taker.beginning != nil, self.phase == .running else { return nil }
        self.piecesAskedMs = LoopSweeper.nowMs
        if self.taker.pieces == nil {
            // Concurrent callers wait for the same opening.
            let opening = self.opening ?? Task { await self.makePieces() }
            self.opening = opening
            await opening.value
        }
        self.drain()
        // The newest type, in case it changed meanwhile.
        return self.taker.pieces == nil ? nil : self.taker.beginning?.mimeType
    }

    private func makePieces() async {
        let opened = await DerivedStream.open(self.path, by: "remuxer", in: self.table.pieces, on: self.stream.home)
        self.opening = nil
        // The stream may have ended meanwhile.
        guard self.taker.pieces == nil, self.phase == .running, let beginning = self.taker.beginning, let opened else {
            opened?.end()
            return
        }
        let pieces = FragmentStream(opened)
        pieces.begin(beginning.initialization, mimeType: beginning.mimeType)
        for fragment in self.taker.sinceKeyframe { pieces.publish(fragment) }
        self.taker.pieces = pieces
    }

    // MARK: HLS

    private func chargeWindow() {
        let bytes = self.shared.read { $0.heldBytes }
        self.charge.set(bytes)
        self.windowCharge.set(bytes)
    }

    /// Bytes that the window holds, and bytes charged to the memory ledger.
    package var memory: (held: Int, charged: Int) { (self.shared.read { $0.heldBytes }, self.charge.bytes) }

    /// Whether it receives frames that are published from now on.
    var isFollowing: Bool {
        get async {
            guard self.mailbox != nil else { return false }
            // The stream's loop adds the mailbox behind what it was given before.
            await withCheckedContinuation { done in self.stream.home.run { _ in done.resume() } }
            return self.mailbox != nil
        }
    }

    /// Number of playlists generated so far.
    var playlistsWritten: Int { self.shared.read { $0.playlistsWritten } }

    /// Number of waiting requests.
    package var waiting: Int { self.waiters.count + self.shared.waiting }

    private func changed() {
        let version = self.shared.read { $0.version }
        guard version != self.seenVersion else { return }
        self.seenVersion = version
        self.shared.wake()
        var left: [Waiter] = []
        for waiter in self.waiters {
            if self.shared.read(waiter.isDone) { waiter.answer.resume(returning: true) } else { left.append(waiter) }
        }
        self.waiters = left
    }

    /// A player waits on its loop for what the window lacks.
    nonisolated func playerWaits() {
        let me = Weak(remuxer: self)
        self.executor.queue.async { me.remuxer?.assumeIsolated { $0.drain() } }
    }

    private func wait(ms: Int, isUrgent: Bool = true, until isDone: @escaping (borrowing MediaWindow) -> Bool) async -> Bool {
        if self.shared.read(isDone) { return true }
        self.drain()
        if self.shared.read(isDone) { return true }
        guard self.phase != .stopped, self.waiters.count < SharedWindow.waiterLimit else { return false }
        let untilMs = LoopSweeper.nowMs + Int64(ms)
        return await withCheckedContinuation {
            let isFirst = isUrgent && self.waiters.allSatisfy { !$0.isUrgent }
            self.waiters.append(Waiter(isDone: isDone, isUrgent: isUrgent, untilMs: untilMs, answer: $0))
            // Frames that were not worth a wake-up may be now.
            if isFirst, let mailbox = self.mailbox, !mailbox.rest(self.patience) { self.drain() }
        }
    }

    package enum PlaylistReply: Sendable {
        /// `last`: the Media Sequence Number of the last whole segment in it. `isFinal`: it has EXT-X-ENDLIST. `hasStart`: it has EXT-X-START.
        case playlist(PlaylistText, CacheAdvice, last: Int, isFinal: Bool, hasStart: Bool)
        case badRequest(String)
        case notYet
    }

    /// - Parameter after: the last segment that the session knows, for a request without directives. A playlist with no newer one is held until there
    ///   is one, for a target duration at most. Chromium's native player reads ten seconds ahead, repeats the request at once while it has less, and
    ///   gives up when it gets the same list again.
    /// - Parameter hasStart: as in the session's first playlist; nil: this is the first.
    package func mediaPlaylist(_ request: PlaylistRequest, after: Int? = nil, hasStart: Bool?) async -> PlaylistReply {
        self.touch()
        if self.shared.read({ $0.isReady }) { self.drain() } else { await self.waitUntilReady(ms: self.table.config.http.firstWaitMs) }
        let (answer, lastEnded, targetMs, longestMs) = self.shared.read {
            ($0.answer(request), $0.lastEnded, $0.targetDuration * 1_000, $0.longestWaitMs)
        }
        switch answer {
        case .now:
            if let after, !request.isBlocking, after == lastEnded {
                _ = await self.wait(ms: targetMs, isUrgent: false) { $0.lastEnded != after || $0.hasEnded }
            }
        case .badRequest(let why): return .badRequest(why)
        case .unavailable: return .notYet
        case .wait(let point):
            guard await self.wait(ms: longestMs, until: { $0.isSatisfied(point) }) else { return .notYet }
        }
        return self.shared.change { self.reply(to: request, hasStart: hasStart, &$0) } ?? .notYet
    }

    /// Nil: there is no playlist yet.
    nonisolated func reply(to request: PlaylistRequest, hasStart: Bool?, _ window: inout MediaWindow) -> PlaylistReply? {
        let hasStart = hasStart ?? window.needsStart
        let kind = PlaylistKind(isLowLatency: self.settings.lowLatency, skips: request.skips, hasStart: hasStart)
        guard let text = window.mediaPlaylist(kind) else { return nil }
        return .playlist(text, window.cacheAdvice(for: request), last: window.lastEnded, isFinal: window.hasEnded, hasStart: hasStart)
    }

    /// - Parameter isVLC: a player that stutters if it starts too soon; see ``MediaWindow/suitsVLC``.
    ///
    /// Nil: there is nothing to play yet.
    package func multivariantPlaylist(mediaURI: String, waitMs: Int, isVLC: Bool = false) async -> String? {
        self.touch()
        let untilMs = LoopSweeper.nowMs + Int64(waitMs)
        // With keyframes so rare that it would take longer, stuttering pictures are better than none.
        if isVLC { _ = await self.wait(ms: waitMs) { $0.suitsVLC || $0.hasEnded } }
        await self.waitUntilReady(ms: max(Self.earlyStartMs, untilMs - LoopSweeper.nowMs))
        return self.shared.read { $0.multivariantPlaylist(mediaURI: mediaURI) }
    }

    /// Waits for the first playlist. Meanwhile segments are listed as soon as a player can start with them.
    private func waitUntilReady(ms: Int64) async {
        self.playlistWaiters += 1
        _ = await self.wait(ms: Int(ms)) { $0.isReady }
        self.playlistWaiters -= 1
    }

    package func resource(_ name: String) async -> ResourceLookup {
        self.touch()
        let (found, longestMs) = self.shared.read { ($0.resource(named: name), $0.longestWaitMs) }
        guard case .pending = found else { return found }
        _ = await self.wait(ms: longestMs) {
            if case .pending = $0.resource(named: name) { false } else { true }
        }
        return self.shared.read { $0.resource(named: name) }
    }
}
