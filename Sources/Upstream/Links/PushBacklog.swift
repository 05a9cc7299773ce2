internal import Media
internal import NIOCore

/// The rules of a push queue: what is kept, what is dropped, what a new connection is sent first. A plain value; time is an input.
///
/// Sequence headers and metadata are never dropped. While a connection takes frames too slowly, video goes first, always up to a keyframe, so
/// that what is sent can be decoded; audio only when it alone is too much. Without a connection the frames since the last keyframe are kept,
/// so that the next one begins at once.
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

    /// Bytes that a frame takes beside its payload, so that empty ones are bounded too.
    private static let entryBytes = 128
    /// Header slots that are remembered; a stream has three or four.
    private static let maxHeaders = 64
    /// Bytes of one header that is remembered.
    private static let maxHeaderBytes = 256 << 10

    private let maxBytes: Int
    private let maxMs: Int
    private let maxAudioMs: Int

    private var entries = CircularBuffer<Entry>()
    private var bytes = 0
    /// The headers in force where the queue begins, oldest first.
    private var headers: [(slot: HeaderSlot, frame: Frame)] = []
    /// Those that a new connection is still to be sent.
    private var opening = CircularBuffer<Frame>()
    private var isAttached = false
    private var hasVideo = false
    private var awaitsKeyframe = true
    /// Whether this connection has been given a keyframe, or had no need of one.
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
        // A GOP whose stream paused long ago is no beginning for what comes next.
        if self.age(nowMs) > Int64(self.maxMs) { self.dropAll() }
        self.isAttached = true
        self.hasBegun = self.entries.contains { $0.isVideo || $0.isAudio }
        self.opening = CircularBuffer(self.headers.map(\.frame))
    }

    mutating func detach() {
        self.isAttached = false
        self.opening.removeAll()
        // What is left of a GOP whose start has been sent is of no use to the next connection.
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
        if entry.isAudio, !self.mayTakeAudio { return }
        self.entries.append(entry)
        self.bytes += entry.bytes
        if self.isAttached {
            if entry.isVideo || entry.isAudio { self.hasBegun = true }
            self.shrink(nowMs: nowMs)
        } else if self.isFull(nowMs) || !self.hasVideo {
            // The GOP is longer than the queue: the next keyframe begins anew. Or audio alone, with nobody to send it to.
            self.dropAll()
        }
    }

    /// Before the first keyframe there is nothing for it to be heard with; of a stream without video it is all there is.
    private var mayTakeAudio: Bool { !self.hasVideo || !self.awaitsKeyframe || (self.isAttached && self.hasBegun) }

    private func age(_ nowMs: Int64) -> Int64 { self.entries.first.map { max(nowMs - $0.arrivedMs, 0) } ?? 0 }

    /// Whether video is to go. Audio waits longer, and what waits behind it is no older for that.
    private func isFull(_ nowMs: Int64) -> Bool {
        if self.bytes > self.maxBytes { return true }
        guard self.age(nowMs) > Int64(self.maxMs), let oldest = self.entries.first(where: \.isVideo) else { return false }
        return nowMs - oldest.arrivedMs > Int64(self.maxMs)
    }

    /// Drops what must go for the queue to be within its bounds.
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
        // A header that leaves unsent must still reach the server before what needs it.
        if headersLeft { self.opening = CircularBuffer(self.headers.map(\.frame)) }
    }

    /// Drops entries by rule; `remaining` counts from the entry to the end, itself included.
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

    /// True when it was a header.
    @discardableResult
    private mutating func removed(_ entry: Entry) -> Bool {
        self.bytes -= entry.bytes
        return self.remember(entry.frame)
    }

    private func slot(_ frame: Frame) -> HeaderSlot? {
        do throws(MediaError) {
            return try frame.headerSlot()
        } catch {
            // A broken header is passed on as it came, and not kept.
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
