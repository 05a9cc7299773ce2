import LibC
import Sockets

/// A fixed number of viewers that come and go. Each plays one of the streams for a random time, may stop reading and resume, and leaves
/// with an orderly end or a reset, whatever it was doing. Another one takes its place at once. On the calling thread; not Sendable.
final class ChurnLoop {
    /// The load to generate.
    struct Plan {
        var names: [String]
        /// Viewers at a time.
        var lanes: Int
        /// Mean time that a viewer stays. Nanoseconds.
        var meanLifeNs: UInt64
        /// Percentage of viewers that stop reading now and then.
        var stallingPercent: Int
        /// Kernel receive buffer of a viewer that stops reading, in bytes.
        var stalledReceiveBufferBytes: Int
        var seed: UInt64
    }

    private struct Lane {
        var viewer: Viewer?
        /// Counts the lane's viewers, so that a former viewer's event does not reach the next.
        var generation: UInt32 = 0
        var stalls = false
        var hasStalled = false
        var actsNs: UInt64 = 0
        var endsNs: UInt64 = 0
    }

    private let target: Target
    private let plan: Plan
    private let epoll: Epoll
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 64)
    private var lanes: [Lane]
    private var random: SplitMix
    /// Set when viewers are no longer replaced.
    private var isEnding = false
    private(set) var totals = ChurnTotals()

    /// Percentage of viewers that leave within the first milliseconds. They are still in the handshake or in a command.
    private static let hastyPercent = 10
    private static let hastyNs: UInt64 = 4_000_000
    private static let stallNs: ClosedRange<UInt64> = 100_000_000...4_000_000_000

    init(target: Target, plan: Plan) throws(LoadError) {
        self.target = target
        self.plan = plan
        self.epoll = try Epoll.make()
        self.lanes = Array(repeating: Lane(), count: plan.lanes)
        self.random = SplitMix(state: plan.seed)
    }

    deinit { self.buffer.deallocate() }

    var viewers: [Viewer] { self.lanes.compactMap(\.viewer) }

    /// Viewers that have never stopped reading.
    var steadyViewers: [Viewer] { self.lanes.compactMap { $0.hasStalled ? nil : $0.viewer } }

    func run(untilNs end: UInt64, isDone: () -> Bool) throws(LoadError) {
        while true {
            let now = Clock.now()
            guard now < end, !isDone() else { return }
            for index in self.lanes.indices where self.lanes[index].actsNs <= now { try self.act(index, now) }
            try self.epoll.poll(timeoutNs: 1_000_000) { (event) throws(LoadError) in
                let index = Int(event.token & 0xFFFF_FFFF)
                guard UInt32(event.token >> 32) == self.lanes[index].generation else { return }
                try self.handle(event, index)
            }
        }
    }

    /// Stops joins and stalls, and lets every viewer read.
    func calmDown() throws(LoadError) {
        self.isEnding = true
        for index in self.lanes.indices {
            self.lanes[index].actsNs = .max
            guard let viewer = self.lanes[index].viewer, viewer.phase == .stalled else { continue }
            viewer.resume()
            try self.epoll.modify(viewer.descriptor, token: self.token(index), [.read, .hangUp])
        }
    }

    func closeAll() {
        for index in self.lanes.indices { self.leave(index) }
    }

    // MARK: Lives

    private func token(_ index: Int) -> UInt64 { UInt64(self.lanes[index].generation) << 32 | UInt64(index) }

    private func act(_ index: Int, _ now: UInt64) throws(LoadError) {
        guard let viewer = self.lanes[index].viewer else { return try self.open(index, now) }
        if viewer.phase == .closed || now >= self.lanes[index].endsNs {
            self.leave(index)
            return try self.open(index, now)
        }
        switch viewer.phase {
        case .playing where self.lanes[index].stalls:
            viewer.stall()
            self.lanes[index].hasStalled = true
            self.totals.stalls += 1
            try self.epoll.modify(viewer.descriptor, token: self.token(index), .hangUp)
        case .stalled:
            viewer.resume()
            try self.epoll.modify(viewer.descriptor, token: self.token(index), [.read, .hangUp])
        default: break
        }
        self.schedule(index, now)
    }

    private func schedule(_ index: Int, _ now: UInt64) {
        let next = self.lanes[index].stalls ? now + UInt64.random(in: Self.stallNs, using: &self.random) : .max
        self.lanes[index].actsNs = min(next, self.lanes[index].endsNs)
    }

    private func open(_ index: Int, _ now: UInt64) throws(LoadError) {
        guard !self.isEnding else { return }
        let room = Int.random(in: 0..<self.plan.names.count, using: &self.random)
        let stalls = Int.random(in: 0..<100, using: &self.random) < self.plan.stallingPercent
        let isHasty = Int.random(in: 0..<100, using: &self.random) < Self.hastyPercent
        let life =
            isHasty
            ? UInt64.random(in: 0...Self.hastyNs, using: &self.random)
            : UInt64(-log(Double.random(in: 1e-4..<1, using: &self.random)) * Double(self.plan.meanLifeNs))
        let viewer = try Viewer(
            target: self.target, name: self.plan.names[room], room: room, hasVideo: true,
            receiveBufferBytes: stalls ? self.plan.stalledReceiveBufferBytes : nil, source: index)
        self.lanes[index] = Lane(
            viewer: viewer, generation: self.lanes[index].generation &+ 1, stalls: stalls, actsNs: 0, endsNs: now + life)
        self.schedule(index, now)
        self.totals.opened += 1
        try self.epoll.add(viewer.descriptor, token: self.token(index), [.read, .write, .hangUp])
    }

    /// Closes the lane's viewer, if it is still there, and counts what it got.
    private func leave(_ index: Int) {
        let lane = self.lanes[index]
        guard let viewer = lane.viewer else { return }
        self.lanes[index].viewer = nil
        let failure = viewer.failure
        if viewer.phase != .closed {
            if Bool.random(using: &self.random) { Socket.resetOnClose(viewer.descriptor) }
            viewer.close("left")
        }
        self.totals.count(viewer, failure: failure, hasStalled: lane.hasStalled)
    }

    private func handle(_ event: Epoll.Event, _ index: Int) throws(LoadError) {
        guard let viewer = self.lanes[index].viewer, viewer.phase != .closed else { return }
        if event.isWritable, viewer.phase == .connecting {
            viewer.connected()
            if viewer.phase != .closed { try self.epoll.modify(viewer.descriptor, token: self.token(index), [.read, .hangUp]) }
        }
        if viewer.phase == .stalled {
            if event.isHungUp { viewer.close(ChurnTotals.closedByServer) }
        } else if event.isReadable {
            self.read(viewer)
        } else if event.isHungUp {
            viewer.close(ChurnTotals.closedByServer)
        }
        // Replaced in the next round.
        if viewer.phase == .closed, !self.isEnding { self.lanes[index].actsNs = 0 }
    }

    private func read(_ viewer: Viewer) {
        let count = recv(viewer.descriptor, self.buffer.baseAddress, self.buffer.count, 0)
        if count > 0 {
            viewer.received(UnsafeRawBufferPointer(rebasing: self.buffer[..<count]), nowNs: Clock.now())
        } else if count == 0 || errno == ECONNRESET {
            viewer.close(ChurnTotals.closedByServer)
        } else if errno != EAGAIN && errno != EINTR {
            viewer.close("recv failed: \(String(cString: strerror(errno)))")
        }
    }
}

/// The totals over all viewers.
struct ChurnTotals: Codable {
    var opened = 0
    /// Viewers that came and went, for any reason.
    var gone = 0
    /// Those of them that got at least one frame.
    var played = 0
    var stalls = 0
    /// Frames, and the bytes of their tag bodies; each byte was compared with what was published.
    var messages = 0
    var bytes = 0
    /// Viewers that had stopped reading and were cut.
    var cut = 0
    var damaged = 0
    /// Frames of a stream other than the requested one.
    var foreign = 0
    var duplicates = 0
    var disordered = 0
    /// Audio frames missing between a viewer's first and last. Also video frames of viewers that read all the time.
    var missing = 0
    /// Viewers that read all the time and never got their stream's end.
    var incomplete = 0
    /// Viewers that failed although they read all the time, or got bytes that are not RTMP.
    var failed = 0
    var firstFailure: String?

    static let closedByServer = "the server closed the connection"

    /// Whether every byte was right.
    var isRight: Bool {
        // One by one: a late frame lowers `missing` by one, so that a sum could be 0 by chance.
        [self.damaged, self.foreign, self.duplicates, self.disordered, self.missing, self.incomplete, self.failed].allSatisfy { $0 == 0 }
    }

    mutating func count(_ viewer: Viewer, failure: String?, hasStalled: Bool) {
        let check = viewer.check
        self.gone += 1
        if check.messages > 0 { self.played += 1 }
        self.messages += check.messages
        self.bytes += check.bytes
        self.damaged += check.damaged
        self.foreign += check.foreign
        for track in [check.video, check.audio] {
            self.duplicates += track.duplicates
            self.disordered += track.outOfOrder + track.backwardTimestamps
        }
        self.missing += check.audio.missing + (hasStalled ? 0 : check.video.missing)
        guard let failure else { return }
        if hasStalled, failure == Self.closedByServer || failure.hasPrefix("send failed") {
            self.cut += 1
        } else {
            self.failed += 1
            self.firstFailure = self.firstFailure ?? failure
        }
    }
}

extension Socket {
    /// Makes the next `close` reset the connection instead of ending it in order.
    static func resetOnClose(_ descriptor: CInt) {
        var option = linger(l_onoff: 1, l_linger: 0)
        _ = setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }
}

/// A generator with the same numbers for the same seed.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = self.state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
