package import Logging
package import Relay
package import ServerConfiguration
package import Streaming
package import Support
import Synchronization

/// The streams that are made into RTP packets at present. Any thread.
package final class PacketTable: Sendable {
    let streams: LiveStreams
    package let ledger: MemoryLedger
    let frameQueueBytes: Int
    let log: Logger
    /// Streams of packets, under the paths of their source streams. Viewers may wait in one before its source is there.
    package let packets = StreamRegistry(isListed: false)
    private let rows = Mutex<NameTable<PacketStream>>([:])
    /// Starts that are under way, so that viewers who come at once wait for the same one.
    private let starts = Mutex<NameTable<Task<PacketStream?, Never>>>([:])

    /// Streams that turned out not to suit, until they are published anew.
    private let problems = Mutex<NameTable<PacketMaker.Problem>>([:])
    private static let mostProblems = 1_000

    let bFrames: ServerConfig.WebRTC.BFrames
    package let encoders: EncoderPlaces

    package init(_ streams: LiveStreams, _ ledger: MemoryLedger, _ config: ServerConfig.WebRTC, frameQueueBytes: Int, log: Logger) {
        self.streams = streams
        self.bFrames = config.bFrames
        self.encoders = EncoderPlaces(config.encoders)
        self.ledger = ledger
        self.frameQueueBytes = frameQueueBytes
        self.log = log
    }

    /// The stream's packets, if they are made now.
    package func find(_ path: String) -> PacketStream? { self.rows.withLock { $0[path] } }

    /// Returns the live stream's packets, started if need be; nil: nobody publishes it. Its cached pictures are packets by then.
    package func use(_ path: String) async -> PacketStream? {
        // Once more if it has just stopped.
        for _ in 0..<2 {
            if let there = self.find(path), !there.isOver, there.isReady {
                there.touch()
                return there
            }
            let start = self.starts.withLock { starts in
                if let running = starts[path] { return running }
                let start = Task { () -> PacketStream? in
                    defer { self.starts.withLock { $0[path] = nil } }
                    return await self.start(path)
                }
                starts[path] = start
                return start
            }
            guard let made = await start.value else { return nil }
            if !made.isOver || made.problem != nil { return made }
        }
        return nil
    }

    private func start(_ path: String) async -> PacketStream? {
        let acquired = await self.streams.onHome(of: path) { home, stream -> Relay.Stream? in
            guard let snapshot = home.snapshot(of: stream)?.stream, snapshot.phase != .idle else { return nil }
            return self.streams.registry.acquire(path, on: home)
        }
        guard let acquired, let stream = acquired else { return nil }
        let made = PacketStream(self, stream)
        self.rows.withLock { $0[path] = made }
        await made.start()
        return made
    }

    /// Starts making packets of a stream for viewers that have waited for it. Does not block.
    package func publishBegan(_ stream: Relay.Stream) {
        let path = stream.path
        self.problems.withLock { $0[path] = nil }
        guard let waiting = self.packets.find(path), waiting.viewerCount > 0 else { return }
        Task { _ = await self.use(path) }
    }

    /// Why the stream, which was tried since its publisher came, cannot be played.
    package func problem(_ path: String) -> PacketMaker.Problem? {
        let problem = self.problems.withLock { $0[path] }
        // An encoder may have become free.
        return problem == .noEncoder && self.encoders.hasRoom ? nil : problem
    }

    /// What viewers get of the stream's pictures; nil while there are none.
    package func treatment(_ path: String) -> PictureTreatment? {
        self.find(path)?.treatment ?? (self.problem(path) == nil ? nil : .refused)
    }

    func note(_ problem: PacketMaker.Problem, of path: String) {
        self.problems.withLock { problems in
            if problems.count >= Self.mostProblems { problems = [:] }
            problems[path] = problem
        }
    }

    func remove(_ stream: PacketStream) {
        self.rows.withLock { rows in if rows[stream.path] === stream { rows[stream.path] = nil } }
    }

    /// Stops all.
    package func stop() {
        for stream in self.rows.withLock({ Array($0.values) }) { Task { await stream.stop() } }
    }
}
