import FFmpeg
package import Logging
import Media
import NIOCore
import Relay
import Rooms
package import ServerConfiguration
import ServiceLifecycle
package import Streaming
package import Support

/// Takes snapshots of live streams at the configured intervals, stores them and reports them.
///
/// An actor without its own thread: ``SnapshotMaker`` decodes, one picture at a time, and pool threads write the files. A stream without a
/// new keyframe since its last snapshot gets none.
actor PeriodicSnapshots {
    private let rooms: any RecordingIndex
    private let streams: LiveStreams
    private let pushes: ActivePushes
    private let maker: SnapshotMaker
    private let log: Logger
    private let config: Live<ServerConfig>
    private let files: SnapshotFiles
    private var progress: NameTable<Progress> = [:]
    private var forgetAtMs: Int64 = 0
    /// Limits deletion by age; ``SnapshotBounds`` apply at once.
    private var share = RetentionShare()

    private struct Progress {
        /// Time of the last snapshot, in milliseconds of the steady clock; nil before the first.
        var takenMs: Int64?
        /// Stream and timestamp of the last snapshot's keyframe.
        weak var stream: Relay.Stream?
        var timestamp: Int64?
        /// The log already reports that its keyframes cannot be decoded to a picture.
        var isReported = false
    }

    private static let forgetMs: Int64 = 20_000
    private static let forgetBatch = 100

    init(
        _ config: Live<ServerConfig>, _ rooms: any RecordingIndex, _ streams: LiveStreams, _ pushes: ActivePushes, _ maker: SnapshotMaker,
        log: Logger
    ) {
        self.rooms = rooms
        self.streams = streams
        self.pushes = pushes
        self.maker = maker
        self.log = log
        self.config = config
        self.files = SnapshotFiles(config)
    }

    private var settings: ServerConfig.Snapshots { self.config.snapshots }

    /// Takes the snapshots that are due. Call about twice a second.
    func captureDue(nowMs: Int64) async {
        var live: NameTable<PushGrant> = [:]
        // A ghost and its successor have a grant each.
        for grant in self.pushes.all where self.intervalMs(of: grant.path.app) > 0 { live[grant.path.description] = grant }
        self.progress = self.progress.filter { live[$0.key] != nil }
        for (path, grant) in live.sorted(by: { $0.key < $1.key }) where self.isDue(path, grant, nowMs) {
            guard !Task.isCancelled else { return }
            await self.capture(grant, nowMs: nowMs)
        }
        guard nowMs >= self.forgetAtMs else { return }
        self.forgetAtMs = nowMs + Self.forgetMs
        await self.maker.forget(nowMs: nowMs)
        if self.settings.retentionMs > 0 { await self.forget(steadyMs: nowMs) }
    }

    private func isDue(_ path: String, _ grant: PushGrant, _ nowMs: Int64) -> Bool {
        self.progress[path]?.takenMs.map { nowMs >= $0 + self.intervalMs(of: grant.path.app) } ?? true
    }

    private func intervalMs(of app: String) -> Int64 { self.settings.intervalByAppMs[app] ?? self.settings.intervalMs }

    private func capture(_ grant: PushGrant, nowMs: Int64) async {
        let path = grant.path.description
        var progress = self.progress[path] ?? Progress()
        let found = await self.streams.onHome(of: path) { home, stream in
            home.keyframe(of: stream).map { SnapshotMaker.Source(stream: stream, header: $0.header, keyframe: $0.keyframe) }
        }
        // The stream stays due until it has a new keyframe.
        guard let found, let source = found,
            source.stream !== progress.stream || source.keyframe.timestamp != progress.timestamp
        else { return }
        progress.stream = source.stream
        progress.timestamp = source.keyframe.timestamp
        progress.takenMs = nowMs
        let width = self.settings.width > 0 ? self.settings.width : nil
        do {
            let jpeg = try await self.maker.jpeg(of: path, source, width: width, nowMs: LoopSweeper.nowMs)
            try await self.file(jpeg, of: grant)
            progress.isReported = false
        } catch {
            if !progress.isReported {
                self.log.warning("No snapshot was taken", metadata: ["stream": "\(grant.path)", "error": "\(error)"])
            }
            progress.isReported = true
        }
        self.progress[path] = progress
    }

    private func file(_ jpeg: ByteBuffer, of grant: PushGrant) async throws {
        let bytes = Int64(jpeg.readableBytes)
        guard let size = JPEGSize(jpeg), self.settings.quotaBytes == 0 || bytes <= self.settings.quotaBytes else { return }
        let id = RecordingWriter.randomID()
        let takenAt = self.rooms.now
        let file = RecordingFolder.file(of: grant.path, startedAt: takenAt, id: id, type: "jpg")
        let files = self.files
        if let failure = await DiskWork.run({ files.save(jpeg, as: file) }) { throw failure }
        let snapshot = SnapshotRecord(
            id: id, path: grant.path, roomID: grant.roomID, slot: grant.slot, file: file, takenAt: takenAt, bytes: bytes,
            width: size.width, height: size.height)
        do {
            let bounds = SnapshotBounds(perStream: self.settings.keep, bytes: Int64(self.settings.quotaBytes))
            await self.remove(try await self.rooms.snapshotTaken(snapshot, bounds))
        } catch {
            // The index does not have the file.
            await self.remove([snapshot])
            throw error
        }
    }

    private func forget(steadyMs: Int64) async {
        do {
            let old = self.rooms.now - self.settings.retentionMs
            let held = try await self.rooms.snapshotCount()
            let allowed = self.share.allowance(held: held, retentionMs: self.settings.retentionMs, steadyMs: steadyMs)
            guard allowed > 0 else { return }
            let forgotten = try await self.rooms.forgetSnapshots(takenBefore: old, limit: min(Self.forgetBatch, allowed))
            self.share.spend(forgotten.count)
            await self.remove(forgotten)
        } catch {
            self.log.error("Old snapshots could not be deleted", metadata: ["error": "\(error)"])
        }
    }

    private func remove(_ snapshots: [SnapshotRecord]) async {
        guard !snapshots.isEmpty else { return }
        let folder = self.files.folder
        let failure = await DiskWork.run { () -> RecordingFolder.Failure? in
            var failure: RecordingFolder.Failure?
            for snapshot in snapshots {
                do throws(RecordingFolder.Failure) { try folder.remove(snapshot.file) } catch { failure = error }
            }
            return failure
        }
        if let failure { self.log.error("A snapshot's file could not be removed", metadata: ["error": "\(failure)"]) }
    }
}

/// Runs the periodic snapshots as a service.
package struct SnapshotService: Service {
    private let snapshots: PeriodicSnapshots

    package init(
        _ config: Live<ServerConfig>, _ rooms: any RecordingIndex, _ streams: LiveStreams, _ pushes: ActivePushes, _ maker: SnapshotMaker,
        log: Logger
    ) {
        self.snapshots = PeriodicSnapshots(config, rooms, streams, pushes, maker, log: log)
    }

    private static let tick = Duration.milliseconds(500)

    package func run() async throws {
        let snapshots = self.snapshots
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                await snapshots.captureDue(nowMs: LoopSweeper.nowMs)
                // Cancelled: the server shuts down.
                do { try await Task.sleep(for: Self.tick) } catch { return }
            }
        }
    }
}
