import FFmpeg
import LibC
import Logging
import Media
import NIOCore
import Rooms
import ServerConfiguration
import Support

/// Writes a stream's pieces to successive files, and reports these to the index.
///
/// A file's row is stored before the file is created, so the next start always finds it. Until then pieces are held here, within a bound. Owned by
/// one ``Recorder``, on its thread; calls block on the disk.
final class RecordingWriter: FragmentSink {
    /// Dependencies shared by all recordings.
    struct Means: Sendable {
        let settings: ServerConfig.Recording
        let folder: RecordingFolder
        let budget: RecordingBudget
        let rooms: any RecordingIndex
        let log: Logger
        /// Called when a file has its last frame and the index has stored that.
        let ended: @Sendable (_ id: String) -> Void
    }

    /// One file of the recording.
    private final class Part {
        let recording: Recording
        let beginning: FragmentPackager.Beginning
        let startMs: Int64
        var endMs: Int64
        var endWallMs: Int64
        /// Nil until its row is stored.
        var file: FragmentFile?
        var held: [ByteBuffer] = []
        var heldBytes = 0
        /// Set when the file is to be closed once the held pieces are written.
        var end: RecordingEnd?
        let droppedBefore: UInt64

        init(_ recording: Recording, _ beginning: FragmentPackager.Beginning, startMs: Int64, droppedBefore: UInt64) {
            self.recording = recording
            self.beginning = beginning
            self.startMs = startMs
            self.endMs = startMs
            self.endWallMs = recording.startedAt
            self.droppedBefore = droppedBefore
        }
    }

    private let task: RecordingTask
    private let means: Means
    /// Calls `rowStored` on the owner's thread.
    private let later: @Sendable (_ id: String, _ isStored: Bool) -> Void
    private var beginning: FragmentPackager.Beginning?
    private var current: Part?
    /// Files not yet fully written and stored, by id: the current one and ended ones.
    private var open: [String: Part] = [:]
    private var parts: Int
    private var splitsNext = false
    /// Frames dropped before they reached this writer, as its owner reports.
    var dropped: UInt64 = 0
    /// The reason why writing has stopped.
    private(set) var failure: RecordingEnd?
    /// At least one fragment is in a file.
    private(set) var hasStarted: Bool

    private static let heldLimit = 32 << 20

    init(_ order: RecordingOrder, _ means: Means, later: @escaping @Sendable (_ id: String, _ isStored: Bool) -> Void) {
        self.task = order.task
        self.parts = order.parts
        self.hasStarted = order.isStarted
        self.means = means
        self.later = later
    }

    /// The file being written: its id, and its size in whole fragments, in bytes.
    var position: (id: String, bytes: Int64)? {
        guard let current, let file = current.file else { return nil }
        return (current.recording.id, file.bytes)
    }

    /// Whether everything is written, closed and reported.
    var isIdle: Bool { self.open.isEmpty }

    // MARK: Pieces

    func isDue(pendingMs: Int64, frameMs: Int64, isKeyframe: Bool) -> Bool {
        let settings = self.means.settings
        if isKeyframe, let current = self.current {
            let durationMs = current.endMs - current.startMs + pendingMs
            let bytes = (current.file?.bytes ?? 0) + Int64(current.heldBytes)
            if settings.splitDurationMs > 0 && durationMs >= settings.splitDurationMs
                || settings.splitBytes > 0 && bytes >= Int64(settings.splitBytes)
            {
                self.splitsNext = true
                return true
            }
        }
        // Fragments that begin with keyframes make seeking fast; very short fragments are not worth it.
        if isKeyframe, self.hasVideo, pendingMs * 2 >= settings.fragmentMs { return true }
        return pendingMs + frameMs > settings.fragmentMs
    }

    /// Zero for keyframes, since any keyframe may begin the next file.
    func due(frameMs: Int64) -> (pendingMs: Int64, keyframeMs: Int64) { (self.means.settings.fragmentMs - frameMs, 0) }

    private var hasVideo: Bool { self.beginning?.tracks.contains { $0.kind == .video } ?? false }

    func consumeSplit() -> Bool {
        defer { self.splitsNext = false }
        return self.splitsNext
    }

    func began(_ beginning: FragmentPackager.Beginning, nowMs: Int64) {
        if let current, current.beginning.initialization != beginning.initialization || current.beginning.originMs != beginning.originMs {
            let isSplit = current.beginning.tracks == beginning.tracks
            self.close(current, isSplit ? .split : .mediaChanged)
        }
        self.beginning = beginning
    }

    func made(_ piece: FragmentPackager.Piece, nowMs: Int64) {
        guard self.failure == nil, let beginning = self.beginning else { return }
        let bytes = Int64(piece.fragment.bytes.readableBytes)
        if let refusal = self.means.budget.refusal(for: bytes) { return self.fail(refusal, self.means.budget.words(refusal)) }
        let part = self.current ?? self.begin(beginning, piece)
        if let file = part.file {
            guard self.write(piece.fragment.bytes, to: file, nowMs: nowMs) else { return }
        } else {
            part.held.append(piece.fragment.bytes)
            part.heldBytes += piece.fragment.bytes.readableBytes
            if part.heldBytes > Self.heldLimit { return self.fail(.storeFailed, "the recording index does not answer") }
        }
        part.endMs = max(part.endMs, piece.fragment.endMs)
        part.endWallMs = piece.wallMs + piece.fragment.durationMs
    }

    /// The file stays open: the next run may continue it.
    func interrupted(nowMs: Int64) {}

    // MARK: Files

    private func begin(_ beginning: FragmentPackager.Beginning, _ piece: FragmentPackager.Piece) -> Part {
        self.parts += 1
        let id = Self.randomID()
        let video = beginning.tracks.first { $0.kind == .video }
        let audio = beginning.tracks.first { $0.kind == .audio }
        let recording = Recording(
            id: id, task: self.task, part: self.parts,
            file: RecordingFolder.file(of: self.task.path, startedAt: piece.wallMs, id: id), startedAt: piece.wallMs,
            media: MediaSummary(
                width: video?.width, height: video?.height, videoCodec: video?.codecsString, audioCodec: audio?.codecsString))
        let part = Part(recording, beginning, startMs: piece.fragment.startMs, droppedBefore: self.dropped)
        self.current = part
        self.open[id] = part
        self.means.rooms.recordingBegan(recording) { [later = self.later] in later(id, $0) }
        return part
    }

    /// 16 hexadecimal digits.
    static func randomID() -> String { SecretText.hex((0..<8).map { _ in UInt8.random(in: 0...255) }) }

    /// Creates the file once the index has stored its row. Without a row no list would have it.
    func rowStored(_ id: String, isStored: Bool, nowMs: Int64) {
        guard let part = self.open[id], part.file == nil else { return }
        guard isStored else {
            part.held = []
            self.fail(.storeFailed, "the recording index did not store the recording")
            if self.open[id] != nil { self.finish(part, .storeFailed) }
            return
        }
        let path = self.means.folder.absolute(part.recording.file)
        do {
            try self.means.folder.prepare(for: part.recording.file)
            let file = try FragmentFile(
                path: path, initialization: part.beginning.initialization, sync: FragmentFile.Sync(self.means.settings.sync))
            // The folder already denies access to others.
            chmod(path, 0o600)
            part.file = file
            self.means.budget.add(file.bytes)
        } catch {
            part.held = []
            if part === self.current { return self.fail(Self.end(of: error), "\(error)") }
            return self.finish(part, .unwritable)
        }
        guard let file = part.file else { return }
        for bytes in part.held {
            guard self.write(bytes, to: file, nowMs: nowMs) else { break }
        }
        part.held = []
        // A failed write has already finished it.
        if self.open[id] != nil, let end = part.end { self.finish(part, self.failure ?? end) }
    }

    private func write(_ bytes: ByteBuffer, to file: FragmentFile, nowMs: Int64) -> Bool {
        let before = file.bytes
        defer { self.means.budget.add(file.bytes - before) }
        do throws(FFmpegError) {
            try file.append(bytes, nowMs: nowMs)
        } catch {
            self.fail(Self.end(of: error), "\(error)")
            return false
        }
        if !self.hasStarted, let id = self.open.first(where: { $0.value.file === file })?.key {
            self.hasStarted = true
            self.means.rooms.recordingStarted(id)
            self.means.log.info("Recording", metadata: self.metadata.merging(["file": "\(file.path)"]) { $1 })
        }
        return true
    }

    private static func end(of error: any Error) -> RecordingEnd {
        let code: Int32? =
            switch error {
            case let error as RecordingFolder.Failure: error.code
            case FFmpegError.file(_, _, let code): code
            default: nil
            }
        return [ENOSPC, EDQUOT, EFBIG].contains(code) ? .diskFull : .unwritable
    }

    private func fail(_ end: RecordingEnd, _ detail: String) {
        guard self.failure == nil else { return }
        self.failure = end
        self.means.log.error(
            "Recording failed; the part already written is kept",
            metadata: self.metadata.merging(["reason": "\(end.rawValue)", "error": "\(detail)"]) { $1 })
        if let current { self.close(current, end) }
    }

    private var metadata: Logger.Metadata {
        var metadata: Logger.Metadata = ["stream": "\(self.task.path)", "task": "\(self.task.id)"]
        if let room = self.task.roomID { metadata["room"] = "\(room)" }
        return metadata
    }

    /// Ends the recording; no more pieces follow.
    func end(_ end: RecordingEnd) { if let current { self.close(current, end) } }

    private func close(_ part: Part, _ end: RecordingEnd) {
        if self.current === part { self.current = nil }
        part.end = end
        // Otherwise it is finished once its row is stored.
        if part.file != nil || self.failure == .unwritable || self.failure == .diskFull { self.finish(part, end) }
    }

    private func finish(_ part: Part, _ end: RecordingEnd) {
        var end = end
        let id = part.recording.id
        do throws(FFmpegError) {
            try part.file?.close()
        } catch {
            // The bytes are in the file, but may not have reached the disk.
            self.means.log.error("A recording could not be closed", metadata: self.metadata.merging(["error": "\(error)"]) { $1 })
            if !end.isFailure { end = Self.end(of: error) }
        }
        self.open[id] = nil
        let outcome = RecordingOutcome(
            end: end, endedAt: part.endWallMs, durationMs: part.endMs - part.startMs, bytes: part.file?.bytes ?? 0,
            droppedFrames: Int64(clamping: self.dropped &- part.droppedBefore))
        self.means.rooms.recordingEnded(id, outcome) { [ended = self.means.ended] in ended(id) }
    }
}

extension FragmentFile.Sync {
    init(_ sync: ServerConfig.Recording.Sync) {
        switch sync {
        case .never: self = .never
        case .fragment: self = .everyFragment
        case .every(let ms): self = .everyMs(ms)
        }
    }
}
