package import NIOCore

/// An object whose deadlines its loop's ``LoopSweeper`` checks.
package protocol Sweepable: AnyObject {
    /// `nowMs` is the steady clock of ``LoopSweeper``.
    func sweep(nowMs: Int64)
}

/// Checks all deadlines of one event loop with one timer. Cancelling a separate timer would cost a search each time. A server has one sweeper per
/// loop, shared by all objects with deadlines there.
///
/// `@unchecked Sendable`: its `var`s are touched on the event loop only.
package final class LoopSweeper: @unchecked Sendable {
    package let eventLoop: any EventLoop
    private var members: [ObjectIdentifier: any Sweepable] = [:]
    private var timer: RepeatedTask?

    package init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    package static let interval = TimeAmount.milliseconds(250)

    /// Milliseconds of a steady clock.
    package static var nowMs: Int64 { Int64(NIODeadline.now().uptimeNanoseconds / 1_000_000) }

    /// Adds a member. The timer runs while there are members. On the loop.
    package func add(_ member: any Sweepable) {
        self.members[ObjectIdentifier(member)] = member
        guard self.timer == nil else { return }
        self.timer = self.eventLoop.scheduleRepeatedTask(initialDelay: Self.interval, delay: Self.interval) { [weak self] _ in
            self?.sweep()
        }
    }

    package func remove(_ member: any Sweepable) {
        self.members[ObjectIdentifier(member)] = nil
        if self.members.isEmpty {
            self.timer?.cancel()
            self.timer = nil
        }
    }

    private func sweep() {
        let nowMs = Self.nowMs
        // Members may remove themselves during the sweep.
        for member in Array(self.members.values) { member.sweep(nowMs: nowMs) }
    }
}

/// The sweepers of a group's loops. Any thread.
package final class LoopSweepers: Sendable {
    private let all: [ObjectIdentifier: LoopSweeper]

    package init(_ group: any EventLoopGroup) {
        self.all = Dictionary(uniqueKeysWithValues: group.makeIterator().map { (ObjectIdentifier($0), LoopSweeper($0)) })
    }

    /// The loop's sweeper. Loops of another group, as in tests, get an unshared one.
    package func of(_ eventLoop: any EventLoop) -> LoopSweeper { self.all[ObjectIdentifier(eventLoop)] ?? LoopSweeper(eventLoop) }
}
