import Health
import Media

/// The home loop's part of a stream. Home loop only.
final class HomeStream {
    let stream: Stream
    let registry: StreamRegistry
    // What is touched for each frame is unchecked: methods of these values call nobody, so no second access can begin during one.
    @exclusivity(unchecked) var state: StreamState
    @exclusivity(unchecked) var repair = FrameRepair()
    /// Frames that outputs refused since the last second.
    var refusals = OutputRefusals()
    @exclusivity(unchecked) var meter = StreamMeter()
    @exclusivity(unchecked) var history = StreamHistory()
    @exclusivity(unchecked) var arrivals = ArrivalMeter()
    var judge = StreamJudge()
    var reports = VerdictReports()
    var advice = UplinkAdvice()
    /// RTMP's is always there and first: it holds the pictures that joiners start with. Others exist while they have viewers.
    @exclusivity(unchecked) var wireFormats: [PackagedStream]
    @exclusivity(unchecked) var taps: [any StreamTap] = []
    var delegate: (any PublisherDelegate)? {
        didSet { self.overflowsTold = nil }
    }
    /// Baseline of ``FanoutRing/gopOverflows`` for this publisher. Nil until the first sweep, ``Int/max`` once the publisher was notified.
    var overflowsTold: Int?

    init(_ stream: Stream, _ registry: StreamRegistry, grace: GracePeriods, rtmp: PackagedStream) {
        self.stream = stream
        self.registry = registry
        self.state = StreamState(grace: grace)
        self.wireFormats = [rtmp]
    }

    /// The ring from which all other wire formats are made.
    var ring: FanoutRing { self.wireFormats[0].fanout.ring }

    /// Counts a frame of the present publisher and decides what becomes of it. Returns whether the frame, which has the stream's time now, goes out behind
    /// `items`.
    @inline(__always)
    func receive(_ frame: inout Frame, token: StreamState.Token, nowMs: Int64, items: inout [StreamState.Item]) -> Bool {
        let isSide = frame.tag.flags.contains(.multitrack) && self.state.tracks.isSide(frame)
        self.meter.count(frame, isSide: isSide, nowMs: nowMs)
        self.history.count(frame, isSide: isSide, nowMs: nowMs)
        self.arrivals.count(frame, nowMs: nowMs)
        return self.state.receive(&frame, token: token, nowMs: nowMs, items: &items)
    }

    /// Whether only RTMP's viewers on this loop get the frames.
    var isPlain: Bool { self.wireFormats.count == 1 && self.wireFormats[0].subscribers.isEmpty && self.taps.isEmpty }

    func packaged(_ form: FanoutForm) -> PackagedStream? { self.wireFormats.first { $0.fanout.form == form } }

    /// Loops besides the home loop that have viewers, in any form.
    var subscribers: [RelayLoop] {
        var all: [RelayLoop] = []
        for packaged in self.wireFormats {
            for loop in packaged.subscribers where !all.contains(where: { $0 === loop }) { all.append(loop) }
        }
        return all
    }
}

/// A stream in one form: the home loop's ring and viewers, and the other loops with viewers. Home loop only.
final class PackagedStream {
    let fanout: LoopFanout
    @exclusivity(unchecked) var allocator: SlabAllocator
    var subscribers: [RelayLoop] = []
    /// Headers of default tracks that wait for the first frame.
    private var heldHeaders: [Frame] = []

    init(_ fanout: LoopFanout) {
        self.fanout = fanout
        self.allocator = SlabAllocator(ledger: fanout.ledger)
    }

    /// What viewers get of a frame who chose this track. A default track's header waits for the first frame, as the chosen track's may come next.
    func chosen(_ frame: Frame, _ track: UInt8, _ tracks: DefaultTracks) -> [Frame] {
        guard let chosen = tracks.chosen(frame, track) else { return [] }
        if chosen.isSequenceHeader {
            self.heldHeaders.removeAll { $0.kind == frame.kind }
            if tracks.has(track, frame.kind) { return [chosen] }
            self.heldHeaders.append(chosen.copied)
            return []
        }
        guard chosen.tag.flags.contains(.coded), !self.heldHeaders.isEmpty else { return [chosen] }
        defer { self.heldHeaders = [] }
        return self.heldHeaders + [chosen]
    }
}
