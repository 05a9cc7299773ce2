import NIOCore
import NIOPosix
import RTMP
package import ServerTestSupport
import Synchronization
package import TestSupport
package import Testing

/// A published and watched stream beside a test's bad deeds. Every message must arrive in order and on time.
package final class Canary: Sendable {
    package static let name = "canary"
    /// Longest delay from publish to delivery, less the time for which the machine kept the message's threads waiting for a processor. Ten
    /// times what an idle machine needs, and five times that under a sanitizer.
    private static let delayLimit = Duration.milliseconds(500) * Patience.factor
    private static let intervalMs: Int64 = 20
    private static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    private let publisher: RawClient
    private let viewer: RawClient
    /// The threads that each message waits for: the publisher's and viewer's, and the server's loops.
    private let threads: [ThreadWait]
    /// When each message was handed to the socket, by number, and how long those threads had waited until then.
    private let sent = Mutex<[(at: ContinuousClock.Instant, waited: Duration)]>([])
    private let isPublishing = Mutex(true)

    private init(publisher: RawClient, viewer: RawClient, threads: [ThreadWait]) {
        self.threads = threads
        self.publisher = publisher
        self.viewer = viewer
    }

    /// Runs the body beside a canary, then checks every delivery. `loops`: the server's.
    package static func during<Result: Sendable>(
        _ port: some RTMPDoor, loops: [ThreadWait], sourceLocation: SourceLocation = #_sourceLocation,
        _ body: @Sendable () async throws -> Result
    ) async throws -> Result {
        _ = StallMeter.machine.start()
        let canary = try await Canary.start(port, loops)
        let outcome: Swift.Result<Result, any Error>
        do {
            outcome = .success(try await body())
        } catch {
            outcome = .failure(error)
        }
        try await canary.judge(sourceLocation)
        return try outcome.get()
    }

    private static func start(_ port: some RTMPDoor, _ loops: [ThreadWait]) async throws -> Canary {
        var options = RawClient.Options()
        options.group = self.group
        let viewer = try await RawClient.playing(port, self.name, options)
        let publisher = try await RawClient.publishing(port, self.name, options)
        let own = try await publisher.channel.eventLoop.submit { ThreadWait.current }.get()
        let canary = Canary(publisher: publisher, viewer: viewer, threads: loops + [own])
        publisher.send(.video, SyntheticTag.videoHeader)
        publisher.send(.audio, SyntheticTag.audioHeader)
        publisher.channel.eventLoop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(self.intervalMs)) { task in
            guard canary.isPublishing.withLock({ $0 }) else { return task.cancel() }
            canary.publishNext()
        }
        try await eventually("the canary's first message") { viewer.media().count > 2 }
        return canary
    }

    private func publishNext() {
        let waited = self.waited
        let number = self.sent.withLock { sent in
            sent.append((.now, waited))
            return sent.count - 1
        }
        let timestamp = UInt32(number) * UInt32(Self.intervalMs)
        if number % 2 == 0 {
            self.publisher.send(.video, SyntheticTag.video(number, isKeyframe: number % 50 == 0, bytes: 1_000), timestamp: timestamp)
        } else {
            self.publisher.send(.audio, SyntheticTag.audio(number, bytes: 200), timestamp: timestamp)
        }
    }

    private func judge(_ sourceLocation: SourceLocation) async throws {
        self.isPublishing.withLock { $0 = false }
        // A tick may still be running.
        try await self.publisher.channel.eventLoop.submit {}.get()
        let sent = self.sent.withLock { $0 }
        let expected = Array(sent.indices)
        try? await eventually("the canary's last message") { self.viewer.isClosed || self.arrivals.count >= sent.count }
        let now = (at: ContinuousClock.now, waited: self.waited)
        let arrivals = self.arrivals
        #expect(arrivals.map(\.number) == expected, "the canary lost messages or their order", sourceLocation: sourceLocation)
        #expect(!self.publisher.isClosed && !self.viewer.isClosed, "the canary was disconnected", sourceLocation: sourceLocation)
        for arrival in arrivals where arrival.number < sent.count && arrival.at - sent[arrival.number].at > Self.delayLimit {
            let begin = sent[arrival.number]
            let delay = arrival.at - begin.at
            // A machine that stands still as a whole keeps nobody waiting.
            let stalled = try await StallMeter.machine.stalled(from: begin.at, to: arrival.at)
            let end = sent[(arrival.number + 1)...].first { $0.at >= arrival.at } ?? now
            let waited = end.waited - begin.waited
            #expect(
                delay - max(waited, stalled) < Self.delayLimit,
                "the canary was \(delay) late; its threads waited \(waited) for a processor, and the machine stood still for \(stalled)",
                sourceLocation: sourceLocation)
        }
        await self.publisher.close()
        await self.viewer.close()
    }

    private var waited: Duration { self.threads.reduce(.zero) { $0 + $1.total } }

    private var arrivals: [(number: Int, at: ContinuousClock.Instant)] {
        self.viewer.media().compactMap { received in SyntheticTag.number(received.message).map { ($0, received.at) } }
    }
}
