import Dispatch
import Rooms
import Store
import Support
import Synchronization

/// Deadlines and housekeeping, run by one timer set to the next due instant.
extension RoomRegistry {
    /// Sets the only timer to the next deadline. An earlier deadline replaces it.
    func armTimer() {
        // A failing store is tried until it takes writes, by every node: all must know when it is back.
        guard self.isKeeper || self.isFailing else { return }
        let now = self.clock.now()
        if self.housekeepingAt == 0 { self.housekeepingAt = now + Self.housekeepingMs }
        let next = self.isFailing ? now + Int64(Self.retrySeconds * 1_000) : min(self.nextDeadline(now) ?? .max, self.housekeepingAt)
        if let armed = self.armedFor, armed <= next { return }
        self.armedFor = next
        let delay = Double(max(0, next - now)) / 1_000
        self.executor.queue.asyncAfter(deadline: .now() + delay) { [weak self] in self?.assumeIsolated { $0.timerFired(next) } }
    }

    /// When deadlines are to be applied next. Those that passed while the store was away wait a little.
    private func nextDeadline(_ now: Int64) -> Int64? {
        let deadline = (try? self.store.writerRead { try $0.nextDeadline() }) ?? nil
        return deadline.map { max($0, now + self.absence.waitMs(at: self.clock.steadyMs)) }
    }

    private func timerFired(_ instant: Int64) {
        guard self.isRunning, self.armedFor == instant else { return }
        let now = self.clock.now()
        // The dispatch clock may differ from the registry's by milliseconds; an injected clock stands still.
        guard now >= instant else {
            self.armedFor = nil
            self.executor.queue.asyncAfter(deadline: .now() + 0.05) { [weak self] in
                self?.assumeIsolated { if $0.isRunning { $0.armTimer() } }
            }
            return
        }
        // Once for each instant; nothing is armed before this is done.
        self.armedFor = .min
        Task {
            if self.isFailing { await self.tryToWrite() } else if self.isKeeper { await self.runDue() }
            self.rearm()
        }
    }

    /// Adjusts what depends on room time after it followed the wall clock.
    func clockMoved(by ms: Int64, _ kicks: [(kick: Kick, paths: [StreamPath])]) {
        self.housekeepingAt += ms
        // The pending timer counts by the former time and is ignored; the next `armTimer()` sets another.
        self.armedFor = nil
        self.kickTable.replace(with: kicks, now: self.clock.now())
    }

    func rearm() {
        self.armedFor = nil
        if self.isRunning { self.armTimer() }
    }

    /// Applies all deadlines passed by now and forgets old history. The timer calls this; tests with their own clock call it themselves.
    package nonisolated func runDue() async {
        // Deadlines must not be the first that the store takes after it was away.
        if self.failing.load(ordering: .relaxed) { await self.tryToWrite() }
        while let more = try? await self.result({ try $0.runDue(limit: Self.batch) }).get(), more {}
        await self.keepHouse()
    }

    private nonisolated func tryToWrite() async { _ = await self.result { _ in } }

    private func keepHouse() async {
        let now = self.clock.now()
        guard now >= self.housekeepingAt else { return }
        let historyMs = self.settings.historyMs
        let (clock, shares, audit) = (self.clock, self.shares, self.settings.audit)
        let more = try? await self.result { work in
            try work.store.save(clock.mark())
            let lines = try work.store.forgetAudit(audit, now: work.now, limit: Self.batch, shares, steadyMs: clock.steadyMs)
            let isMore = try work.store.forget(
                now: work.now, historyMs: historyMs, limit: Self.batch, shares: shares, steadyMs: clock.steadyMs)
            let signals = work.store.node == nil ? 0 : try work.store.forgetSignals(limit: Self.batch)
            return isMore || max(lines, signals) >= Self.batch
        }.get()
        // Works in small steps, so that other operations run in between.
        self.housekeepingAt = now + (more == true ? 100 : Self.housekeepingMs)
    }
}
