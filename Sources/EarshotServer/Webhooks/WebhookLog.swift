import Logging
import Rooms
import Synchronization

/// The dispatcher's lines: one when a target begins to fail, one when it is well again, one for a notice that is given up. Never a retry,
/// never more of a URL than its origin. Any thread.
final class WebhookLog: Sendable {
    private struct Failing {
        let since: Int64
        var attempts: Int
    }

    private let log: Logger
    private let failing = Mutex<[String: Failing]>([:])
    private let giveUps = FloodGate()
    private let store = FloodGate()

    init(_ log: Logger) { self.log = log }

    func attempted(_ entry: OutboxEntry, _ verdict: WebhookVerdict, problem: String?, now: Int64) {
        let lane = WebhookSchedule.lane(of: entry.target)
        let target = Self.shown(entry.target.url)
        if verdict == .delivered {
            guard let was = self.failing.withLock({ $0.removeValue(forKey: lane) }) else { return }
            self.log.info(
                "A webhook target is well again",
                metadata: ["target": "\(target)", "failed": "\(was.attempts)", "seconds": "\((now - was.since) / 1_000)"])
            return
        }
        let isFirst = self.failing.withLock { failing in
            failing[lane, default: Failing(since: now, attempts: 0)].attempts += 1
            return failing[lane]?.attempts == 1
        }
        if isFirst {
            self.log.warning("A webhook target fails", metadata: ["target": "\(target)", "problem": "\(problem ?? "none")"])
        }
        guard verdict == .givenUp, let held = self.giveUps.pass(nowMs: now) else { return }
        var metadata: Logger.Metadata = [
            "target": "\(target)", "event": "\(entry.event.kind.rawValue)", "id": "\(entry.event.id)", "attempts": "\(entry.attempts + 1)",
            "problem": "\(problem ?? "none")",
        ]
        if let room = entry.event.roomID { metadata["room"] = "\(room)" }
        if held > 0 { metadata["linesHeldBack"] = "\(held)" }
        self.log.error("A webhook was given up", metadata: metadata)
    }

    func storeFailed(_ error: RegistryError) {
        guard self.store.pass(nowMs: LoopSweeper.nowMs) != nil else { return }
        self.log.error("The webhook outbox cannot be read or written", metadata: ["error": "\(error)"])
    }

    /// Scheme, host and port: the rest of a webhook's URL is often its secret. The settings allow no user name.
    static func shown(_ url: String) -> Substring {
        guard let colon = url.firstIndex(of: ":") else { return url.prefix { $0 != "/" && $0 != "?" && $0 != "#" } }
        let host = url[colon...].dropFirst().drop { $0 == "/" }
        return url[..<(host.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? url.endIndex)]
    }
}
