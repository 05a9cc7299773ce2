import RoomStore
import Rooms
import ServerConfiguration
import ServiceLifecycle
import Support

/// Runs the recordings: finishes ended ones, retries failures, deletes old ones. On shutdown it closes all files, which leaves only their
/// index to the next start.
package struct RecordingService: Service {
    private let recordings: Recordings

    package init(_ recordings: Recordings) {
        self.recordings = recordings
    }

    private static let tick = Duration.seconds(1)
    /// Longest interval between checks for old recordings. Milliseconds.
    private static let forgetMs: Int64 = 20_000

    package func run() async throws {
        let recordings = self.recordings
        await withDiscardingTaskGroup { group in
            group.addTask { await recordings.finisher.run() }
            await cancelWhenGracefulShutdown {
                var forgetAt: Int64 = 0
                while !Task.isCancelled {
                    let nowMs = LoopSweeper.nowMs
                    await recordings.retry(nowMs: nowMs)
                    if nowMs >= forgetAt {
                        await recordings.forget(nowMs: recordings.rooms.now, steadyMs: nowMs)
                        forgetAt = nowMs + min(Self.forgetMs, max(1_000, recordings.settings.retentionMs / 2))
                    }
                    // Cancelled: the server shuts down.
                    do { try await Task.sleep(for: Self.tick) } catch { return }
                }
            }
            await recordings.stopAll()
        }
    }
}
