import LibC
import NIOCore
import Relay
import Streaming
import Support
import Synchronization
import TestSupport
import Testing

@testable import EarshotServer
@testable import RoomRegistry

/// A server that reports to a service manager falls silent when a part of it is stuck.
@Suite struct ServiceReportsTests {
    private enum Part: CaseIterable { case loop, registry }

    @Test(arguments: Part.allCases) private func aStuckPartIsSilence(_ part: Part) async throws {
        let socket = try ManagerSocket()
        let values = ["NOTIFY_SOCKET": socket.name, "WATCHDOG_USEC": "15000"]
        let manager = try ServiceManager(environment: { values[$0] }).orThrow()
        try await TestServer.run { server in
            let parts = server.server.parts
            let reports = ServiceReports(manager, parts, stopsWithinMs: 1)
            let task = Task { try await reports.run() }
            defer { task.cancel() }
            func count() -> Int { socket.lines.count { $0 == "WATCHDOG=1" } }
            try await eventually("signs of life") { count() >= 3 }
            // The loops are other tests' servers', too: less than `limits.lag`.
            let stuckMs = part == .loop ? 200 : 1_500
            let isStuck = Mutex(false)
            let stick: @Sendable () -> Void = {
                isStuck.withLock { $0 = true }
                usleep(UInt32(stuckMs * 1_000))
                isStuck.withLock { $0 = false }
            }
            // On a busy machine the part may be free again before the second look: what was seen then says nothing, and it gets stuck again.
            var hasSeen = false
            for _ in 0..<20 where !hasSeen {
                switch part {
                case .loop: try parts.streams.allLoops.first.orThrow().relay.eventLoop.execute(stick)
                case .registry: Task { _ = await parts.rooms.result { _ in stick() } }
                }
                try await eventually("the \(part) to be stuck") { isStuck.withLock { $0 } }
                // A turn that was under way may still be reported, late on a busy machine.
                try await Task.sleep(for: .milliseconds(60))
                let before = count()
                try await Task.sleep(for: .milliseconds(stuckMs / 2))
                let after = count()
                hasSeen = isStuck.withLock { $0 }
                #expect(after <= before + 1 || !hasSeen, "\(part)")
                try await eventually("signs of life again") { !isStuck.withLock { $0 } && count() > after }
            }
            #expect(hasSeen, "the \(part) was free before anybody looked, twenty times")
        }
    }
}
