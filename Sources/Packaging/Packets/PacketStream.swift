import Dispatch
import Logging
import Media
import NIOCore
import Relay
import Streaming
import Support
import Synchronization
package import WebRTC

/// One stream as RTP packets, for viewers by WebRTC: made once, whatever their number, while there are some. The packets are a stream of their own in
/// ``PacketTable/packets``.
///
/// An actor with its own thread, since it transcodes sound. Counts as a user of the stream, but not as a viewer.
package actor PacketStream {
    package nonisolated let path: String
    private nonisolated let executor: QueueExecutor
    package nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    private let table: PacketTable
    private let stream: Relay.Stream
    private let maker: PacketMaker
    private var mailbox: FrameMailbox?
    private var derived: DerivedStream?
    private var timer: (any DispatchSourceTimer)?
    private var reportedSound: String?
    private let lastUse: Atomic<Int64>
    private let shared = Mutex(Shared())

    private struct Shared {
        var problem: PacketMaker.Problem?
        var treatment = PictureTreatment.undecided
        var video: VideoProfile?
        var isOver = false
        var isReady = false
        var hasSound = false
        /// The newest picture's time, in 90,000ths of a second; and that of the oldest that a joiner gets.
        var newestTime: Int64?
        var keyframeTime: Int64?
    }

    private struct Weak: Sendable {
        weak let packets: PacketStream?
    }

    private static let tickMs = 1_000
    /// It stops after this long without viewers; longer than a viewer may take to connect.
    private static let idleMs: Int64 = 40_000
    /// Sound that is older than this when a viewer's coming starts it would be late.
    private static let oldSoundMs: Int64 = 300

    /// `stream` is already acquired for this.
    init(_ table: PacketTable, _ stream: Relay.Stream) {
        self.table = table
        self.stream = stream
        self.maker = PacketMaker(table.bFrames, table.encoders)
        self.path = stream.path
        self.executor = QueueExecutor(label: "packets \(stream.path)")
        self.lastUse = Atomic(LoopSweeper.nowMs)
    }

    /// Begins. Returns once the cached pictures are packets, or cannot be.
    func start() async {
        let derived = await DerivedStream.open(self.path, by: "packets", in: self.table.packets, on: self.stream.home)
        guard let derived else { return self.stop() }
        // It may have been stopped meanwhile.
        guard !self.isOver else { return derived.end() }
        self.derived = derived
        let me = Weak(packets: self)
        let mailbox = FrameMailbox(
            on: self.stream.home.eventLoop, limitBytes: self.table.frameQueueBytes, ledger: self.table.ledger
        ) { [executor] in
            executor.queue.async { me.packets?.assumeIsolated { $0.drain() } }
        }
        self.mailbox = mailbox
        RelayLoop.add(mailbox, to: self.stream)
        let timer = DispatchSource.makeTimerSource(queue: self.executor.queue)
        timer.schedule(deadline: .now() + .milliseconds(Self.tickMs), repeating: .milliseconds(Self.tickMs))
        timer.setEventHandler { me.packets?.assumeIsolated { $0.tick() } }
        timer.resume()
        self.timer = timer
        // Behind the cached frames, which the home loop hands over in order.
        await withCheckedContinuation { done in self.stream.home.run { _ in done.resume() } }
        self.drain()
        self.shared.withLock { $0.isReady = true }
    }

    package nonisolated func touch() { self.lastUse.store(LoopSweeper.nowMs, ordering: .relaxed) }

    package nonisolated var isOver: Bool { self.shared.withLock { $0.isOver } }

    /// Whether the cached pictures are packets. Any thread.
    package nonisolated var isReady: Bool { self.shared.withLock { $0.isReady } }

    /// Why it cannot be played; nil as long as nothing is known against it. Any thread.
    package nonisolated var problem: PacketMaker.Problem? { self.shared.withLock { $0.problem } }

    /// Whether there has been sound. Any thread.
    package nonisolated var hasSound: Bool { self.shared.withLock { $0.hasSound } }

    /// What the packets of pictures have in them; nil: there are no pictures. Any thread.
    package nonisolated var video: VideoProfile? { self.shared.withLock { $0.video } }

    /// What is done to the pictures. Any thread.
    package nonisolated var treatment: PictureTreatment { self.shared.withLock { $0.treatment } }

    /// The times of the cached pictures that a joiner gets first, and of the newest; nil: none. In 90,000ths of a second. Any thread.
    package nonisolated var cachedTimes: (first: Int64, newest: Int64)? {
        self.shared.withLock { shared in
            guard let first = shared.keyframeTime, let newest = shared.newestTime else { return nil }
            return (first, newest)
        }
    }

    private func drain() {
        while let mailbox = self.mailbox, let derived = self.derived {
            let batch = mailbox.drain()
            let items = Self.withoutOldSound(batch.items)
            if items.contains(where: { if case .restarted = $0 { true } else { false } }) { derived.dropGOP() }
            let frames = self.maker.receive(items)
            self.note(frames)
            if !frames.isEmpty { derived.publish(frames) }
            self.report()
            if self.maker.problem != nil || items.contains(where: { if case .ended = $0 { true } else { false } }) { return self.stop() }
            if mailbox.rest(nil) { return }
        }
    }

    /// A joiner's cached group comes at once; its old sound would only be decoded for nothing.
    private static func withoutOldSound(_ items: [TapItem]) -> [TapItem] {
        guard case .prelude? = items.first else { return items }
        let newest = items.lazy.compactMap { item -> Int64? in if case .frame(let frame) = item { frame.timestamp } else { nil } }.max()
        guard let newest else { return items }
        return items.filter { item in
            guard case .frame(let frame) = item, frame.kind == .audio, frame.tag.flags.contains(.coded) else { return true }
            return newest - frame.timestamp <= Self.oldSoundMs
        }
    }

    private func note(_ frames: [Frame]) {
        self.shared.withLock { shared in
            if !shared.hasSound { shared.hasSound = frames.contains { $0.kind == .audio } }
            for frame in frames where frame.kind == .video {
                let time = frame.payload.withUnsafeReadableBytes { PacketBundle($0)?.time }
                shared.newestTime = time
                if frame.isKeyframe { shared.keyframeTime = time }
            }
        }
    }

    private func report() {
        let treatment = self.maker.treatment
        let video = self.maker.video
        let before = self.shared.withLock { shared in
            defer { (shared.treatment, shared.video) = (treatment, video) }
            return shared.treatment
        }
        if treatment != before, treatment == .encoded || treatment == .dropped {
            self.table.log.notice(
                treatment == .encoded ? "Encoded anew for WebRTC" : "Without B-frames for WebRTC", metadata: ["stream": "\(self.path)"])
        }
        if let problem = self.maker.problem, self.problem == nil {
            self.shared.withLock { $0.problem = problem }
            self.table.note(problem, of: self.path)
            self.table.log.notice("Not for WebRTC", metadata: ["stream": "\(self.path)", "problem": "\(problem)"])
        }
        guard let problem = self.maker.soundProblem, problem != self.reportedSound else { return }
        self.reportedSound = problem
        self.table.log.warning("No sound over WebRTC", metadata: ["stream": "\(self.path)", "problem": "\(problem)"])
    }

    private func tick() {
        if (self.derived?.viewers ?? 0) > 0 { self.touch() }
        guard LoopSweeper.nowMs - self.lastUse.load(ordering: .relaxed) >= Self.idleMs else { return }
        self.stop()
    }

    /// Ends the stream of packets; its viewers are told.
    func stop() {
        let derived = self.derived
        self.derived = nil
        // First its end, in order on the home loop: whoever sees that it is over may open the next.
        derived?.end()
        let wasOver = self.shared.withLock { shared in
            defer { shared.isOver = true }
            return shared.isOver
        }
        guard !wasOver else { return }
        self.table.remove(self)
        self.maker.end()
        self.timer?.cancel()
        self.timer = nil
        if let mailbox = self.mailbox { RelayLoop.remove(mailbox, from: self.stream) }
        self.mailbox = nil
        self.table.streams.registry.release(self.stream)
    }
}
