package import Listening
import Logging
package import NIOCore
package import Outbound
package import RoomRegistry
import Rooms
package import ServerConfiguration
import ServiceLifecycle
package import Support
import Synchronization

/// Sends the stored deliveries at least once each, in order for each room and target. Retries as configured, and gives up the oldest where too
/// many wait for a target.
///
/// Wakes for new events, due times and finished attempts. Each target has ``WebhookSchedule/perTarget`` concurrent attempts of its own; the
/// settings and the API allow at most 32 targets each. On shutdown it delivers what is due for a second at most. Attempts that are still under way
/// then are cancelled and not recorded: they are repeated after the restart.
package final class WebhookDispatcher: Service, Sendable {
    /// Same as ``OutboundClient/post(url:headers:body:timeout:pool:)``.
    typealias Post =
        @Sendable (
            _ url: String, _ headers: [(name: String, value: String)], _ body: [UInt8], _ timeout: Duration, _ pool: String
        ) async -> Result<OutboundAnswer, OutboundError>

    private let settings: Live<ServerConfig>
    private let rooms: RoomRegistry
    /// Called for each attempt, because ports are known only once they are open.
    private let sender: @Sendable () -> WebhookSender
    private let post: Post
    private let clock: RoomClock
    private let eventLoop: any EventLoop
    private let log: WebhookLog
    private let counters: ServerCounters
    private let schedule = Mutex(WebhookSchedule())
    private let isEnding = Atomic(false)
    /// When to count what waits, by the steady clock.
    private let countsAt = Atomic(Int64.min)
    private let wakes: AsyncStream<Void>
    private let waker: AsyncStream<Void>.Continuation

    /// Delay after the store could not be read or written.
    private static let storePause = Duration.seconds(1)
    /// Time for last deliveries at shutdown. The whole shutdown may take five seconds.
    private static let lastDeliveries = TimeAmount.seconds(1)
    /// Time within which a target that answers again gets what was put off, so that it is not overrun.
    private static let spreadMs: Int64 = 10_000
    /// Longest sleep, since resending a delivery on demand does not wake the dispatcher.
    private static let longestSleepMs: Int64 = 2_000
    /// Time between counts of what waits. Counting reads an index of all of it.
    private static let countIntervalMs: Int64 = 10_000

    init(
        _ settings: Live<ServerConfig>, rooms: RoomRegistry, sender: @escaping @Sendable () -> WebhookSender,
        eventLoop: any EventLoop,
        clock: RoomClock, counters: ServerCounters, log: WebhookLog, post: @escaping Post
    ) {
        self.settings = settings
        self.rooms = rooms
        self.sender = sender
        self.post = post
        self.clock = clock
        self.eventLoop = eventLoop
        self.log = log
        self.counters = counters
        (self.wakes, self.waker) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Sends with the server's own client.
    package convenience init(
        _ settings: Live<ServerConfig>, rooms: RoomRegistry, sender: @escaping @Sendable () -> WebhookSender,
        outbound: OutboundClient,
        counters: ServerCounters, log: WebhookLog, eventLoop: any EventLoop
    ) {
        self.init(
            settings, rooms: rooms, sender: sender, eventLoop: eventLoop, clock: rooms.clock, counters: counters, log: log,
            post: { url, headers, body, timeout, pool in
                await outbound.post(url: url, headers: headers, body: body, timeout: timeout, pool: pool)
            })
    }

    private var config: ServerConfig.Webhooks { self.settings.webhooks }
    private var targets: Set<String> { Set(self.config.targets.map(\.id)) }

    /// Signals new events. Does not wait; any thread.
    package func wake() { if !self.config.targets.isEmpty || self.rooms.hasWebhooks { self.waker.yield() } }

    package func run() async throws {
        // Runs even without targets: deliveries to targets removed from the settings may remain.
        await withGracefulShutdownHandler {
            await withDiscardingTaskGroup { attempts in
                var timer: Scheduled<Void>?
                self.waker.yield()
                for await _ in self.wakes {
                    timer?.cancel()
                    timer = await self.dispatch { entry in attempts.addTask { await self.attempt(entry) } }
                    if self.isEnding.load(ordering: .relaxed), self.schedule.withLock({ $0.count == 0 }) { break }
                }
                timer?.cancel()
                attempts.cancelAll()
            }
        } onGracefulShutdown: {
            self.isEnding.store(true, ordering: .relaxed)
            self.waker.yield()
            self.eventLoop.scheduleTask(in: Self.lastDeliveries) { self.waker.finish() }
        }
    }

    /// Starts due attempts. Returns the timer for the next due time.
    private func dispatch(_ begin: (WebhookDelivery) -> Void) async -> Scheduled<Void> {
        self.schedule.withLock { $0.listAsked() }
        let waker = self.waker
        do throws(RegistryError) {
            try await self.giveUpSurplus()
            let (due, nextAt) = try await self.rooms.dueDeliveries(limit: WebhookSchedule.pageLimit)
            for entry in self.schedule.withLock({ $0.listArrived(due) }) { begin(entry) }
            // A due delivery beyond its target's limit waits for the end of an attempt, which wakes the dispatcher.
            let now = self.clock.now()
            let delay = min(max(1, (nextAt ?? .max) - now), Self.longestSleepMs)
            return self.eventLoop.scheduleTask(in: .milliseconds(delay)) { _ = waker.yield() }
        } catch {
            self.log.storeFailed(error)
            _ = self.schedule.withLock { $0.listArrived([]) }
            return self.eventLoop.scheduleTask(in: TimeAmount(Self.storePause)) { _ = waker.yield() }
        }
    }

    /// Counts what waits for each target, and gives up the oldest past the limit.
    func giveUpSurplus(past limit: Int = RoomLimits.waitingDeliveries) async throws(RegistryError) {
        let steadyMs = self.clock.steadyMs
        guard steadyMs >= self.countsAt.load(ordering: .relaxed) else { return }
        let waiting = try await self.rooms.pendingDeliveries()
        self.log.counted(waiting)
        for (target, count) in waiting {
            var surplus = count - limit
            while surplus > 0 {
                let givenUp = try await self.rooms.giveUpOldest(surplus, of: target)
                guard givenUp > 0 else { break }
                surplus -= givenUp
                self.log.gaveUpSurplus(givenUp, target, limit: limit, now: self.clock.now())
                self.counters.update { $0.webhooksGivenUp += UInt64(givenUp) }
            }
        }
        self.countsAt.store(steadyMs + Self.countIntervalMs, ordering: .relaxed)
    }

    private func attempt(_ entry: WebhookDelivery) async {
        let targetID = entry.target.id
        let begin = ContinuousClock.now
        var status: Int?
        var problem: String?
        var isHopeless = false
        if entry.target.hookID == nil ? self.targets.contains(targetID) : !entry.target.url.isEmpty {
            do throws(WebhookBodyError) {
                let request = try WebhookRequest(entry, sender: self.sender().signing(with: entry.target.key), atSeconds: WallClock.seconds)
                let answer = await self.post(
                    entry.target.url, request.headers.map { ($0.name, $0.value) }, Array(request.body.utf8),
                    .milliseconds(self.config.timeoutMs), targetID)
                switch answer {
                case .success(let answer):
                    status = answer.status
                    if !WebhookDelivery.isDelivered(answer.status) { problem = "HTTP status \(answer.status); expected 2xx" }
                case .failure(let error): problem = error.description
                }
            } catch {
                problem = error.description
                isHopeless = true
            }
        } else {
            problem = entry.target.hookID == nil ? "this target is no longer in the settings" : "this target was deleted"
            isHopeless = true
        }
        // The server shuts down: the attempt does not count.
        guard !Task.isCancelled else { return }
        let durationMs = Int64((ContinuousClock.now - begin) / .milliseconds(1))
        let verdict = WebhookVerdict(
            status: status, of: entry, isHopeless: isHopeless, now: self.clock.now(), self.config)
        if await self.record(entry, status: status, problem: problem, durationMs: durationMs, verdict) {
            if verdict == .delivered, self.log.isInOutage(targetID) { await self.hasten(entry.target) }
            self.log.attempted(entry, verdict, problem: problem, now: self.clock.now())
            self.counters.update { counters in
                if verdict == .delivered { counters.webhooksDelivered += 1 } else { counters.webhookAttemptsFailed += 1 }
                if verdict == .givenUp { counters.webhooksGivenUp += 1 }
            }
            self.schedule.withLock { $0.ended(entry.id) }
            self.waker.yield()
        }
    }

    /// A target that answers again gets what its outage had put off, rather than after the longest wait between tries.
    private func hasten(_ target: WebhookTarget) async {
        do throws(RegistryError) {
            while try await self.rooms.hastenAfterOutage(of: target, spreadMs: Self.spreadMs) > 0, !Task.isCancelled {}
        } catch {
            // They stay due when they were.
            self.log.storeFailed(error)
        }
    }

    /// Retries until the result is stored: otherwise the delivery would go out again at once. Returns false when the server shuts down.
    private func record(
        _ entry: WebhookDelivery, status: Int?, problem: String?, durationMs: Int64, _ verdict: WebhookVerdict
    ) async -> Bool {
        var retryAt: Int64?
        if case .retry(let at) = verdict { retryAt = at }
        while !Task.isCancelled {
            do throws(RegistryError) {
                try await self.rooms.recordAttempt(entry.id, status: status, error: problem, durationMs: durationMs, retryAt: retryAt)
                return true
            } catch {
                self.log.storeFailed(error)
            }
            // Cancelled: the server shuts down.
            do { try await Task.sleep(for: Self.storePause) } catch { return false }
        }
        return false
    }
}
