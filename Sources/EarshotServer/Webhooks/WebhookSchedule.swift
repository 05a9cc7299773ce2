import Rooms

/// Which notices go out now: so many at a time for each target, so that one that does not answer holds up nobody else. A value.
///
/// The registry gives the oldest pending notice of each room and target only; while one is on its way, it stays the oldest. What this adds
/// is to send none twice at a time, also when the list was read before an attempt ended.
struct WebhookSchedule {
    /// Notices on their way to one target; a room's are never more than one of them.
    static let perTarget = 8
    /// To ask the registry for, per target: those on their way are among them.
    static let pageLimit = 3 * perTarget

    /// Targets by id.
    private var inFlight: [Int64: String] = [:]
    private var perTarget: [String: Int] = [:]
    /// Ended since the list was asked for: the list may show them as they were.
    private var endedMeanwhile: Set<Int64> = []
    private var isAsking = false

    var count: Int { self.inFlight.count }

    mutating func listAsked() {
        self.isAsking = true
        self.endedMeanwhile.removeAll()
    }

    /// Those to begin with now. Each must be followed by `ended`.
    mutating func listArrived(_ due: [OutboxEntry]) -> [OutboxEntry] {
        self.isAsking = false
        var begun: [OutboxEntry] = []
        for entry in due where self.inFlight[entry.id] == nil && !self.endedMeanwhile.contains(entry.id) {
            let lane = entry.target.id
            guard self.perTarget[lane, default: 0] < Self.perTarget else { continue }
            self.inFlight[entry.id] = lane
            self.perTarget[lane, default: 0] += 1
            begun.append(entry)
        }
        return begun
    }

    /// The attempt is over and recorded.
    mutating func ended(_ id: Int64) {
        guard let lane = self.inFlight.removeValue(forKey: id) else { return }
        let left = self.perTarget[lane, default: 1] - 1
        self.perTarget[lane] = left > 0 ? left : nil
        if self.isAsking { self.endedMeanwhile.insert(id) }
    }
}

/// What an attempt comes to.
enum WebhookVerdict: Equatable {
    case delivered
    /// Milliseconds since 1970.
    case retry(at: Int64)
    case givenUp

    /// `attempt` counts from 1; `retries` are those after the first. Any 2xx is success.
    init(status: Int?, attempt: Int, isHopeless: Bool, now: Int64, _ config: ServerConfig.Webhooks) {
        if OutboxEntry.isDelivered(status) {
            self = .delivered
        } else if isHopeless || attempt > config.retries {
            self = .givenUp
        } else {
            self = .retry(at: now + config.retryIntervalMs)
        }
    }
}
