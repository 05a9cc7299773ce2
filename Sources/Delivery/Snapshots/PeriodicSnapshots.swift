import FFmpeg
import Logging
import Media
import NIOCore
import Relay
import Rooms
import ServerConfiguration
import ServiceLifecycle
import Support

/// Takes snapshots of live streams at the configured intervals, stores them and reports them.
///
/// An actor without its own thread: ``SnapshotMaker`` decodes, one picture at a time, and pool threads write the files. A stream without a
/// new keyframe since its last snapshot gets none.
actor PeriodicSnapshots {
    private let core: ServerCore
    private let settings: ServerConfig.Snapshots
    private let files: SnapshotFiles
    private var streams: [String: Progress] = [:]
    private var forgetAtMs: Int64 = 0
    /// Limits deletion by age; ``SnapshotBounds`` apply at once.
    private var share = RetentionShare()

    private struct Progress {
        /// Milliseconds of the steady clock.
        var dueMs: Int64
        /// Stream and timestamp of the last snapshot's keyframe.
        weak var stream: Relay.Stream?
        var timestamp: Int64?
        /// The log already says that its keyframes give no picture.
        var isTold = false
    }

    private static let forgetMs: Int64 = 20_000
    private static let forgetBatch = 100

    init(core: ServerCore) {
        self.core = core
        self.settings = core.config.snapshots
        self.files = SnapshotFiles(core.config)
    }

    /// Takes the snapshots that are due. Call about twice a second.
    func look(nowMs: Int64) async {
        var live: [String: PushGrant] = [:]
        // A ghost and its successor have a grant each.
        for grant in self.core.activePushes.all where self.intervalMs(of: grant.path.app) > 0 { live[grant.path.description] = grant }
        self.streams = self.streams.filter { live[$0.key] != nil }
        for (path, grant) in live.sorted(by: { $0.key < $1.key }) where nowMs >= self.streams[path]?.dueMs ?? 0 {
            guard !Task.isCancelled else { return }
            await self.take(grant, nowMs: nowMs)
        }
        guard nowMs >= self.forgetAtMs else { return }
        self.forgetAtMs = nowMs + Self.forgetMs
        await self.core.snapshots.forget(nowMs: nowMs)
        if self.settings.retentionMs > 0 { await self.forget(steadyMs: nowMs) }
    }

    private func intervalMs(of app: String) -> Int64 { self.settings.intervalByAppMs[app] ?? self.settings.intervalMs }

    private func take(_ grant: PushGrant, nowMs: Int64) async {
        let path = grant.path.description
        var progress = self.streams[path] ?? Progress(dueMs: nowMs)
        let found = await self.core.onHome(of: path) { home, stream in
            home.keyframe(of: stream).map { SnapshotMaker.Source(stream: stream, header: $0.header, keyframe: $0.keyframe) }
        }
        // The stream stays due until it has a new keyframe.
        guard let found, let source = found,
            source.stream !== progress.stream || source.keyframe.timestamp != progress.timestamp
        else { return }
        progress.stream = source.stream
        progress.timestamp = source.keyframe.timestamp
        progress.dueMs = nowMs + self.intervalMs(of: grant.path.app)
        let width = self.settings.width > 0 ? self.settings.width : nil
        do {
            let jpeg = try await self.core.snapshots.jpeg(of: path, source, width: width, nowMs: LoopSweeper.nowMs)
            try await self.file(jpeg, of: grant)
            progress.isTold = false
        } catch {
            if !progress.isTold {
                self.core.log.warning("No snapshot was taken", metadata: ["stream": "\(grant.path)", "error": "\(error)"])
            }
            progress.isTold = true
        }
        self.streams[path] = progress
    }

    private func file(_ jpeg: ByteBuffer, of grant: PushGrant) async throws {
        let bytes = Int64(jpeg.readableBytes)
        guard let size = JPEGSize(jpeg), self.settings.quotaBytes == 0 || bytes <= self.settings.quotaBytes else { return }
        let id = RecordingWriter.randomID()
        let takenAt = self.core.rooms.now
        let file = RecordingFolder.file(of: grant.path, startedAt: takenAt, id: id, type: "jpg")
        let recordings = self.core.recordings
        let files = self.files
        if let failure = await recordings.onDisk({ files.save(jpeg, as: file) }) { throw failure }
        let snapshot = SnapshotRecord(
            id: id, path: grant.path, roomID: grant.roomID, slot: grant.slot, file: file, takenAt: takenAt, bytes: bytes,
            width: size.width, height: size.height)
        do {
            let bounds = SnapshotBounds(perStream: self.settings.keep, bytes: Int64(self.settings.quotaBytes))
            await self.remove(try await self.core.rooms.snapshotTaken(snapshot, bounds))
        } catch {
            // The index does not know the file.
            await self.remove([snapshot])
            throw error
        }
    }

    private func forget(steadyMs: Int64) async {
        do {
            let old = self.core.rooms.now - self.settings.retentionMs
            let held = try await self.core.rooms.snapshotCount()
            let allowed = self.share.allowance(held: held, retentionMs: self.settings.retentionMs, steadyMs: steadyMs)
            guard allowed > 0 else { return }
            let forgotten = try await self.core.rooms.forgetSnapshots(takenBefore: old, limit: min(Self.forgetBatch, allowed))
            self.share.spend(forgotten.count)
            await self.remove(forgotten)
        } catch {
            self.core.log.error("Old snapshots could not be deleted", metadata: ["error": "\(error)"])
        }
    }

    private func remove(_ snapshots: [SnapshotRecord]) async {
        guard !snapshots.isEmpty else { return }
        let folder = self.files.folder
        let failure = await self.core.recordings.onDisk { () -> RecordingFolder.Failure? in
            var failure: RecordingFolder.Failure?
            for snapshot in snapshots {
                do throws(RecordingFolder.Failure) { try folder.remove(snapshot.file) } catch { failure = error }
            }
            return failure
        }
        if let failure { self.core.log.error("A snapshot's file could not be removed", metadata: ["error": "\(failure)"]) }
    }
}

/// Runs the periodic snapshots as a service.
package struct SnapshotService: Service {
    package let core: ServerCore

    package init(core: ServerCore) {
        self.core = core
    }

    private static let tick = Duration.milliseconds(500)

    package func run() async throws {
        let snapshots = PeriodicSnapshots(core: self.core)
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                await snapshots.look(nowMs: LoopSweeper.nowMs)
                // Cancelled: the server shuts down.
                do { try await Task.sleep(for: Self.tick) } catch { return }
            }
        }
    }
}
