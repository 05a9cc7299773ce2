import Rooms
import ServerConfiguration

/// Chooses the deliveries to send now. Limited per target, so that a slow one delays no other. A value.
///
/// The registry lists only the oldest pending delivery of each room and target, even while it is being sent. This ensures that no delivery is
/// sent twice at a time, even if the list was read before an attempt ended.
struct WebhookSchedule {
    /// Concurrent deliveries to one target; at most one of them per room.
    static let perTarget = 8
    /// Deliveries to request from the registry per target, including those in flight.
    static let pageLimit = 3 * perTarget

    /// Target ids by delivery.
    private var inFlight: [Int64: String] = [:]
    private var perTarget: [String: Int] = [:]
    /// Deliveries that ended after the list was requested, which may still contain them.
    private var endedMeanwhile: Set<Int64> = []
    private var isAsking = false

    var count: Int { self.inFlight.count }

    mutating func listAsked() {
        self.isAsking = true
        self.endedMeanwhile.removeAll()
    }

    /// Returns the deliveries to send now; each must be followed by `ended`.
    mutating func listArrived(_ due: [WebhookDelivery]) -> [WebhookDelivery] {
        self.isAsking = false
        var begun: [WebhookDelivery] = []
        for entry in due where self.inFlight[entry.id] == nil && !self.endedMeanwhile.contains(entry.id) {
            let targetID = entry.target.id
            guard self.perTarget[targetID, default: 0] < Self.perTarget else { continue }
            self.inFlight[entry.id] = targetID
            self.perTarget[targetID, default: 0] += 1
            begun.append(entry)
        }
        return begun
    }

    /// Records that an attempt is over and stored.
    mutating func ended(_ id: Int64) {
        guard let targetID = self.inFlight.removeValue(forKey: id) else { return }
        let left = self.perTarget[targetID, default: 1] - 1
        self.perTarget[targetID] = left > 0 ? left : nil
        if self.isAsking { self.endedMeanwhile.insert(id) }
    }
}

/// The outcome of an attempt.
enum WebhookVerdict: Equatable {
    case delivered
    /// Milliseconds since 1970.
    case retry(at: Int64)
    case givenUp

    /// `status` is that of the delivery's attempt that has just ended, which it does not count yet. Any 2xx is success.
    init(status: Int?, of entry: WebhookDelivery, isHopeless: Bool, now: Int64, _ config: ServerConfig.Webhooks) {
        if WebhookDelivery.isDelivered(status) {
            self = .delivered
        } else if !isHopeless, let at = config.retryTime(of: entry, status: status, now: now) {
            self = .retry(at: at)
        } else {
            self = .givenUp
        }
    }
}

extension ServerConfig.Webhooks {
    /// An answer of 4xx, other than "later" (408, 425, 429), refuses this delivery, and others of its room wait behind it: for so long at most.
    private static let refusedMs: Int64 = 3_600_000

    /// When a delivery whose attempt has just failed is due again; nil if it is to be given up.
    fileprivate func retryTime(of entry: WebhookDelivery, status: Int?, now: Int64) -> Int64? {
        if entry.target.format == .tencent {
            return entry.attempts < self.tencentRetries ? now + self.tencentRetryIntervalMs : nil
        }
        // The last try is due when the time ends, however long the wait would be.
        let isRefused = status.map { (400..<500).contains($0) && ![408, 425, 429].contains($0) } ?? false
        let end = entry.queuedAt + (isRefused ? min(self.retryForMs, Self.refusedMs) : self.retryForMs)
        guard now < end else { return nil }
        // Twenty doublings of the shortest interval are more than a day.
        let doubled = self.retryIntervalMs << min(entry.attempts, 20)
        return min(now + max(self.retryIntervalMs, min(doubled, self.maxRetryIntervalMs)), end)
    }
}
