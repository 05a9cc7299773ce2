package import Logging
import RoomRegistry
package import Rooms
import Store
import Support
import Synchronization

/// Logs the dispatcher's events and tracks the state of each target. Any thread.
///
/// A failing target gets one line at first, then lines with counts at growing intervals, and one when it recovers. A target that fails and recovers
/// repeatedly has the same intervals. Of a URL only the origin is logged.
package final class WebhookLog: Sendable {
    /// A target's state since its failures began or since it recovered.
    package struct Status: Sendable {
        package var isFailing = false
        /// Milliseconds since 1970, like all times here.
        package var since: Int64 = 0
        /// Consecutive failed attempts.
        package var failed = 0
        package var givenUp = 0
        package var problem: String?
        /// Nil before the first delivery that it accepted.
        package var deliveredAt: Int64?
        /// How many deliveries wait, when they were counted last.
        package var waiting = 0
        fileprivate var isReported = false
        fileprivate var lines = Intervals()
        fileprivate var giveUps = Intervals()
        fileprivate var surplusLines = Intervals()
        /// Deliveries given up since the last of those lines because too many waited.
        fileprivate var surplus = 0
    }

    /// Passes one line at once, the next after a minute. Each wait doubles, up to an hour.
    fileprivate struct Intervals {
        private static let shortestMs: Int64 = 60_000
        private static let longestMs: Int64 = 3_600_000
        private var nextAt: Int64 = .min
        private var intervalMs = shortestMs

        /// Returns true when a line may be written now.
        mutating func pass(_ now: Int64) -> Bool {
            guard now >= self.nextAt else { return false }
            // After a silence this long a failure is news again.
            if self.nextAt != .min, now - self.nextAt >= self.intervalMs { self.intervalMs = Self.shortestMs }
            self.nextAt = now + self.intervalMs
            self.intervalMs = min(2 * self.intervalMs, Self.longestMs)
            return true
        }
    }

    private let log: Logger
    private let statuses = Mutex<[String: Status]>([:])
    /// The registry itself tells of a store in trouble; a line a minute says that webhooks wait for it.
    private let store = LogRateLimiter(lines: 1, perMs: 60_000)

    package init(_ log: Logger) { self.log = log }

    /// By target id; nil before its first attempt.
    package subscript(target: String) -> Status? { self.statuses.withLock { $0[target] } }

    /// Whether the target's last attempts failed one after another, so that a success ends an outage. A single failure between successes may be its
    /// delivery's own. True before the first attempt: an outage may have begun before the server started.
    package func isInOutage(_ target: String) -> Bool { self[target].map { $0.isFailing && $0.failed > 1 } ?? true }

    /// How many deliveries wait, by the ids of all targets that were sent to or have some.
    package var waiting: [(target: String, count: Int)] {
        self.statuses.withLock { $0.map { ($0.key, $0.value.waiting) } }.sorted { $0.target < $1.target }
    }

    func counted(_ waiting: [(target: WebhookTarget, count: Int)]) {
        self.statuses.withLock { statuses in
            for id in statuses.keys { statuses[id]?.waiting = 0 }
            for (target, count) in waiting { statuses[target.id, default: Status()].waiting = count }
        }
    }

    /// The oldest deliveries were given up because more than `limit` waited.
    func gaveUpSurplus(_ count: Int, _ target: WebhookTarget, limit: Int, now: Int64) {
        let surplus = self.statuses.withLock { statuses -> Int? in
            var status = statuses[target.id, default: Status()]
            defer { statuses[target.id] = status }
            status.givenUp += count
            status.surplus += count
            guard status.surplusLines.pass(now) else { return nil }
            defer { status.surplus = 0 }
            return status.surplus
        }
        guard let surplus else { return }
        self.log.error(
            "Too many deliveries wait for a webhook: the oldest were given up",
            metadata: Self.metadata(target).merging(["givenUp": "\(surplus)", "limit": "\(limit)"]) { $1 })
    }

    func attempted(_ entry: WebhookDelivery, _ verdict: WebhookVerdict, problem: String?, now: Int64) {
        if verdict == .delivered { self.delivered(entry.target, now) } else { self.failed(entry, verdict, problem ?? "none", now) }
    }

    private func delivered(_ target: WebhookTarget, _ now: Int64) {
        let was = self.statuses.withLock { statuses -> Status? in
            statuses[target.id, default: Status()].deliveredAt = now
            guard let was = statuses[target.id], was.isFailing else { return nil }
            statuses[target.id]?.isFailing = false
            statuses[target.id]?.since = now
            return was
        }
        guard let was, was.isReported else { return }
        self.log.info(
            "A webhook works again",
            metadata: Self.metadata(target).merging([
                "failed": "\(was.failed)", "givenUp": "\(was.givenUp)", "seconds": "\((now - was.since) / 1_000)",
            ]) { $1 })
    }

    private func failed(_ entry: WebhookDelivery, _ verdict: WebhookVerdict, _ problem: String, _ now: Int64) {
        let (status, isDue, logsGivenUp) = self.statuses.withLock { statuses in
            var status = statuses[entry.target.id] ?? Status()
            if !status.isFailing {
                status.isFailing = true
                status.isReported = false
                status.since = now
                status.failed = 0
                status.givenUp = 0
            }
            status.failed += 1
            status.problem = problem
            if verdict == .givenUp { status.givenUp += 1 }
            let isDue = status.lines.pass(now)
            if isDue { status.isReported = true }
            let logsGivenUp = verdict == .givenUp && status.giveUps.pass(now)
            statuses[entry.target.id] = status
            return (status, isDue, logsGivenUp)
        }
        var metadata = Self.metadata(entry.target)
        metadata["problem"] = "\(problem)"
        if isDue, status.failed == 1 {
            self.log.warning("A webhook fails", metadata: metadata)
        } else if isDue {
            let counts: Logger.Metadata = [
                "failed": "\(status.failed)", "givenUp": "\(status.givenUp)", "seconds": "\((now - status.since) / 1_000)",
            ]
            self.log.warning("A webhook still fails", metadata: metadata.merging(counts) { $1 })
        }
        guard logsGivenUp else { return }
        metadata["event"] = "\(entry.event.kind.rawValue)"
        metadata["id"] = "\(entry.event.id)"
        metadata["attempts"] = "\(entry.attempts + 1)"
        metadata["givenUp"] = "\(status.givenUp)"
        if let room = entry.event.roomID { metadata["room"] = "\(room)" }
        self.log.error("A delivery was given up", metadata: metadata)
    }

    private static func metadata(_ target: WebhookTarget) -> Logger.Metadata {
        ["target": "\(target.id)", "url": "\(Self.shown(target.url))"]
    }

    package func storeFailed(_ error: RegistryError) {
        guard self.store.pass(nowMs: LoopSweeper.nowMs) != nil else { return }
        self.log.error("The webhook deliveries cannot be read or written", metadata: ["error": "\(error.storeProblem)"])
    }

    /// Scheme, host and port: the rest of a webhook's URL is often secret. The settings allow no user name.
    package static func shown(_ url: String) -> Substring { WebhookTarget.origin(of: url) }
}
