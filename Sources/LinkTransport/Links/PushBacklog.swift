internal import Media
internal import NIOCore

/// A push queue's rules: which frames it keeps, drops or sends first. A plain value; time is an input.
///
/// Sequence headers and metadata are never dropped. When a connection is too slow, video is dropped first, always up to a keyframe so
/// that the rest stays decodable; audio only when it alone is too much. Without a connection the queue keeps the frames since the last
/// keyframe, so that the next connection starts at once.
struct PushBacklog {
    struct Counts: Sendable, Equatable {
        var bytes = 0
        /// Milliseconds that the oldest frame has waited.
        var ageMs = 0
        var frames = 0
        /// Frames not sent because the connection was too slow.
        var droppedVideo: UInt64 = 0
        var droppedAudio: UInt64 = 0
    }

    private struct Entry {
        let frame: Frame
        let arrivedMs: Int64

        var bytes: Int { self.frame.payload.readableBytes + PushBacklog.entryBytes }
        var isVideo: Bool { self.frame.kind == .video && self.frame.tag.flags.contains(.coded) }
        var isAudio: Bool { self.frame.kind == .audio && self.frame.tag.flags.contains(.coded) }
    }

    /// Bytes counted per frame beside its payload, so that empty frames are bounded too.
    private static let entryBytes = 128
    /// The most header slots remembered; a stream has three or four.
    private static let maxHeaders = 64
    /// The most bytes of a remembered header.
    private static let maxHeaderBytes = 256 << 10

    private let maxBytes: Int
    private let maxMs: Int
    private let maxAudioMs: Int

    private var entries = CircularBuffer<Entry>()
    private var bytes = 0
    /// The headers in force at the queue's start, oldest first.
    private var headers: [(slot: HeaderSlot, frame: Frame)] = []
    /// Headers still to be sent to a new connection.
    private var opening = CircularBuffer<Frame>()
    private var isAttached = false
    private var hasVideo = false
    private var awaitsKeyframe = true
    /// Whether this connection got coded media: a keyframe, or audio where no video is expected.
    private var hasBegun = false
    private var droppedVideo: UInt64 = 0
    private var droppedAudio: UInt64 = 0

    init(maxBytes: Int, maxMs: Int, maxAudioMs: Int) {
        self.maxBytes = maxBytes
        self.maxMs = maxMs
        self.maxAudioMs = maxAudioMs
    }

    func counts(nowMs: Int64) -> Counts {
        Counts(
            bytes: self.bytes, ageMs: Int(clamping: self.age(nowMs)), frames: self.entries.count, droppedVideo: self.droppedVideo,
            droppedAudio: self.droppedAudio)
    }

    mutating func clear() {
        self.entries.removeAll()
        self.opening.removeAll()
        self.headers.removeAll()
        self.bytes = 0
        self.hasVideo = false
        self.awaitsKeyframe = true
    }

    mutating func attach(nowMs: Int64) {
        // A GOP that paused long ago is no starting point for the next frames.
        if self.age(nowMs) > Int64(self.maxMs) { self.dropAll() }
        self.isAttached = true
        self.hasBegun = self.entries.contains { $0.isVideo || $0.isAudio }
        self.opening = CircularBuffer(self.headers.map(\.frame))
    }

    mutating func detach() {
        self.isAttached = false
        self.opening.removeAll()
        // The rest of a GOP whose start was sent is useless to the next connection.
        self.dropAll()
    }

    mutating func next(nowMs: Int64) -> Frame? {
        if let header = self.opening.popFirst() { return header }
        guard let entry = self.entries.popFirst() else { return nil }
        self.removed(entry)
        return entry.frame
    }

    mutating func offer(_ frame: Frame, nowMs: Int64) {
        let entry = Entry(frame: frame, arrivedMs: nowMs)
        if entry.isVideo {
            self.hasVideo = true
            if frame.isKeyframe {
                if !self.isAttached { self.dropAll() }
                self.awaitsKeyframe = false
            } else if self.awaitsKeyframe {
                if self.isAttached { self.droppedVideo &+= 1 }
                return
            }
        } else if frame.kind == .video {
            self.hasVideo = true
        }
        if entry.isAudio, !self.acceptsAudio { return }
        self.entries.append(entry)
        self.bytes += entry.bytes
        if self.isAttached {
            if entry.isVideo || entry.isAudio { self.hasBegun = true }
            self.shrink(nowMs: nowMs)
        } else if self.isFull(nowMs) || !self.hasVideo {
            // The GOP is longer than the queue, so the queue restarts at the next keyframe. Or it is audio alone, without a connection.
            self.dropAll()
        }
    }

    /// Before the first keyframe, audio has no picture beside it. In a stream without video it is all there is.
    private var acceptsAudio: Bool { !self.hasVideo || !self.awaitsKeyframe || (self.isAttached && self.hasBegun) }

    private func age(_ nowMs: Int64) -> Int64 { self.entries.first.map { max(nowMs - $0.arrivedMs, 0) } ?? 0 }

    /// Whether video must be dropped. Audio may wait longer, and does not make the video behind it older.
    private func isFull(_ nowMs: Int64) -> Bool {
        if self.bytes > self.maxBytes { return true }
        guard self.age(nowMs) > Int64(self.maxMs), let oldest = self.entries.first(where: \.isVideo) else { return false }
        return nowMs - oldest.arrivedMs > Int64(self.maxMs)
    }

    /// Drops frames until the queue is within its limits.
    private mutating func shrink(nowMs: Int64) {
        if self.isFull(nowMs), let keyframe = self.entries.lastIndex(where: { $0.isVideo && $0.frame.isKeyframe }) {
            let after = self.entries.distance(from: keyframe, to: self.entries.endIndex)
            self.drop { entry, remaining in entry.isVideo && remaining > after }
        }
        if self.isFull(nowMs), self.entries.contains(where: \.isVideo) {
            self.drop { entry, _ in entry.isVideo }
            self.awaitsKeyframe = true
        }
        var headersLeft = false
        while self.bytes > self.maxBytes || self.age(nowMs) > Int64(self.maxAudioMs), let first = self.entries.popFirst() {
            if self.removed(first) { headersLeft = true }
            if first.isAudio { self.droppedAudio &+= 1 }
        }
        // A header dropped unsent must still reach the server before the frames that need it.
        if headersLeft { self.opening = CircularBuffer(self.headers.map(\.frame)) }
    }

    /// Drops entries that match the rule. `remaining` counts from the entry to the end, itself included.
    private mutating func drop(where rule: (_ entry: Entry, _ remaining: Int) -> Bool) {
        var kept = CircularBuffer<Entry>(initialCapacity: self.entries.count)
        var remaining = self.entries.count
        for entry in self.entries {
            if rule(entry, remaining) {
                self.bytes -= entry.bytes
                self.droppedVideo &+= 1
            } else {
                kept.append(entry)
            }
            remaining -= 1
        }
        self.entries = kept
    }

    /// Empties the queue; its headers stay in force.
    private mutating func dropAll() {
        while let entry = self.entries.popFirst() { self.removed(entry) }
        self.awaitsKeyframe = true
    }

    /// Accounts for a removed entry. Returns true when it was a header.
    @discardableResult
    private mutating func removed(_ entry: Entry) -> Bool {
        self.bytes -= entry.bytes
        return self.remember(entry.frame)
    }

    private func slot(_ frame: Frame) -> HeaderSlot? {
        do throws(MediaError) {
            return try frame.headerSlot()
        } catch {
            // A broken header is passed on unchanged but not remembered.
            return nil
        }
    }

    private mutating func remember(_ frame: Frame) -> Bool {
        guard let slot = self.slot(frame), frame.payload.readableBytes <= Self.maxHeaderBytes else { return false }
        self.headers.removeAll { slot.supersedes($0.slot) }
        guard self.headers.count < Self.maxHeaders else { return false }
        self.headers.append((slot, frame))
        return true
    }
}
