import DequeModule
package import Media

/// What other loops (and the home loop's own fanout) are told of a stream, in order.
enum RingUpdate: Sendable {
    case append(EncodedMessage)
    case prelude([Frame])
    case dropGOP
    case end
}

/// A stream's recent messages on one loop, in order, each with a sequence number that never repeats.
///
/// Viewers hold positions in it. The group of pictures that joiners start with is its tail from the last keyframe on: nothing is kept
/// twice. A value; the home loop's copy seeds those of other loops.
package struct FanoutRing: Sendable {
    package struct Bounds: Sendable {
        /// Bytes (bookkeeping included) and milliseconds that the cached group of pictures may hold.
        package var gopBytes = 16 << 20
        package var gopMs: Int64 = 20_000
        /// Bytes that the ring may hold for viewers who are behind.
        package var totalBytes = 32 << 20
        package init() {}
    }

    private var messages: Deque<EncodedMessage> = []
    private var totalBytes = 0
    private var gopBytes = 0
    private let bounds: Bounds
    /// Sequence number of the oldest message here.
    package private(set) var base = 0
    /// The keyframe that joiners start at; `nil` when none is cached.
    package private(set) var gopStart: Int?
    /// Headers and metadata that were in force just before `gopStart`.
    package private(set) var gopPrelude: [Frame] = []
    /// Times that the cached pictures were dropped because they passed their bounds.
    package private(set) var gopOverflows = 0
    /// Headers and metadata in force now.
    package private(set) var livePrelude: [Frame] = []
    package private(set) var hasVideo = false
    /// Milliseconds: of the newest message, which may be gone already.
    package private(set) var lastTimestamp: Int64?
    /// Milliseconds: of the first media ever.
    private(set) var firstTimestamp: Int64?
    /// The newest notice, which may be gone already: viewers who are moved past it are told.
    package private(set) var lastNotice: (sequence: Int, notice: StreamNotice)?

    package init(bounds: Bounds) {
        self.bounds = bounds
    }

    /// The sequence number that the next message will get.
    package var head: Int { self.base + self.messages.count }
    /// Bytes held, bookkeeping included: a flood of tiny messages counts for what it costs.
    package var bytes: Int { self.totalBytes }

    /// The same ring in memory of its own, for another loop. Shared storage would be copied by whichever loop appends first, and the thread
    /// sanitizer, which does not see reference counts, takes what the other one writes later for a race.
    package func copy() -> FanoutRing {
        var copy = self
        copy.messages = Deque(minimumCapacity: self.messages.count)
        for message in self.messages { copy.messages.append(message) }
        return copy
    }

    /// The same messages in another packaging, under the same numbers.
    func repackaged(_ repackage: (EncodedMessage) -> EncodedMessage?) -> FanoutRing {
        var copy = self
        copy.messages = Deque(minimumCapacity: self.messages.count)
        copy.totalBytes = 0
        for message in self.messages {
            let other = repackage(message) ?? message
            copy.messages.append(other)
            copy.totalBytes += Self.cost(other)
        }
        return copy
    }

    private static func cost(_ message: EncodedMessage) -> Int { message.length + MemoryLayout<EncodedMessage>.stride }

    /// The message with this number, which must lie in `base..<head`.
    package subscript(sequence: Int) -> EncodedMessage { self.messages[sequence - self.base] }

    /// The stream's time at this number; nil where nothing is yet, or no longer.
    func timestamp(at sequence: Int?) -> Int64? {
        guard let sequence, sequence >= self.base, sequence < self.head else { return nil }
        return self[sequence].timestamp
    }

    /// Where a viewer that joins now starts, and what it is sent first.
    package var joinPoint: (sequence: Int, prelude: [Frame], waitsForKeyframe: Bool) {
        if let start = self.gopStart { return (start, self.gopPrelude, false) }
        return self.livePoint
    }

    /// Where a viewer starts that is not to be sent the cached pictures.
    private var livePoint: (sequence: Int, prelude: [Frame], waitsForKeyframe: Bool) { (self.head, self.livePrelude, self.hasVideo) }

    /// Where a viewer goes on that has missed messages since it was at `sequence`: not at pictures that it saw before.
    package func rejoinPoint(from sequence: Int) -> (sequence: Int, prelude: [Frame], waitsForKeyframe: Bool) {
        self.lastKeyframe(from: sequence) == nil ? self.livePoint : self.joinPoint
    }

    /// Unless it is `isBounded` the ring may hold more than its bound afterwards, until ``bound()``.
    package mutating func append(_ message: EncodedMessage, isBounded: Bool = true) {
        let sequence = self.head
        self.messages.append(message)
        self.totalBytes += Self.cost(message)
        if let notice = message.notice { self.lastNotice = (sequence, notice) }
        // Data's time is whatever the device says.
        if !message.flags.contains(.data) { self.lastTimestamp = message.timestamp }
        // The notice of a first publisher comes before the stream has a time.
        if self.firstTimestamp == nil, message.notice == nil, message.flags.isDisjoint(with: [.essential, .data]) {
            self.firstTimestamp = message.timestamp
        }
        if message.flags.contains(.video) { self.hasVideo = true }
        if message.flags.contains(.keyframe) {
            self.gopStart = sequence
            self.gopPrelude = self.livePrelude
            self.gopBytes = 0
        }
        if let start = self.gopStart {
            self.gopBytes += Self.cost(message)
            let spanMs = message.arrivalMs - self[start].arrivalMs
            if self.gopBytes > self.bounds.gopBytes || spanMs > self.bounds.gopMs {
                self.gopOverflows += 1
                self.dropGOP()
            }
        }
        if isBounded { self.bound() }
    }

    /// Lets go of the oldest messages until the ring is within its bound.
    package mutating func bound() {
        while self.totalBytes > self.bounds.totalBytes, self.messages.count > 1 { self.removeFirst() }
    }

    /// Headers and metadata changed; they count for joiners from the next message on.
    package mutating func setPrelude(_ frames: [Frame]) {
        self.livePrelude = frames
    }

    /// Joiners wait for the next keyframe: the pictures cached so far do not lead to what comes next.
    package mutating func dropGOP() {
        self.gopStart = nil
        self.gopPrelude = []
        self.gopBytes = 0
    }

    /// The stream ended: nothing of it is for later joiners.
    package mutating func endStream() {
        self.dropGOP()
        self.livePrelude = []
        self.hasVideo = false
    }

    /// Lets go of messages below `sequence`, the slowest viewer's position, as far as joiners do not need them.
    package mutating func trim(below sequence: Int) {
        let limit = min(sequence, self.gopStart ?? self.head)
        while self.base < limit, !self.messages.isEmpty { self.removeFirst() }
    }

    /// The newest keyframe at or after `sequence` that is still here.
    package func lastKeyframe(from sequence: Int) -> Int? {
        guard let start = self.gopStart, start >= sequence else { return nil }
        return start
    }

    private mutating func removeFirst() {
        guard let first = self.messages.popFirst() else { return }
        self.totalBytes -= Self.cost(first)
        if let start = self.gopStart, start <= self.base { self.dropGOP() }
        self.base += 1
    }
}
