import Media

/// What the home loop keeps of a stream. Touched on that loop only.
final class HomeStream {
    let stream: Stream
    let registry: StreamRegistry
    var state: StreamState
    var meter = StreamMeter()
    var history = StreamHistory()
    /// RTMP's is always there, and first: it holds the pictures that joiners start with. Others are while somebody is sent them.
    var packagings: [PackagedStream]
    var taps: [any StreamTap] = []
    var delegate: (any PublisherDelegate)? {
        didSet { self.overflowsTold = nil }
    }
    /// Of ``FanoutRing/gopOverflows`` when this publisher came; nil until the first sweep, ``Int/max`` once it was told.
    var overflowsTold: Int?

    init(_ stream: Stream, _ registry: StreamRegistry, grace: GracePeriods, rtmp: PackagedStream) {
        self.stream = stream
        self.registry = registry
        self.state = StreamState(grace: grace)
        self.packagings = [rtmp]
    }

    /// The ring that everything else is made from.
    var ring: FanoutRing { self.packagings[0].fanout.ring }

    func packaged(_ packaging: Packaging) -> PackagedStream? { self.packagings.first { $0.fanout.packaging == packaging } }

    /// Loops with viewers of any kind, besides the home loop.
    var subscribers: [RelayLoop] {
        var all: [RelayLoop] = []
        for packaged in self.packagings {
            for loop in packaged.subscribers where !all.contains(where: { $0 === loop }) { all.append(loop) }
        }
        return all
    }
}

/// A stream's messages in one packaging: the home loop's own ring and viewers, and the other loops that have some. Home loop only.
final class PackagedStream {
    let fanout: LoopFanout
    var allocator: SlabAllocator
    var subscribers: [RelayLoop] = []

    init(_ fanout: LoopFanout) {
        self.fanout = fanout
        self.allocator = SlabAllocator(ledger: fanout.ledger)
    }
}
