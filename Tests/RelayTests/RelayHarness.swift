import Media
import NIOCore
import Sockets
import Synchronization
import Testing

@testable import Relay

/// A millisecond clock that only the test advances.
final class ManualClock: Sendable {
    private let ms = Atomic<Int64>(1_000)

    var nowMs: Int64 { self.ms.load(ordering: .sequentiallyConsistent) }

    func advance(_ by: Int64) {
        self.ms.add(by, ordering: .sequentiallyConsistent)
    }
}

/// Records why its publishes ended.
final class FakePublisher: PublisherDelegate {
    private let reasons = Mutex<[PublishEndReason]>([])

    var ended: [PublishEndReason] { self.reasons.withLock { $0 } }

    func publishEnded(_ token: StreamState.Token, reason: PublishEndReason) {
        self.reasons.withLock { $0.append(reason) }
    }
}

/// A stream, referenced without being one of its users.
struct WeakStream: Sendable {
    weak let stream: Relay.Stream?
}

/// Keeps the test's connections alive, which viewers do not hold. Also lists the streams to abandon at its end.
private final class Keeper: Sendable {
    private let sinks = Mutex<[FakeSink]>([])
    private let streams = Mutex<[WeakStream]>([])

    func keep(_ sink: FakeSink) { self.sinks.withLock { $0.append(sink) } }

    func keep(_ stream: Relay.Stream) { self.streams.withLock { $0.append(WeakStream(stream: stream)) } }

    var all: (sinks: [FakeSink], streams: [Relay.Stream]) {
        (self.sinks.withLock { $0 }, self.streams.withLock { $0.compactMap(\.stream) })
    }
}

/// Two relay loops on real event loops, with a manual clock and no timers: the test sweeps.
///
/// A value of Sendable parts; everything loop-bound is entered through ``on(_:_:)``.
struct RelayHarness: Sendable {
    let clock: ManualClock
    let registry = StreamRegistry()
    /// The home loop of the tests' streams.
    let home: RelayLoop
    let other: RelayLoop
    private let keeper = Keeper()

    var loops: [RelayLoop] { [self.home, self.other] }

    /// Shared by all tests. Stopping a group would block one thread of the pool on another, which may never be free.
    private static let group = Result { try SocketLoopGroup(loops: 2) }

    /// The rest of long work behind a loop's sockets, as in the server.
    private final class Turns: TurnTaking {
        private let loop: SocketLoop

        init(_ loop: SocketLoop) { self.loop = loop }

        func next(_ task: @escaping () -> Void) { self.loop.next(task) }
    }

    /// Runs `body` and releases what it made: a stream and its home loop hold each other while the stream exists. With few `sendsPerTurn` a
    /// handful of viewers is a large stream.
    static func run(
        _ policy: RelayPolicy = RelayPolicy(), sendsPerTurn: Int = RelayLoop.usualSendsPerTurn, _ body: (RelayHarness) async throws -> Void
    ) async throws {
        let relay = try RelayHarness(policy, sendsPerTurn)
        try await body(relay)
        let (sinks, streams) = relay.keeper.all
        for sink in sinks { try await relay.on(sink.loop) { _ in sink.close() } }
        for stream in streams { try await relay.on(stream.home) { $0.abandon(stream) } }
        try await relay.settle()
    }

    private init(_ policy: RelayPolicy, _ sendsPerTurn: Int) throws {
        let clock = ManualClock()
        self.clock = clock
        let relays = try Self.group.get().loops.map { loop in
            RelayLoop(eventLoop: loop, encoder: TestEncoder(), policy: policy, turns: Turns(loop), sendsPerTurn: sendsPerTurn) {
                clock.nowMs
            }
        }
        self.home = relays[0]
        self.other = relays[1]
    }

    func on<T: Sendable>(_ loop: RelayLoop, _ body: @escaping @Sendable (RelayLoop) throws -> T) async throws -> T {
        try Self.wait(for: loop.eventLoop.submit { try body(loop) })
    }

    /// Blocks for a moment instead of suspending. The thread sanitizer does not follow a future's result into a suspended task.
    static func wait<T: Sendable>(for future: EventLoopFuture<T>) throws -> T { try future.wait() }

    /// Waits until everything that was started has finished. Each round is a full turn of both loops. The longest chain of hops (publish,
    /// home, other loop, pump) is four, unless the pump takes several turns.
    func settle() async throws {
        var rounds = 0
        var isPumping = false
        while rounds < 4 || isPumping {
            rounds += 1
            isPumping = false
            for loop in self.loops where try await !self.on(loop, { $0.hasPumped }) { isPumping = true }
        }
    }

    func acquire(_ path: String = "live/cam") async throws -> Relay.Stream {
        let registry = self.registry
        let stream = try await self.on(self.home) { registry.acquire(path, on: $0) }
        self.keeper.keep(stream)
        return stream
    }

    func claim(
        _ stream: Relay.Stream, as identity: String = "device", delegate: FakePublisher = FakePublisher()
    ) async throws -> StreamState.Token {
        try await self.on(self.home) { try $0.claim(stream, identity: PublisherIdentity(identity), delegate: delegate) }
    }

    /// A stream that is being published.
    func live(_ path: String = "live/cam") async throws -> (stream: Relay.Stream, token: StreamState.Token) {
        let stream = try await self.acquire(path)
        return (stream, try await self.claim(stream))
    }

    func publish(_ frames: [Frame], to live: (stream: Relay.Stream, token: StreamState.Token)) async throws {
        RelayLoop.publish(frames, to: live.stream, token: live.token)
        try await self.settle()
    }

    /// One frame per turn, as from a device.
    func publishSingly(_ frames: [Frame], to live: (stream: Relay.Stream, token: StreamState.Token)) async throws {
        for frame in frames { try await self.publish([frame], to: live) }
    }

    /// Returns when the publisher has left, so that time may go on.
    func leave(_ live: (stream: Relay.Stream, token: StreamState.Token), clean: Bool) async throws {
        RelayLoop.leave(live.stream, token: live.token, clean: clean)
        try await self.settle()
    }

    func sweep() async throws {
        for loop in self.loops { try await self.on(loop) { $0.sweep() } }
        try await self.settle()
    }

    /// Settles until the condition holds; records an issue after 30 seconds.
    func eventually(_ condition: () -> Bool) async throws {
        let end = ContinuousClock.now + .seconds(30)
        while ContinuousClock.now < end {
            if condition() { return }
            try await self.settle()
        }
        #expect(condition())
    }

    /// A new viewer on `loop`, alone on its connection.
    func join(
        _ stream: Relay.Stream, on loop: RelayLoop, _ wireFormat: WireFormat = .rtmp, streamID: UInt32 = 1, tracks: TrackChoice = .standard,
        _ prepare: @escaping @Sendable (FakeSink) -> Void = { _ in }
    ) async throws -> FakeSink {
        let sink = FakeSink(loop)
        self.keeper.keep(sink)
        try await self.on(loop) { _ in
            prepare(sink)
            sink.play(stream, wireFormat, streamID: streamID, tracks: tracks)
        }
        try await self.settle()
        return sink
    }

    func with<T: Sendable>(_ sink: FakeSink, _ body: @escaping @Sendable (FakeSink) throws -> T) async throws -> T {
        let result = try await self.on(sink.loop) { _ in try body(sink) }
        try await self.settle()
        return result
    }

    func received(_ sink: FakeSink) async throws -> [Received] {
        try await self.with(sink) { $0.bytes }.messages()
    }

    func changes(_ sink: FakeSink) async throws -> [StreamChange] {
        try await self.with(sink) { $0.told.map(\.change) }
    }

    func ringBytes(_ stream: Relay.Stream) async throws -> Int {
        try await self.on(self.home) { home in home.streamSnapshots().first { $0.path == stream.path }?.ringBytes ?? 0 }
    }
}
