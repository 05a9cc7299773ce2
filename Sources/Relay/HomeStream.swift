import Media

/// What the home loop keeps of a stream. Touched on that loop only.
final class HomeStream {
    let stream: Stream
    let registry: StreamRegistry
    var state: StreamState
    var meter = StreamMeter()
    var history = StreamHistory()
    var allocator = SlabAllocator()
    var subscribers: [RelayLoop] = []
    var delegate: (any PublisherDelegate)?

    init(_ stream: Stream, _ registry: StreamRegistry, grace: GracePeriods) {
        self.stream = stream
        self.registry = registry
        self.state = StreamState(grace: grace)
    }
}
