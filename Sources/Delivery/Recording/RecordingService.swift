import Rooms
import ServerConfiguration
import ServiceLifecycle
import Support

/// Runs the recordings: finishes ended ones, retries failures, deletes old ones. On shutdown it closes all files, which leaves only their
/// index to the next start.
package struct RecordingService: Service {
    package let core: ServerCore

    package init(core: ServerCore) {
        self.core = core
    }

    private static let tick = Duration.seconds(1)
    /// Longest interval between checks for old recordings. Milliseconds.
    private static let forgetMs: Int64 = 20_000

    package func run() async throws {
        let recordings = self.core.recordings
        await withDiscardingTaskGroup { group in
            group.addTask { await recordings.finisher.run() }
            await cancelWhenGracefulShutdown {
                var forgetAt: Int64 = 0
                while !Task.isCancelled {
                    let nowMs = LoopSweeper.nowMs
                    await recordings.retry(nowMs: nowMs, core: self.core)
                    if nowMs >= forgetAt {
                        await recordings.forget(nowMs: self.core.rooms.now, steadyMs: nowMs)
                        forgetAt = nowMs + min(Self.forgetMs, max(1_000, self.core.config.recording.retentionMs / 2))
                    }
                    // Cancelled: the server shuts down.
                    do { try await Task.sleep(for: Self.tick) } catch { return }
                }
            }
            await recordings.stopAll()
        }
    }
}
