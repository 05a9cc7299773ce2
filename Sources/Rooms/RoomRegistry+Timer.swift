import Dispatch

/// Deadlines and housekeeping: one timer, set to what is due next.
extension RoomRegistry {
    /// Sets the timer to the next deadline. There is one; an earlier deadline sets it anew.
    func armTimer() {
        let now = self.clock.now()
        if self.housekeepingAt == 0 { self.housekeepingAt = now + Self.housekeepingMs }
        let deadline = (try? self.store.writerRead { try $0.nextDeadline() }) ?? nil
        // A store that takes nothing now is not asked again and again.
        let next = max(min(deadline ?? .max, self.housekeepingAt), self.isFailing ? now + Int64(Self.retrySeconds * 1_000) : .min)
        if let armed = self.armedFor, armed <= next { return }
        self.armedFor = next
        let delay = Double(max(0, next - now)) / 1_000
        self.executor.queue.asyncAfter(deadline: .now() + delay) { [weak self] in self?.assumeIsolated { $0.timerFired(next) } }
    }

    private func timerFired(_ instant: Int64) {
        guard self.isRunning, self.armedFor == instant else { return }
        let now = self.clock.now()
        // The dispatch clock and the registry's need not agree to the millisecond; an injected one stands still.
        guard now >= instant else {
            self.armedFor = nil
            self.executor.queue.asyncAfter(deadline: .now() + 0.05) { [weak self] in
                self?.assumeIsolated { if $0.isRunning { $0.armTimer() } }
            }
            return
        }
        Task {
            await self.runDue()
            self.rearm()
        }
    }

    /// Room time has followed the wall clock.
    func clockMoved(by ms: Int64, _ kicks: [(kick: Kick, paths: [StreamPath])]) {
        self.housekeepingAt += ms
        // The timer counts on by the former time; it fires early or is set anew.
        self.armedFor = nil
        self.kickTable.replace(with: kicks, now: self.clock.now())
    }

    func rearm() {
        self.armedFor = nil
        if self.isRunning { self.armTimer() }
    }

    /// Applies all deadlines that have passed by now, and forgets what is old. The timer does this; tests with a clock of their own do
    /// it by hand.
    package nonisolated func runDue() async {
        while let more = try? await self.result({ try $0.runDue(limit: Self.batch) }).get(), more {}
        await self.keepHouse()
    }

    private func keepHouse() async {
        let now = self.clock.now()
        guard now >= self.housekeepingAt else { return }
        let historyMs = self.settings.historyMs
        let (clock, shares) = (self.clock, self.shares)
        let more = try? await self.result { work in
            try work.store.save(clock.mark())
            return try work.store.forget(
                now: work.now, historyMs: historyMs, limit: Self.batch, shares: shares, steadyMs: clock.steadyMs)
        }.get()
        // In small steps: others must get their turn.
        self.housekeepingAt = now + (more == true ? 100 : Self.housekeepingMs)
    }
}
