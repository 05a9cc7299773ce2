import Rooms
import ServiceLifecycle
import Streaming
import Support

/// Runs the recordings: finishes ended ones, retries failures, deletes old ones. On shutdown it closes all files; the next start then only adds their
/// indexes.
package struct RecordingService: Service {
    private let recordings: Recordings

    package init(_ recordings: Recordings) { self.recordings = recordings }

    private static let tick = Duration.seconds(1)

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
                        await recordings.retention.forget(nowMs: recordings.rooms.now, steadyMs: nowMs)
                        forgetAt = nowMs + recordings.retention.pauseMs
                    }
                    // Cancelled: the server shuts down.
                    do { try await Task.sleep(for: Self.tick) } catch { return }
                }
            }
            await recordings.stopAll()
        }
    }
}
