import FFmpeg
import LibC
import Logging
import NIOPosix
import Rooms
import Synchronization

/// Makes ended recordings seekable, one at a time, on a thread of low priority.
///
/// Any thread. Stopping or killing it loses nothing: a file is replaced only when its successor is complete and on disk, and recordings not
/// reported as finished are finished at the next start.
final class RecordingFinisher: Sendable {
    private let folder: RecordingFolder
    private let budget: RecordingBudget
    private let rooms: any RecordingIndex
    private let log: Logger
    private let ids: AsyncStream<String>
    private let queue: AsyncStream<String>.Continuation
    private let isStopping = Atomic<Bool>(false)
    private let busy = Mutex<Set<String>>([])

    enum Verdict: Sendable, Equatable {
        case finished(bytes: Int64, durationMs: Int64)
        /// The file exists, still in fragments.
        case kept(bytes: Int64, why: String)
        case missing
        /// The file has no complete fragment.
        case empty
        case cancelled
    }

    init(folder: RecordingFolder, budget: RecordingBudget, rooms: any RecordingIndex, log: Logger) {
        self.folder = folder
        self.budget = budget
        self.rooms = rooms
        self.log = log
        // Unbounded: holds one id per ended recording.
        (self.ids, self.queue) = AsyncStream.makeStream()
    }

    func add(_ id: String) {
        _ = self.busy.withLock { $0.insert(id) }
        self.queue.yield(id)
    }

    /// Whether this recording is queued or being finished.
    func isBusy(with id: String) -> Bool { self.busy.withLock { $0.contains(id) } }

    /// Whether no recording waits.
    var isIdle: Bool { self.busy.withLock { $0.isEmpty } }

    /// Ends ``run()`` and leaves the file in progress as it is.
    func stop() {
        self.isStopping.store(true, ordering: .relaxed)
        self.queue.finish()
    }

    /// Runs until ``stop()``.
    func run() async {
        let threads = NIOThreadPool(numberOfThreads: 1)
        threads.start()
        // On Linux each thread has its own priority.
        threads.submit { _ in _ = setpriority(Int32(PRIO_PROCESS.rawValue), 0, 10) }
        for await id in self.ids {
            if self.isStopping.load(ordering: .relaxed) { break }
            await self.finish(id, on: threads)
            _ = self.busy.withLock { $0.remove(id) }
        }
        // The thread is idle by now.
        try? await threads.shutdownGracefully()
    }

    private func finish(_ id: String, on threads: NIOThreadPool) async {
        do {
            guard let recording = try await self.rooms.recording(id), recording.state == .finishing || recording.state == .failed else {
                return
            }
            let verdict = try await threads.runIfActive { self.remux(recording) }
            await self.report(recording, verdict)
        } catch {
            self.log.error("A recording could not be finished", metadata: ["id": "\(id)", "error": "\(error)"])
        }
    }

    func remux(_ recording: Recording) -> Verdict {
        guard let bytes = self.folder.size(of: recording.file) else { return .missing }
        let path = self.folder.absolute(recording.file)
        // A leftover of an interrupted attempt takes the space that this one needs.
        unlink(path + ".tmp")
        guard self.budget.hasRoomForCopy(of: bytes) else { return .kept(bytes: bytes, why: "the disk has no room for a copy") }
        do throws(FFmpegError) {
            let finished = try MP4Finisher.finish(path, to: path) { _, _ in !self.isStopping.load(ordering: .relaxed) }
            chmod(path, 0o600)
            return .finished(bytes: finished.bytes, durationMs: finished.durationMs)
        } catch {
            switch error {
            case .cancelled: return .cancelled
            case .media:
                // Already finished: the server was killed before the index was updated.
                if let finished = FinishedMP4(path) { return .finished(bytes: finished.bytes, durationMs: finished.durationMs) }
                return recording.durationMs == 0 ? .empty : .kept(bytes: bytes, why: "\(error)")
            default: return .kept(bytes: bytes, why: "\(error)")
            }
        }
    }

    private func report(_ recording: Recording, _ verdict: Verdict) async {
        let metadata: Logger.Metadata = [
            "stream": "\(recording.task.path)", "id": "\(recording.id)", "file": "\(self.folder.absolute(recording.file))",
        ]
        switch verdict {
        case .finished(let bytes, let durationMs):
            self.budget.add(bytes - recording.bytes)
            await self.stored(recording, bytes: bytes, durationMs: durationMs, isSeekable: true)
            self.log.info(
                "Recording finished",
                metadata: metadata.merging(["bytes": "\(bytes)", "ms": "\(durationMs)"]) { $1 })
        case .kept(let bytes, let why):
            self.budget.add(bytes - recording.bytes)
            await self.stored(recording, bytes: bytes, durationMs: nil, isSeekable: false)
            self.log.warning("A recording remains a fragmented MP4", metadata: metadata.merging(["why": "\(why)"]) { $1 })
        case .missing:
            self.budget.free(recording.bytes)
            self.rooms.recordingLost(recording.id, .fileMissing, bytes: 0)
            self.log.error("A recording's file is gone", metadata: metadata)
        case .empty:
            self.budget.free(recording.bytes)
            let folder = self.folder
            // Nothing in it is playable; a file that cannot be removed does no harm.
            _ = try? await NIOThreadPool.singleton.runIfActive { try folder.remove(recording.file) }
            self.rooms.recordingLost(recording.id, .empty, bytes: 0)
            self.log.warning("A recording ended before its first fragment", metadata: metadata)
        case .cancelled: break
        }
    }

    private func stored(_ recording: Recording, bytes: Int64, durationMs: Int64?, isSeekable: Bool) async {
        await withCheckedContinuation { done in
            self.rooms.recordingFinished(recording.id, bytes: bytes, durationMs: durationMs, isSeekable: isSeekable) { done.resume() }
        }
    }
}
