import LibC
import NIOCore
import Synchronization
import TestSupport
import Testing

@testable import Sockets

/// Tasks, timers and the end of a loop.
@Suite(.timeLimit(.minutes(1))) struct SocketLoopTests {
    private static func with(_ body: (SocketLoop) async throws -> Void) async throws {
        let loop = try SocketLoop(name: "test")
        do {
            try await body(loop)
        } catch {
            loop.end()
            throw error
        }
        loop.end()
    }

    private final class Lists: Sendable { let all = Mutex<[[Int]]>(Array(repeating: [], count: 8)) }

    /// Tasks of many threads each run once, those of one thread in their order; a sleeping loop wakes for each.
    @Test func tasksRunOnceAndInOrder() async throws {
        try await Self.with { loop in
            let seen = Lists()
            await withTaskGroup(of: Void.self) { group in
                for source in 0..<8 {
                    group.addTask {
                        for number in 0..<2_000 {
                            loop.execute { seen.all.withLock { $0[source].append(number) } }
                            if number % 500 == 0 { try? await Task.sleep(for: .milliseconds(2)) }
                        }
                    }
                }
            }
            try await loop.submit {}.get()
            #expect(seen.all.withLock { $0 } == Array(repeating: Array(0..<2_000), count: 8))
        }
    }

    @Test func itKnowsItsThread() async throws {
        try await Self.with { loop in
            #expect(!loop.inEventLoop)
            let isInside = try await loop.submit { loop.inEventLoop }.get()
            #expect(isInside)
            struct Wrong: Error {}
            let failing: EventLoopFuture<Int> = loop.submit { throw Wrong() }
            await #expect(throws: Wrong.self) { _ = try await failing.get() }
        }
    }

    /// A task that adds tasks for ever does not keep the loop from its timers.
    @Test func tasksThatAddTasksLeaveTimeForTimers() async throws {
        try await Self.with { loop in
            let isOver = Atomic<Bool>(false)
            @Sendable func again() { if !isOver.load(ordering: .relaxed) { loop.execute { again() } } }
            again()
            try await loop.scheduleTask(in: .milliseconds(5)) { isOver.store(true, ordering: .relaxed) }.futureResult.get()
        }
    }

    /// Long work in parts: sockets, timers and tasks come in between.
    @Test func workInPartsLeavesTurnsToOthers() async throws {
        try await Self.with { loop in
            final class Work: @unchecked Sendable {
                var parts = 0
                var others: [Int] = []
            }
            let work = Work()
            @Sendable func part() {
                work.parts += 1
                if work.parts % 10 == 0 { loop.execute { work.others.append(work.parts) } }
                if work.parts < 200 { loop.next { part() } }
            }
            try await loop.submit { part() }.get()
            try await eventually("the end") { try await loop.submit { work.others.count == 20 }.get() }
            let others = try await loop.submit { work.others }.get()
            #expect(others == Array(stride(from: 10, through: 200, by: 10)))
        }
    }

    @Test func timersComeAtTheirTime() async throws {
        try await Self.with { loop in
            let start = NIODeadline.now()
            let at = try await loop.scheduleTask(in: .milliseconds(30)) { NIODeadline.now() }.futureResult.get()
            #expect(at - start >= .milliseconds(30))
            // One that is set while the loop sleeps until a later one.
            let late = loop.scheduleTask(in: .hours(1)) {}
            try await loop.scheduleTask(in: .milliseconds(1)) {}.futureResult.get()
            late.cancel()
            await #expect(throws: EventLoopError.self) { try await late.futureResult.get() }
            let count = Mutex(0)
            let repeated = loop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(1)) { task in
                count.withLock { $0 += 1 }
                if count.withLock({ $0 }) == 5 { task.cancel() }
            }
            try await eventually("five turns") { count.withLock { $0 } >= 5 }
            try await loop.scheduleTask(in: .milliseconds(10)) {}.futureResult.get()
            #expect(count.withLock { $0 } == 5)
            _ = repeated
        }
    }

    /// The group deals its loops out in turn.
    @Test func theGroupTakesTurns() throws {
        let group = try SocketLoopGroup(loops: 3)
        let loops = (0..<6).map { _ in ObjectIdentifier(group.next()) }
        #expect(Set(loops.prefix(3)).count == 3 && Array(loops.prefix(3)) == Array(loops.suffix(3)))
        #expect(group.makeIterator().map { ObjectIdentifier($0) } == group.loops.map { ObjectIdentifier($0) })
        try group.syncShutdownGracefully()
    }
}
