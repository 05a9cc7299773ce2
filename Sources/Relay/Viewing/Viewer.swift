/// A viewer's output: one connection, which may carry several viewers. Lives on the connection's event loop.
package protocol ViewerSink: AnyObject {
    /// Whether a message may be started. The connection is open then, and no earlier message is pending.
    var isReady: Bool { get }
    /// Bypasses this protocol with direct writes for most messages; open only while ``isReady`` holds. `nil` when all output goes through a channel.
    var line: DirectLine? { get }
    /// Writes as much as is accepted at once, starting at a message boundary. Returns the bytes accepted.
    func write(_ vectors: UnsafeBufferPointer<IOVector>, bytes: Int) -> Int
    /// Finishes a message that `write` wrote in part, or not at all when `offset` is 0. Calls `pump` again when there is room. A non-empty `header`
    /// replaces the message's own first header.
    func finish(_ message: EncodedMessage, header: UnsafeRawBufferPointer, from offset: Int)
    /// Sends one message, in the wire format `packets`; the others use `write` and `finish`. The message's memory may be kept.
    func deliver(_ message: EncodedMessage)
    func notify(_ viewer: Viewer, _ change: StreamChange)
    /// The viewer is behind and will not get all pictures. Rare: once per skip.
    func skipped(_ viewer: Viewer, behindMs: Int64)
    /// The viewer is over the age limit; its connection closes.
    func fellTooFarBehind(_ viewer: Viewer, ms: Int64)
    /// The overloaded loop sheds this viewer; its connection closes.
    func shed(_ viewer: Viewer)
    /// Bytes that the kernel has accepted but not sent.
    func unsentBytes() -> Int
    /// Sets the watermark: the kernel reports the socket writable only below this many unsent bytes.
    func setLowWater(_ bytes: Int)
}

extension ViewerSink {
    package func deliver(_ message: EncodedMessage) {}
    package func skipped(_ viewer: Viewer, behindMs: Int64) {}
}

/// One player of one stream: a position in its loop's ring and a gate. Holds no queue. Loop-bound.
package final class Viewer {
    package let stream: Stream
    let form: FanoutForm
    /// Message stream id on its connection; 1 where the wire format has none.
    package let streamID: UInt32
    /// Messages in a form that is not for it: Multitrack ones, or the default track alone.
    let unwanted: EncodedMessage.Flags
    /// Unsafe, to save a check per message and viewer. A connection detaches its viewers before it goes, and nothing is sent to a detached
    /// one.
    package unowned(unsafe) let sink: any ViewerSink
    /// Unsafe like `sink`, which owns it.
    unowned(unsafe) let line: DirectLine?
    /// Its fanout, which clears this when the viewer leaves or the fanout goes.
    private unowned(unsafe) var fanout: LoopFanout?
    private var index = 0
    /// Totals of output that did not go through the slot.
    private var otherBytes: UInt64 = 0
    private var otherMessages: UInt64 = 0
    package internal(set) var gate = ViewerGate()
    package internal(set) var isPaused = false
    package private(set) var isDetached = false
    /// Headers and metadata sent before the ring's messages. Shared by all viewers that joined at the same position.
    var prelude: [EncodedMessage] = []
    var preludeIndex = 0
    package let joinedMs: Int64
    /// How far behind live it was allowed to start.
    private(set) var headStart = HeadStart()
    /// Whether the ring had media for the viewer when it joined, but it has been sent none of it yet. `joinSequence` is where it began.
    var isJoining = false
    private(set) var joinSequence = 0
    /// How long its own socket has kept it waiting.
    var stall = SocketStall()
    /// The largest observed delay behind live, in milliseconds; sampled once a second, and more often while a viewer is too slow.
    package internal(set) var longestBehindMs: Int64 = 0
    /// When its own delay was last above `slowMs`, or it skipped video. Sampled like `longestBehindMs`.
    private var slowAtMs: Int64?
    /// Bytes in the kernel's send queue at the last sample.
    var unsentBytes = 0
    var lowWater = 0

    package init(
        stream: Stream, _ wireFormat: WireFormat = .rtmp, streamID: UInt32 = 1, tracks: TrackChoice = .standard, sink: any ViewerSink,
        nowMs: Int64
    ) {
        self.stream = stream
        self.form = FanoutForm(wireFormat, track: tracks.track)
        self.streamID = streamID
        self.unwanted = tracks.unwanted
        self.sink = sink
        self.line = sink.line
        self.joinedMs = nowMs
    }

    // MARK: ViewerSlot

    /// Its slot, while it is in a fanout. The pointer is valid until a viewer joins or leaves the fanout.
    var slot: UnsafeMutablePointer<ViewerSlot>? { self.fanout.map { $0.slots.base + self.index } }

    func enter(_ fanout: LoopFanout, at index: Int) {
        self.fanout = fanout
        self.index = index
        self.line?.add(self)
    }

    func move(to index: Int) { self.index = index }

    /// Detaches the viewer, which gets nothing from now on. Its connection, and with it `line`, may be released after this.
    func detach() {
        guard !self.isDetached else { return }
        self.isDetached = true
        self.isSteady = false
        self.line?.remove(self)
    }

    /// Gives up the slot; its totals are kept.
    func leaveFanout() {
        guard let slot = self.slot else { return }
        self.count(bytes: Int(truncatingIfNeeded: slot.pointee.bytes), messages: Int(truncatingIfNeeded: slot.pointee.messages))
        self.fanout = nil
    }

    /// Sequence number of the next ring message; `nil` until the loop's ring is seeded.
    var cursor: Int? {
        get { self.slot.flatMap { $0.pointee.cursor < 0 ? nil : $0.pointee.cursor } }
        set { self.slot?.pointee.cursor = newValue ?? -1 }
    }
    var isSteady: Bool {
        get { self.slot?.pointee.isSteady ?? false }
        set { self.slot?.pointee.isSteady = newValue }
    }
    package var bytesSent: UInt64 { self.otherBytes &+ (self.slot?.pointee.bytes ?? 0) }
    package var messagesSent: UInt64 { self.otherMessages &+ (self.slot?.pointee.messages ?? 0) }

    func count(bytes: Int, messages: Int) {
        self.otherBytes &+= UInt64(bytes)
        self.otherMessages &+= UInt64(messages)
    }

    // MARK: Slowness

    /// A viewer that is further behind live than this by its own fault is slow, in milliseconds.
    static let slowMs: Int64 = 1_500
    /// It counts as slow for this long: between two skips it is near live.
    private static let slowForMs: Int64 = 60_000

    func noteSlow(nowMs: Int64) { self.slowAtMs = nowMs }
    func isSlow(nowMs: Int64) -> Bool { self.slowAtMs.map { nowMs - $0 < Self.slowForMs } ?? false }

    // MARK: Position

    /// Starts at the ring's join point. Requests made before that (no audio, no video) still apply.
    func start(in fanout: LoopFanout, nowMs: Int64) {
        let point = fanout.ring.joinPoint
        self.cursor = point.sequence
        self.prelude = fanout.encodedPrelude(point.prelude, at: point.sequence)
        self.preludeIndex = 0
        self.isJoining = point.sequence < fanout.ring.head
        self.joinSequence = point.sequence
        if point.waitsForKeyframe { self.gate.skipVideo(untilKeyframeFrom: point.sequence) }
        self.beginBurst(in: fanout, nowMs: nowMs)
    }

    /// Milliseconds since the next message arrived; 0 at the live edge.
    func ageMs(in ring: FanoutRing, nowMs: Int64) -> Int64 {
        // The message at a paused viewer's cursor may be gone already, with nothing after it.
        guard let cursor = self.cursor, max(cursor, ring.base) < ring.head else { return 0 }
        return max(0, nowMs - ring[max(cursor, ring.base)].arrivalMs)
    }

    /// Begins the head start: the viewer is sent the cached pictures from its cursor on.
    func beginBurst(in fanout: LoopFanout, nowMs: Int64) {
        let ring = fanout.ring
        let behindMs = self.behindMs(in: ring, bytesPerSecond: fanout.rate.peak, nowMs: nowMs)
        self.headStart.begin(ms: behindMs, at: ring.timestamp(at: self.cursor) ?? ring.lastTimestamp, nowMs: nowMs)
    }

    /// Limits the head start: pictures before this sequence number are not sent.
    func moveOn(to sequence: Int, in ring: FanoutRing, nowMs: Int64) {
        self.headStart.moveOn(to: sequence < ring.head ? max(0, nowMs - ring[sequence].arrivalMs) : 0)
    }

    /// Judges, after sampling the kernel's queue, whether the viewer has read its first pictures.
    func judgeBurst(in fanout: LoopFanout, limitMs: Int64, nowMs: Int64) {
        guard !self.headStart.isOver, let cursor = self.cursor else { return }
        let ring = fanout.ring
        let hasAll = cursor >= ring.head && self.preludeIndex == self.prelude.count
        self.headStart.judge(
            hasCaughtUp: hasAll && self.unsentBytes <= fanout.lowWater, first: ring.firstTimestamp, newest: ring.lastTimestamp,
            limitMs: limitMs, nowMs: nowMs)
    }

    /// The part of the delay that is the viewer's own fault, in milliseconds. It is the time beyond its head start in which its socket was full, plus
    /// its bytes in the kernel. Those do not count if the loop wrote them late and all at once.
    func ownDelayMs(in ring: FanoutRing, bytesPerSecond: Int, lateMs: Int64, nowMs: Int64) -> Int64 {
        let behindMs = self.behindMs(in: ring, bytesPerSecond: bytesPerSecond, nowMs: nowMs)
        let queuedMs = max(0, behindMs - self.ageMs(in: ring, nowMs: nowMs) - lateMs)
        return min(behindMs - self.headStart.ms, self.stall.ms(nowMs: nowMs, lateMs: lateMs) + queuedMs)
    }

    /// Age plus the play time of the bytes in the kernel, at the stream's bit rate.
    func behindMs(in ring: FanoutRing, bytesPerSecond: Int, nowMs: Int64) -> Int64 {
        let queuedMs = bytesPerSecond > 0 ? Int64(self.unsentBytes) * 1_000 / Int64(bytesPerSecond) : 0
        return self.ageMs(in: ring, nowMs: nowMs) + queuedMs
    }
}

/// A viewer as the API shows it.
package struct ViewerSnapshot: Sendable {
    /// What the viewer's client reports of the way to it.
    package struct Line: Sendable, Equatable {
        /// "good", "lossy", "congested", "unknown"
        package var verdict: String
        /// 0 to 1
        package var loss: Double
        package var jitterMs: Double
        package var roundTripMs: Double?
        package var queuedMs: Double?
        /// Packets that were sent again because they were lost.
        package var repeats: UInt64
        /// What is sent for the line's sake: "all", "keyframes", "sound"
        package var sends: String

        package init(
            verdict: String, loss: Double, jitterMs: Double, roundTripMs: Double?, queuedMs: Double?, repeats: UInt64, sends: String
        ) {
            self.verdict = verdict
            self.loss = loss
            self.jitterMs = jitterMs
            self.roundTripMs = roundTripMs
            self.queuedMs = queuedMs
            self.repeats = repeats
            self.sends = sends
        }
    }

    package let path: String
    package let behindMs: Int64
    /// Whether it was behind by its own fault, or skipped video, within the last minute; or its line does not take the stream.
    package let isSlow: Bool
    package let skippedFrames: Int
    package let bytesSent: UInt64
    package let messagesSent: UInt64
    package let isPaused: Bool
    /// Nil for transports whose clients do not report.
    package let line: Line?

    package init(
        path: String, behindMs: Int64, isSlow: Bool, skippedFrames: Int, bytesSent: UInt64, messagesSent: UInt64, isPaused: Bool,
        line: Line? = nil
    ) {
        self.path = path
        self.behindMs = behindMs
        self.isSlow = isSlow
        self.skippedFrames = skippedFrames
        self.bytesSent = bytesSent
        self.messagesSent = messagesSent
        self.isPaused = isPaused
        self.line = line
    }
}
