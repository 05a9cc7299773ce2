import Access
package import Listening
package import Logging
package import NIOCore
package import Relay
package import Rooms
package import ServerConfiguration
package import Sockets
package import Support
import Synchronization

/// The streams of this server and the event loops that they live on. Any thread.
package final class LiveStreams: Sendable {
    package let registry = StreamRegistry()
    /// Finds streams that come back to where they were.
    package let origins = LoopDetector()
    package let placement: Placement
    private let loops: [ObjectIdentifier: LoopContext]
    private let isDraining = Atomic<Bool>(false)
    private let followers = Mutex(Followers())
    /// Bytes of ended pushes by links, which belong to no loop.
    let endedPulls = Atomic<UInt64>(0)

    private struct Followers {
        var publish: [@Sendable (Relay.Stream, PushGrant) -> Void] = []
        var play: [@Sendable (String) -> Bool] = []
        var sessions: (any SessionObserver)?
    }

    /// `sweepers` are those of `group`.
    package init(_ config: ServerConfig, group: SocketLoopGroup, sweepers: LoopSweepers, ledger: MemoryLedger, log: Logger) {
        var policy = RelayPolicy(config)
        policy.ledger = ledger
        let loops = group.loops.map { [policy] loop in
            LoopContext(loop, policy, sweepers.of(loop), shown: config.metrics.streams, log)
        }
        self.loops = Dictionary(uniqueKeysWithValues: loops.map { (ObjectIdentifier($0.relay.eventLoop), $0) })
        self.placement = Placement(group, loops.map(\.relay.pressure))
    }

    // MARK: Loops

    package func start() { for loop in self.loops.values { loop.start() } }

    package func stop() { for loop in self.loops.values { loop.stop() } }

    /// The server's state on this loop, which must be one of the group that this was made with.
    package func context(of eventLoop: any EventLoop) -> LoopContext? {
        self.loops[ObjectIdentifier(eventLoop)]
    }

    package var allLoops: [LoopContext] { Array(self.loops.values) }

    package var pressures: [LoopPressure] { self.loops.values.map(\.relay.pressure) }

    package var draining: Bool { self.isDraining.load(ordering: .relaxed) }

    /// Refuses every new publisher and viewer from now on.
    package func closeDoors() { self.isDraining.store(true, ordering: .relaxed) }

    /// Refuses every new publisher and viewer from now on, and asks clients that can to connect again: to `tcURL`, or to the same address if it is
    /// nil. Running streams go on. Returns how many clients were asked.
    package func beginDrain(reconnectTo tcURL: String?) async -> Int {
        self.closeDoors()
        var asked = 0
        for loop in self.loops.values {
            asked += (try? await loop.relay.eventLoop.submit { loop.askAllToReconnect(to: tcURL) }.get()) ?? 0
        }
        return asked
    }

    /// Announces the shutdown to every client. Connections close after a moment for their last bytes.
    package func drain() async {
        self.isDraining.store(true, ordering: .relaxed)
        for loop in self.loops.values {
            // The loop group outlives the server; a submit cannot fail.
            _ = try? await loop.relay.eventLoop.submit { loop.closeAll(.serverShutdown) }.get()
        }
    }

    /// Bytes received by links for pushes that are over.
    package var pulledBytes: UInt64 { self.endedPulls.load(ordering: .relaxed) }

    /// The loops' figures as of the last second; asks no loop.
    package var reports: [LoopReport] { self.loops.values.map(\.report) }

    /// Collects values from every loop, on each loop.
    package func collect<Value: Sendable>(_ body: @escaping @Sendable (LoopContext) -> [Value]) async throws -> [Value] {
        var all: [Value] = []
        for loop in self.loops.values {
            all += try await loop.relay.eventLoop.submit { body(loop) }.get()
        }
        return all
    }

    /// Drops what no viewer needs, on every loop.
    package func sweep() async {
        for loop in self.allLoops {
            await withCheckedContinuation { done in
                loop.relay.run { relay in
                    relay.sweep()
                    done.resume()
                }
            }
        }
    }

    // MARK: Streams

    /// Runs `body` on the stream's home loop; returns nil if there is no such stream.
    package func onHome<Value: Sendable>(of path: String, _ body: @escaping @Sendable (RelayLoop, Relay.Stream) -> Value) async -> Value? {
        guard let stream = self.registry.find(path) else { return nil }
        return await withCheckedContinuation { done in
            stream.home.run { done.resume(returning: body($0, stream)) }
        }
    }

    /// The kinds of media that a stream has by now. Nil if nobody publishes it and nobody did a moment ago.
    package func media(of path: String) async -> (audio: Bool, video: Bool)? {
        await self.onHome(of: path) { home, stream -> (audio: Bool, video: Bool)? in
            guard let snapshot = home.snapshot(of: stream)?.stream, snapshot.phase != .idle else { return nil }
            return snapshot.kinds
        } ?? nil
    }

    /// The present number of viewers, from memory.
    package func viewers(of path: StreamPath) -> Int { self.registry.find(path.description)?.viewerCount ?? 0 }

    /// The present number of viewers of all streams, from memory.
    package var viewers: Int { self.registry.viewerCounts().reduce(0) { $0 + $1.viewers } }

    // MARK: Followers

    /// Adds a callback for each publisher of a room's stream: once per push, in order with its first frame. It must not block. Call before the ports
    /// open.
    package func whenPublished(_ body: @escaping @Sendable (Relay.Stream, PushGrant) -> Void) {
        self.followers.withLock { $0.publish.append(body) }
    }

    /// Adds a callback for a player that wants a stream; `body` returns whether it may bring the stream. It must not block. Call before the ports
    /// open.
    package func whenWanted(_ body: @escaping @Sendable (String) -> Bool) {
        self.followers.withLock { $0.play.append(body) }
    }

    /// Sets the observer of plays and pushes that begin and end. Call before the ports open.
    package func observeSessions(_ observer: any SessionObserver) {
        self.followers.withLock { $0.sessions = observer }
    }

    var sessionObserver: (any SessionObserver)? { self.followers.withLock { $0.sessions } }

    package func published(_ stream: Relay.Stream, _ grant: PushGrant) {
        for follower in self.followers.withLock({ $0.publish }) { follower(stream, grant) }
    }

    /// Asks the followers to bring the stream; returns whether one of them may.
    @discardableResult
    package func wanted(_ path: String) -> Bool {
        var mayCome = false
        for follower in self.followers.withLock({ $0.play }) where follower(path) { mayCome = true }
        return mayCome
    }
}

extension RelayPolicy {
    init(_ config: ServerConfig) {
        self.init()
        let relay = config.relay
        self.skipBehindMs = relay.skipBehindMs
        self.maxBehindMs = relay.maxBehindMs
        self.overloadMs = config.limits.lagMs
        self.coalesceMs = relay.coalesceMs
        self.coalesceByAppMs = relay.coalesceByAppMs
        self.gatherMicros = relay.gather ? 500 : 0
        self.maxQueueByAppMs = [TalkStreamName.app: config.talk.maxQueueMs]
        self.grace = GracePeriods(config.rooms.policy)
        self.ring.gopBytes = relay.gopCache.maxBytes
        self.ring.gopMs = relay.gopCache.maxDurationMs
        self.ring.totalBytes = relay.gopCache.maxBytes * 2
    }
}
