import Rooms
import Store
import Synchronization

/// The work of the registry's queue: batches of operations, one transaction each.
extension RoomRegistry {
    /// Commits one batch. One whose commit got no answer goes first: nothing may be stored before its fate is known.
    func drain() {
        let kept = self.lost.map(self.resolve) ?? self.commit(self.intake.pop(self.isShared ? 1 : Self.batch))
        if self.isStopping {
            self.giveUp(kept)
        } else if self.lost != nil || !kept.isEmpty {
            // Fails the queued calls, which would otherwise wait behind these facts for long.
            for call in self.intake.putBack(kept) { call.fail(self.failure) }
            return self.retryLater()
        }
        if self.intake.done() { self.scheduleDrain() }
        if self.isRunning { self.armTimer() }
    }

    private func retryLater() {
        self.scheduleDrain(after: Self.retrySeconds)
        if self.isRunning { self.armTimer() }
    }

    /// Fails facts that the store did not take. With a commit in doubt the registry ends without knowing, and stores nothing more.
    private func giveUp(_ facts: [Operation]) {
        for fact in facts { fact.fail(self.failure) }
        guard let lost = self.lost else { return }
        self.lost = nil
        for operation in lost.batch + self.intake.pop(.max) { operation.fail(self.failure) }
    }

    /// A batch that ran, and may be in the store or not. Its calls wait until that is known.
    struct LostBatch {
        let commit: CommitLost
        let batch: [Operation]
        let work: WorkResults
        let completions: [@Sendable () -> Void]
    }

    /// Asks for the fate of such a batch. Returns the facts to retry.
    private func resolve(_ lost: LostBatch) -> [Operation] {
        do {
            let isCommitted = try self.store.wasCommitted(lost.commit)
            self.lost = nil
            guard isCommitted else { return self.failed(lost.batch, lost.commit) }
            self.finish(lost.batch, lost.work, lost.completions)
        } catch let error as CommitForgotten {
            self.lost = nil
            return self.failed(lost.batch, error)
        } catch {
            self.noteFailure(error)
        }
        return []
    }

    /// Runs a batch in one transaction. Where nodes share the store, more operations join it while it lasts: the others wait for its end, so its time
    /// is limited as well as their number. Returns the facts to retry if nothing could be written.
    private func commit(_ first: [Operation]) -> [Operation] {
        guard !first.isEmpty else { return [] }
        var batch = first
        var completions: [@Sendable () -> Void] = []
        var done = WorkResults()
        let shortage = self.settings.disk.shortage
        let beganMs = self.clock.steadyMs
        let holdsDeadlines = self.absence.holdsDeadlines(at: beganMs)
        let began = ContinuousClock.now
        var ran = began
        do {
            try self.store.transaction { store in
                // A transaction without changes would succeed on a full disk.
                if self.isFailing { try store.save(self.clock.mark()) }
                var (next, turn): (Int, ContinuousClock.Instant?) = (0, nil)
                while next < batch.count {
                    let operation = batch[next]
                    next += 1
                    let work = RoomTransaction(
                        store: store, now: operation.now, settings: self.settings, shortage: shortage, holdsDeadlines: holdsDeadlines)
                    do {
                        let completion = try store.savepoint { try operation.run(work) }
                        completions.append(completion)
                        done.add(work)
                    } catch let lost as StoreAccess.TransactionLost {
                        throw lost.cause
                    } catch {
                        if operation.kind.isFact { self.note(error) { $0.lostFacts += 1 } }
                        // Refusals are also answered after the commit: they may depend on what the batch wrote.
                        completions.append { operation.fail(error) }
                        if let deadlines = try work.keepingDeadlines() { done.add(deadlines) }
                    }
                    // The wait for the others' transactions ends with the first operation.
                    let turnBegan = turn ?? .now
                    turn = turnBegan
                    if self.isShared, next == batch.count, next < Self.sharedBatch, .now - turnBegan < self.batchTime {
                        batch += self.intake.pop(1)
                    }
                }
                ran = .now
                try store.announce(&done)
            }
        } catch {
            self.settings.committed(Int64((ContinuousClock.now - began) / .microseconds(1)), false)
            self.absence.commitFailed(began: beganMs)
            guard let commit = error as? CommitLost else { return self.failed(batch, error) }
            self.lost = LostBatch(commit: commit, batch: batch, work: done, completions: completions)
            self.noteFailure(error)
            return []
        }
        let end = ContinuousClock.now
        self.settings.committed(Int64((end - began) / .microseconds(1)), true)
        self.batchTime = min(max((end - ran) * Self.endsPerBatch, Self.sharedTime.lowerBound), Self.sharedTime.upperBound)
        self.finish(batch, done, completions)
        return []
    }

    /// Fails the calls of a batch that was not stored. Returns its facts.
    private func failed(_ batch: [Operation], _ error: any Error) -> [Operation] {
        self.noteFailure(error)
        for operation in batch where operation.kind == .call { operation.fail(self.failure) }
        return batch.filter(\.kind.isFact)
    }

    private func noteFailure(_ error: any Error) {
        self.note(error) { $0.failedCommits += 1 }
        self.failing.store(true, ordering: .relaxed)
        self.wasFenced = self.store.isDisplaced(by: error)
        self.failure = RegistryError(of: error)
    }

    /// Publishes what a stored batch has changed, and answers its callers.
    private func finish(_ batch: [Operation], _ done: WorkResults, _ completions: [@Sendable () -> Void]) {
        self.failing.store(false, ordering: .relaxed)
        self.absence.committed(at: self.clock.steadyMs)
        self.counted.withLock {
            $0.commits += 1
            $0.operations += batch.count
        }
        for failure in done.failures { self.note(failure) { $0.lostFacts += 1 } }
        self.publish(done)
        for completion in completions { completion() }
    }

    private func note(_ error: any Error, _ count: (inout Counters) -> Void) {
        let text = RegistryError(of: error).storeProblem
        self.counted.withLock {
            count(&$0)
            $0.lastFailure = text
        }
    }

    /// Carries out what a batch of this node has changed, behind what other nodes changed before it.
    func publish(_ done: WorkResults) {
        // One that was in doubt may come late.
        guard let signal = done.signal, signal > self.lastSignal else { return self.apply(done) }
        self.catchUp(before: signal)
        guard self.lastSignal == signal - 1 else { return self.unpublished.append(done) }
        self.lastSignal = signal
        self.apply(done)
    }

    func apply(_ done: WorkResults) {
        self.playTable.apply(done.playChanges)
        for name in done.devices { self.devices.add(name) }
        self.kickTable.forget(done.gone)
        self.kickTable.apply(done.kicks, now: self.clock.now())
        guard !done.outcomes.isEmpty else { return }
        for case .cut(let path, let sequence, _, _) in done.outcomes { self.runningPushes.cut(path, sequence) }
        self.lastEvent = max(self.lastEvent, done.lastEvent ?? 0)
        let body = self.listener.withLock { $0.body }
        body(done.outcomes)
    }
}
