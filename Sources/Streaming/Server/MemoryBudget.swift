package import Access
import Dispatch
import LibC
package import Listening
package import Logging
import Relay
package import ServerConfiguration
import ServiceLifecycle
package import Support
import Synchronization

/// Keeps the process within `limits.memory`. Any thread.
///
/// ```
/// charged > limit:  cached pictures of streams without viewers, HLS windows that nobody asks for → dropped
///       and still:  new publishes and plays → refused, memory_limit; unknown peers with much unfinished → closed
///         running:  never touched
/// ```
package final class MemoryBudget: Sendable {
    package let ledger: MemoryLedger
    private let state = Mutex(State())
    private let droppers = Mutex<[@Sendable () async -> Void]>([])

    package struct State {
        package var refusals: UInt64 = 0
        package var trims: UInt64 = 0
        package var longestTrimMicros: Int64 = 0
        fileprivate var reclaimedMs: Int64 = .min / 2
    }

    /// Shortest interval between searches for unwatched caches. A flood of refusals must not cause a flood of sweeps. Milliseconds.
    private static let reclaimMs: Int64 = 100

    package init(_ limits: ServerConfig.Limits, system: SystemMemory = SystemMemory()) {
        self.ledger = MemoryLedger(limit: limits.memoryBytes ?? system.usualLimit)
    }

    package func set(_ limits: ServerConfig.Limits, system: SystemMemory = SystemMemory()) {
        self.ledger.set(limit: limits.memoryBytes ?? system.usualLimit)
    }

    package var current: State { self.state.withLock { $0 } }

    /// The refusal for the client and the log.
    package var refusal: AdmissionRefusal {
        let limit = ConfigUnits.size(bytes: self.ledger.limit)
        return AdmissionRefusal(
            reason: .memoryLimit, message: "The server's memory is used up (limits.memory, \(limit)); try again later.", retrySeconds: 5)
    }

    /// Adds a callback that frees memory which nobody needs. Call before the ports open.
    package func whenShort(_ body: @escaping @Sendable () async -> Void) { self.droppers.withLock { $0.append(body) } }

    /// Frees memory that no viewer needs, calling the callbacks one after another in the order in which they were added.
    package func reclaim(nowMs: Int64) async {
        guard self.mayReclaim(nowMs: nowMs) else { return }
        for drop in self.droppers.withLock({ $0 }) { await drop() }
    }

    func countRefusal() { self.state.withLock { $0.refusals += 1 } }

    func trimmed(micros: Int64) {
        self.state.withLock { state in
            state.trims += 1
            state.longestTrimMicros = max(state.longestTrimMicros, micros)
        }
    }

    /// Returns whether another search is due, and counts it.
    func mayReclaim(nowMs: Int64) -> Bool {
        self.state.withLock { state in
            guard nowMs - state.reclaimedMs >= Self.reclaimMs else { return false }
            state.reclaimedMs = nowMs
            return true
        }
    }
}

/// Logs when the budget is used up. Then frees memory that no viewer needs, and returns free memory to the system.
package struct MemoryService: Service {
    private let memory: MemoryBudget
    private let admission: ConnectionAdmission
    private let log: Logger

    package init(_ memory: MemoryBudget, _ admission: ConnectionAdmission, log: Logger) {
        self.memory = memory
        self.admission = admission
        self.log = log
    }

    private static let tick = Duration.seconds(1)
    /// The budget counts as used up until use falls below this share.
    private static let relief = 0.9

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            var wasOver = false
            var schedule = TrimSchedule()
            while !Task.isCancelled {
                wasOver = await self.check(wasOver: wasOver)
                schedule = await self.trim(schedule)
                // Cancelled: the server shuts down.
                do { try await Task.sleep(for: Self.tick) } catch { return }
            }
        }
    }

    private func check(wasOver: Bool) async -> Bool {
        let ledger = self.memory.ledger
        if ledger.isOver { await self.memory.reclaim(nowMs: LoopSweeper.nowMs) }
        let isOver = ledger.isOver || wasOver && Double(ledger.used) > Self.relief * Double(ledger.limit)
        guard isOver != wasOver else { return isOver }
        let metadata: Logger.Metadata = ["used": "\(ledger.used)", "allowed": "\(ledger.limit)", "setting": "limits.memory"]
        if isOver {
            self.log.warning("The memory limit is reached: new publishes and plays are refused", metadata: metadata)
        } else {
            self.log.info("Memory is free again: new publishes and plays are accepted", metadata: metadata)
        }
        return isOver
    }

    // MARK: Trimming

    private static let system = SystemMemory()
    /// A trim locks the C library's heap part by part. A separate thread waits for that, not the cooperative pool.
    private static let queue = DispatchQueue(label: "memory", qos: .utility)

    private func load() -> TrimSchedule.Load? {
        guard let resident = Self.system.resident else { return nil }
        let connections = self.admission.current.connections
        return TrimSchedule.Load(resident: resident, charged: self.memory.ledger.used, connections: connections)
    }

    private func trim(_ schedule: TrimSchedule) async -> TrimSchedule {
        var schedule = schedule
        schedule.sawConnections(self.admission.popHighest())
        guard let trim = mallocTrim, let before = self.load(), schedule.isDue(before, nowMs: LoopSweeper.nowMs) else {
            return schedule
        }
        let micros = await withCheckedContinuation { done in
            Self.queue.async {
                let start = ContinuousClock.now
                _ = trim(0)
                done.resume(returning: Int64((ContinuousClock.now - start) / .microseconds(1)))
            }
        }
        self.memory.trimmed(micros: micros)
        let after = self.load() ?? before
        schedule.trimmed(from: before.resident, to: after, nowMs: LoopSweeper.nowMs)
        self.log.debug(
            "Free memory returned to the system",
            metadata: ["before": "\(before.resident)", "after": "\(after.resident)", "microseconds": "\(micros)"])
        return schedule
    }
}
