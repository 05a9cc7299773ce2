/// How a viewer's bytes leave: one connection, which may carry several viewers. Lives on the connection's event loop.
package protocol ViewerSink: AnyObject {
    /// Whether a message may be started: the connection is open, and nothing of an earlier one waits.
    var isReady: Bool { get }
    /// The way around this protocol for most messages; open only while ``isReady`` holds. `nil` when all goes through a channel.
    var line: DirectLine? { get }
    /// Writes what can be taken at once, starting at a message boundary. Returns the bytes taken.
    func write(_ vectors: UnsafeBufferPointer<IOVector>, bytes: Int) -> Int
    /// Takes over the rest of a message that `write` took only part of (or nothing, when `offset` is 0), then calls `pump` again when
    /// there is room. `header` replaces the message's own first header when it is not empty.
    func finish(_ message: EncodedMessage, header: UnsafeRawBufferPointer, from offset: Int)
    func tell(_ viewer: Viewer, _ notice: StreamNotice)
    /// The viewer is over the age limit; its connection closes.
    func fellTooFarBehind(_ viewer: Viewer, ms: Int64)
    /// The loop has more viewers than it can carry and gives this one up; its connection closes.
    func shed(_ viewer: Viewer)
    /// Bytes handed to the kernel that it has not sent.
    func unsentBytes() -> Int
    /// The kernel calls the socket writable only below this many unsent bytes.
    func setLowWater(_ bytes: Int)
}

/// One player of one stream: a position in its loop's ring and a gate. Holds no queue. Loop-bound.
package final class Viewer {
    package let stream: Stream
    package let packaging: Packaging
    /// Message stream id on its connection; 1 where the packaging has none.
    package let streamID: UInt32
    /// Unsafe, for the price of a check per message and viewer: a connection detaches its viewers before it goes, and nothing is sent to a
    /// detached one.
    package unowned(unsafe) let sink: any ViewerSink
    /// Unsafe as `sink`, which owns it.
    unowned(unsafe) let line: DirectLine?
    /// Where it stands in its fanout, which clears this when it goes.
    private unowned(unsafe) var fanout: LoopFanout?
    private var index = 0
    /// Sent by other ways than the lane's.
    private var otherBytes: UInt64 = 0
    private var otherMessages: UInt64 = 0
    package internal(set) var gate = ViewerGate()
    package internal(set) var isPaused = false
    package private(set) var isDetached = false
    /// What is sent before the ring: headers and metadata, shared by all who joined at the same place.
    var prelude: [EncodedMessage] = []
    var preludeIndex = 0
    let joinedMs: Int64
    /// How far behind live it was let begin.
    private(set) var headStart = HeadStart()
    /// How long its own socket has kept it waiting.
    var stall = SocketStall()
    /// Bytes in the kernel's send queue at the last sweep.
    var unsentBytes = 0
    var lowWater = 0

    package init(stream: Stream, _ packaging: Packaging = .rtmp, streamID: UInt32 = 1, sink: any ViewerSink, nowMs: Int64) {
        self.stream = stream
        self.packaging = packaging
        self.streamID = streamID
        self.sink = sink
        self.line = sink.line
        self.joinedMs = nowMs
    }

    // MARK: Its lane

    /// From its coming to a fanout to its going. Good until another viewer comes.
    var lane: UnsafeMutablePointer<Lane>? { self.fanout.map { $0.lanes.base + self.index } }

    func enter(_ fanout: LoopFanout, at index: Int) {
        self.fanout = fanout
        self.index = index
        self.line?.add(self)
    }

    func move(to index: Int) { self.index = index }

    /// Nothing is sent to it any more. The connection, and with it `line`, may go from now on.
    func detach() {
        guard !self.isDetached else { return }
        self.isDetached = true
        self.isSteady = false
        self.line?.remove(self)
    }

    /// Its lane goes; what was counted there stays.
    func leaveFanout() {
        guard let lane = self.lane else { return }
        self.count(bytes: Int(truncatingIfNeeded: lane.pointee.bytes), messages: Int(truncatingIfNeeded: lane.pointee.messages))
        self.fanout = nil
    }

    /// Sequence number of the next ring message; `nil` until the loop's ring is seeded.
    var cursor: Int? {
        get { self.lane.flatMap { $0.pointee.cursor < 0 ? nil : $0.pointee.cursor } }
        set { self.lane?.pointee.cursor = newValue ?? -1 }
    }
    var isSteady: Bool {
        get { self.lane?.pointee.isSteady ?? false }
        set { self.lane?.pointee.isSteady = newValue }
    }
    package var bytesSent: UInt64 { self.otherBytes &+ (self.lane?.pointee.bytes ?? 0) }
    package var messagesSent: UInt64 { self.otherMessages &+ (self.lane?.pointee.messages ?? 0) }

    func count(bytes: Int, messages: Int) {
        self.otherBytes &+= UInt64(bytes)
        self.otherMessages &+= UInt64(messages)
    }

    // MARK: Its place

    /// Starts at the ring's join point. What it asked for (no audio, no video) meanwhile stands.
    func start(in fanout: LoopFanout, nowMs: Int64) {
        let point = fanout.ring.joinPoint
        self.cursor = point.sequence
        self.prelude = fanout.encodedPrelude(point.prelude, at: point.sequence)
        self.preludeIndex = 0
        if point.waitsForKeyframe { self.gate.skipVideo(untilKeyframeFrom: point.sequence) }
        self.beginBurst(in: fanout, nowMs: nowMs)
    }

    /// Milliseconds since the next message came; 0 at the live edge.
    func ageMs(in ring: FanoutRing, nowMs: Int64) -> Int64 {
        // What a paused viewer stands at may be gone already, and nothing may be there instead.
        guard let cursor = self.cursor, max(cursor, ring.base) < ring.head else { return 0 }
        return max(0, nowMs - ring[max(cursor, ring.base)].arrivalMs)
    }

    /// It is sent the cached pictures from where it stands now.
    func beginBurst(in fanout: LoopFanout, nowMs: Int64) {
        let ring = fanout.ring
        let behindMs = self.behindMs(in: ring, bytesPerSecond: fanout.rate.peak, nowMs: nowMs)
        self.headStart.begin(ms: behindMs, at: ring.timestamp(at: self.cursor) ?? ring.lastTimestamp, nowMs: nowMs)
    }

    /// What lies before this number is not sent to it.
    func moveOn(to sequence: Int, in ring: FanoutRing, nowMs: Int64) {
        self.headStart.moveOn(to: sequence < ring.head ? max(0, nowMs - ring[sequence].arrivalMs) : 0)
    }

    /// After a look into the kernel: whether what it began with has been read.
    func judgeBurst(in fanout: LoopFanout, limitMs: Int64, nowMs: Int64) {
        guard !self.headStart.isOver, let cursor = self.cursor else { return }
        let ring = fanout.ring
        let hasAll = cursor >= ring.head && self.preludeIndex == self.prelude.count
        self.headStart.judge(
            hasCaughtUp: hasAll && self.unsentBytes <= fanout.lowWater, first: ring.firstTimestamp, newest: ring.lastTimestamp,
            limitMs: limitMs, nowMs: nowMs)
    }

    /// How far it is behind by its own doing: the part of its age, beyond what it was let begin with, in which its socket took no more, and
    /// what waits in the kernel, as far as the loop has not put that there late and at once.
    func ownDelayMs(in ring: FanoutRing, bytesPerSecond: Int, lateMs: Int64, nowMs: Int64) -> Int64 {
        let behindMs = self.behindMs(in: ring, bytesPerSecond: bytesPerSecond, nowMs: nowMs)
        let queuedMs = max(0, behindMs - self.ageMs(in: ring, nowMs: nowMs) - lateMs)
        return min(behindMs - self.headStart.ms, self.stall.ms(nowMs: nowMs, lateMs: lateMs) + queuedMs)
    }

    /// Age plus what waits in the kernel at the stream's bit rate.
    func behindMs(in ring: FanoutRing, bytesPerSecond: Int, nowMs: Int64) -> Int64 {
        let queuedMs = bytesPerSecond > 0 ? Int64(self.unsentBytes) * 1_000 / Int64(bytesPerSecond) : 0
        return self.ageMs(in: ring, nowMs: nowMs) + queuedMs
    }
}

/// What the API shows of a viewer.
package struct ViewerSnapshot: Sendable {
    package let path: String
    package let streamID: UInt32
    package let behindMs: Int64
    package let skippedFrames: Int
    package let bytesSent: UInt64
    package let messagesSent: UInt64
    package let isPaused: Bool
    package let joinedMs: Int64

    package init(
        path: String, streamID: UInt32, behindMs: Int64, skippedFrames: Int, bytesSent: UInt64, messagesSent: UInt64, isPaused: Bool,
        joinedMs: Int64
    ) {
        self.path = path
        self.streamID = streamID
        self.behindMs = behindMs
        self.skippedFrames = skippedFrames
        self.bytesSent = bytesSent
        self.messagesSent = messagesSent
        self.isPaused = isPaused
        self.joinedMs = joinedMs
    }
}
