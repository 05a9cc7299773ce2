import Dispatch

/// Runs an actor on a dispatch queue of its own: the store blocks, and must not block a thread of the shared pool.
/// Linux has no `DispatchSerialQueue`, which would be this.
final class RegistryQueue: SerialExecutor {
    let queue: DispatchQueue

    init(label: String) { self.queue = DispatchQueue(label: label) }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        self.queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
    func checkIsolated() { dispatchPrecondition(condition: .onQueue(self.queue)) }
}
