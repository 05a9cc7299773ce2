package import Dispatch

/// Runs an actor on a dispatch queue of its own. Blocking work (the store, muxing, files) must not block a thread of the shared pool. Linux lacks
/// `DispatchSerialQueue`, which would do the same.
package final class QueueExecutor: SerialExecutor {
    package let queue: DispatchQueue

    package init(label: String) { self.queue = DispatchQueue(label: label) }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        self.queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
    package func checkIsolated() { dispatchPrecondition(condition: .onQueue(self.queue)) }
}
