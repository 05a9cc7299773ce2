import Access
import ControlAPI
import HTTPAPI
import Listening
import Logging
import ServiceLifecycle
import Streaming
import Support
import UnixSignals

/// Announces that the server runs: a group starts its services once its signals are trapped.
struct AnnounceService: Service {
    let announce: @Sendable () -> Void

    func run() async throws {
        self.announce()
        // Ends as well when the group cancels what takes too long.
        try? await gracefulShutdown()
    }
}

/// Ends a process whose shutdown takes too long. Not in ``Server/services``, because other programs that run those use the process for other things
/// too.
struct WatchdogService: Service {
    private static let hardLimit = Duration.milliseconds(4_800)
    /// Ends the process. Runs on a thread of its own.
    let end: @Sendable () -> Void

    init(_ end: @escaping @Sendable () -> Void) { self.end = end }

    func run() async throws {
        try await gracefulShutdown()
        WatchdogThread.run(after: Self.hardLimit, self.end)
    }
}

/// Logs once a second, and at the end, how many ends of connections and refused calls had no line of their own.
struct CloseLogService: Service {
    let closes: CloseLog
    let auditor: Auditor

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                try? await Task.sleep(for: .seconds(1))
                self.report(nowMs: LoopSweeper.nowMs)
            }
        }
        self.report(nowMs: nil)
    }

    private func report(nowMs: Int64?) {
        self.closes.report(nowMs: nowMs)
        self.auditor.report(nowMs: nowMs)
    }
}

/// Notifies the clients when the server shuts down.
struct DrainService: Service {
    let parts: ServerParts
    private static let lastWords = Duration.milliseconds(300)

    func run() async throws {
        try await gracefulShutdown()
        self.parts.log.info("Shutting down: notifying the clients")
        await self.parts.streams.drain()
        // Gives the last bytes time to leave; idle sockets close earlier by themselves.
        try await Task.sleep(for: Self.lastWords)
        self.parts.stop()
        await self.parts.rules.finishReports(within: .seconds(1))
    }
}

extension CertificateStore {
    /// Logs a certificate that has expired or soon will.
    func warn(_ log: Logger) { for warning in self.warnings(nowMs: WallClock.ms) { log.warning("\(warning)") } }
}
