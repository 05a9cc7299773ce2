import Delivery
import LibC
import Logging
import ServerConfiguration
import UnixSignals

/// The time between SIGTERM and the end: running pushes go on, nobody new is let in, `/readyz` says "draining", and clients that can are asked to
/// connect again. Over when the last push has ended, when `drain.timeout` has passed, or at a second SIGTERM or SIGINT.
struct Drain: Sendable {
    private let parts: ServerParts
    private let config: ServerConfig.Drain
    /// Not where the process is somebody else's as well.
    private let hearsSignals: Bool

    private static let look = Duration.milliseconds(200)
    private static let told = Duration.seconds(10)

    init(_ parts: ServerParts, hearsSignals: Bool = true) {
        self.parts = parts
        self.hearsSignals = hearsSignals
        self.config = parts.config.drain
    }

    func run() async {
        let limit = Duration.milliseconds(self.config.timeoutMs)
        guard limit > .zero, self.parts.pushes.count > 0 else { return }
        let asked = await self.parts.streams.beginDrain(reconnectTo: self.config.reconnectTo)
        self.parts.log.info(
            "Draining: nobody new is let in, running pushes may go on",
            metadata: ["pushes": "\(self.parts.pushes.count)", "asked": "\(asked)", "seconds": "\(limit.components.seconds)"])
        await withTaskGroup(of: String?.self) { group in
            group.addTask { await self.wait(limit) }
            if self.hearsSignals { group.addTask { await Self.secondSignal() } }
            let why = await group.next() ?? nil
            group.cancelAll()
            self.parts.log.info("Drained", metadata: ["why": "\(why ?? "ended")", "pushes": "\(self.parts.pushes.count)"])
        }
    }

    private func wait(_ limit: Duration) async -> String? {
        let clock = ContinuousClock()
        let end = clock.now + limit
        var next = clock.now + Self.told
        while self.parts.pushes.count > 0 {
            guard clock.now < end else { return "drain.timeout has passed" }
            if clock.now >= next {
                next += Self.told
                self.parts.log.info(
                    "Draining",
                    metadata: ["pushes": "\(self.parts.pushes.count)", "secondsLeft": "\((end - clock.now).components.seconds)"])
            }
            do { try await Task.sleep(for: Self.look) } catch { return nil }
        }
        return "all pushes have ended"
    }

    /// The service group has had the first one, and takes no other.
    private static func secondSignal() async -> String? {
        for await _ in await UnixSignalsSequence(trapping: .sigterm, .sigint) { return "a second signal" }
        return nil
    }
}
