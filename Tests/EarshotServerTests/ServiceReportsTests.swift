import Support
import Synchronization
import TestSupport
import Testing

@testable import EarshotServer

@Suite struct ServiceReportsTests {
    private static func manager(_ socket: ManagerSocket, watchdogUs: Int) throws -> ServiceManager {
        let values = ["NOTIFY_SOCKET": socket.name, "WATCHDOG_USEC": "\(watchdogUs)"]
        return try ServiceManager(environment: { values[$0] }).orThrow()
    }

    /// Signs of life come while the proof holds, and stop when it hangs.
    @Test func aHangingProofIsSilence() async throws {
        let socket = try ManagerSocket()
        let hangs = Mutex(false)
        let isHeld = Mutex(false)
        let reports = ServiceReports(
            manager: try Self.manager(socket, watchdogUs: 60_000), stopsWithinMs: { 1 },
            proof: {
                while hangs.withLock({ $0 }) {
                    isHeld.withLock { $0 = true }
                    try await Task.sleep(for: .milliseconds(5))
                }
            }, status: { "fine" })
        let task = Task { try await reports.run() }
        defer { task.cancel() }
        func count() -> Int { socket.lines.count { $0 == "WATCHDOG=1" } }
        try await eventually("signs of life") { count() >= 5 }
        #expect(socket.lines.first == "READY=1")
        hangs.withLock { $0 = true }
        // Until then one may be on its way.
        try await eventually("the proof to hang") { isHeld.withLock { $0 } }
        let before = count()
        try await Task.sleep(for: .milliseconds(300))
        #expect(count() == before)
        hangs.withLock { $0 = false }
        try await eventually("signs of life again") { count() > before }
    }

    /// News is sent, and what is known is not repeated.
    @Test func theStatusIsSentWhenItChanges() async throws {
        let socket = try ManagerSocket()
        let text = Mutex("1 viewer")
        let reports = ServiceReports(
            manager: try Self.manager(socket, watchdogUs: 30_000), stopsWithinMs: { 1 }, proof: {}, status: { text.withLock { $0 } })
        let task = Task { try await reports.run() }
        try await eventually("signs of life") { socket.lines.count { $0 == "WATCHDOG=1" } >= 4 }
        text.withLock { $0 = "2 viewers" }
        try await eventually("the news") { socket.lines.contains("STATUS=2 viewers") }
        #expect(socket.lines.count { $0.hasPrefix("STATUS=") } <= 3)
        task.cancel()
        try await task.value
    }
}
