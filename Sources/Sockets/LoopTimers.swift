import HeapModule
import Synchronization

/// A task for a time. Made anywhere; runs on its loop.
final class LoopTimer: @unchecked Sendable {
    /// By the clock of NIODeadline.
    let dueNs: UInt64
    /// Touched on the loop only. The argument says whether the time came; otherwise the loop has ended.
    private var body: ((_ isDue: Bool) -> Void)?
    private let isCancelled = Atomic<Bool>(false)

    init(dueNs: UInt64, _ body: @escaping (_ isDue: Bool) -> Void) {
        self.dueNs = dueNs
        self.body = body
    }

    /// From any thread: it does not run unless it has begun.
    func cancel() { self.isCancelled.store(true, ordering: .relaxed) }

    var isDead: Bool { self.isCancelled.load(ordering: .relaxed) }

    /// Gives back what the task holds. Not while the loop's timers are being changed: what goes with it may set others.
    func drop() { self.body = nil }

    func run(isDue: Bool = true) {
        guard !self.isDead, let body = self.body else { return self.drop() }
        self.body = nil
        body(isDue)
    }
}

/// The timers of a loop, the earliest first. The places of cancelled ones are given back when they are half of all. A value.
struct LoopTimers {
    private struct Node: Comparable {
        let dueNs: UInt64
        /// Of two with the same time the older one is first.
        let number: UInt64
        let timer: LoopTimer

        static func < (left: Node, right: Node) -> Bool { (left.dueNs, left.number) < (right.dueNs, right.number) }
        static func == (left: Node, right: Node) -> Bool { left.number == right.number }
    }

    private var heap = Heap<Node>()
    private var added: UInt64 = 0
    private var cancelled = 0

    /// Cancelled ones are not tidied up below this number.
    private static let fewCancelled = 32

    var count: Int { self.heap.count }
    var nextNs: UInt64? { self.heap.min?.dueNs }

    mutating func add(_ timer: LoopTimer) {
        guard !timer.isDead else { return }
        self.added &+= 1
        self.heap.insert(Node(dueNs: timer.dueNs, number: self.added, timer: timer))
    }

    /// Call once for each timer that was cancelled and dropped, even if it has run.
    mutating func wasCancelled() {
        self.cancelled += 1
        guard self.cancelled > Self.fewCancelled, self.cancelled > self.heap.count / 2 else { return }
        self.heap = Heap(self.heap.unordered.filter { !$0.timer.isDead })
        self.cancelled = 0
    }

    /// Removes the first timer that is due. It runs after that, since it may add and cancel others.
    mutating func popDue(nowNs: UInt64) -> LoopTimer? {
        guard let next = self.nextNs, next <= nowNs else { return nil }
        return self.heap.popMin()?.timer
    }

    mutating func removeAll() -> [LoopTimer] {
        defer { self.heap = Heap() }
        return self.heap.unordered.map(\.timer)
    }
}
