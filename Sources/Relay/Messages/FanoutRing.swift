import DequeModule
package import Media

/// A change to a stream's ring. Sent in order to the home loop's own fanout and to other loops.
enum RingUpdate: Sendable {
    case append(EncodedMessage)
    case prelude([Frame])
    case dropGOP
    case end
}

/// A stream's recent messages on one loop, under sequence numbers that never repeat.
///
/// Viewers hold positions in it. The cached group of pictures for joiners is its tail from the last keyframe on: nothing is kept twice. A
/// value; the home loop's copy seeds those of other loops.
package struct FanoutRing: Sendable {
    package struct Bounds: Sendable {
        /// Limits of the cached group of pictures: bytes, bookkeeping included, and milliseconds.
        package var gopBytes = 16 << 20
        package var gopMs: Int64 = 20_000
        /// Bytes that the ring may hold for viewers who are behind.
        package var totalBytes = 32 << 20
    }

    private var messages: Deque<EncodedMessage> = []
    private var totalBytes = 0
    private var gopBytes = 0
    /// Messages here that some viewers do not get.
    private var splitMessages = 0
    private let bounds: Bounds
    /// Sequence number of the oldest message here.
    package private(set) var base = 0
    /// The keyframe that joiners start at; `nil` when none is cached.
    package private(set) var gopStart: Int?
    /// Headers and metadata that were in force just before `gopStart`.
    package private(set) var gopPrelude: [Frame] = []
    /// Times that the cached pictures were dropped for exceeding their bounds.
    package private(set) var gopOverflows = 0
    /// Headers and metadata in force now.
    package private(set) var livePrelude: [Frame] = []
    package private(set) var hasVideo = false
    /// Timestamp of the newest message other than data, in milliseconds. The message may be gone already.
    package private(set) var lastTimestamp: Int64?
    /// Timestamp of the first message ever other than headers and data, in milliseconds.
    private(set) var firstTimestamp: Int64?
    /// The newest change, even when its message is gone. Viewers moved past it still get it.
    package private(set) var lastChange: (sequence: Int, change: StreamChange)?

    package init(bounds: Bounds) {
        self.bounds = bounds
    }

    /// The sequence number that the next message will get.
    package var head: Int { self.base + self.messages.count }
    /// Bytes held. Includes bookkeeping, so that a flood of tiny messages counts at its true cost.
    package var bytes: Int { self.totalBytes }
    /// Whether some viewers do not get all messages: the stream has Multitrack messages.
    var isSplit: Bool { self.splitMessages > 0 }
    /// The bytes of the cached pictures with which joiners begin.
    package var cachedBytes: Int { self.gopStart == nil ? 0 : self.gopBytes }

    /// Copies the ring into memory of its own, for another loop. Otherwise the first loop to append would copy the shared storage, and the thread
    /// sanitizer, which does not see reference counts, would report the other loop's later writes as a race.
    package func copy() -> FanoutRing {
        var copy = self
        copy.messages = Deque(minimumCapacity: self.messages.count)
        for message in self.messages { copy.messages.append(message) }
        return copy
    }

    /// Copies the ring with each message in another wire format, under the same sequence numbers.
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

    /// Makes a ring of the cached group of pictures with the messages that `retrack` gives, and with the headers that `headers` gives. Its sequence
    /// numbers are its own.
    func retracked(_ headers: ([Frame]) -> [Frame], _ retrack: (EncodedMessage) -> EncodedMessage?) -> FanoutRing {
        var made = FanoutRing(bounds: self.bounds)
        made.hasVideo = self.hasVideo
        made.lastTimestamp = self.lastTimestamp
        made.firstTimestamp = self.firstTimestamp
        if let start = self.gopStart {
            made.setPrelude(headers(self.gopPrelude))
            for sequence in start..<self.head {
                let message = self[sequence]
                if message.change != nil { made.append(message) } else if let other = retrack(message) { made.append(other) }
            }
        }
        made.setPrelude(headers(self.livePrelude))
        return made
    }

    private static func cost(_ message: EncodedMessage) -> Int { message.length + MemoryLayout<EncodedMessage>.stride }

    /// The message with this number, which must lie in `base..<head`.
    package subscript(sequence: Int) -> EncodedMessage { self.messages[sequence - self.base] }

    /// The timestamp at this sequence number. Nil when no message is there yet, or any more.
    func timestamp(at sequence: Int?) -> Int64? {
        guard let sequence, sequence >= self.base, sequence < self.head else { return nil }
        return self[sequence].timestamp
    }

    /// The position at which a new viewer starts, and its first headers.
    package var joinPoint: (sequence: Int, prelude: [Frame], waitsForKeyframe: Bool) {
        if let start = self.gopStart { return (start, self.gopPrelude, false) }
        return self.livePoint
    }

    /// The live edge, for a viewer that must not get the cached pictures.
    private var livePoint: (sequence: Int, prelude: [Frame], waitsForKeyframe: Bool) { (self.head, self.livePrelude, self.hasVideo) }

    /// The position at which a viewer resumes after missing messages from `sequence` on. It never points to pictures that the viewer has already got.
    package func rejoinPoint(from sequence: Int) -> (sequence: Int, prelude: [Frame], waitsForKeyframe: Bool) {
        self.lastKeyframe(from: sequence) == nil ? self.livePoint : self.joinPoint
    }

    /// Appends a message. Unless `isBounded`, the ring may exceed its bound until ``bound()``.
    package mutating func append(_ message: EncodedMessage, isBounded: Bool = true) {
        let sequence = self.head
        self.messages.append(message)
        self.totalBytes += Self.cost(message)
        if let change = message.change { self.lastChange = (sequence, change) }
        // Data carries whatever timestamp the device chose.
        if !message.flags.contains(.data) { self.lastTimestamp = message.timestamp }
        // The change of a first publisher comes before the stream has a time.
        if self.firstTimestamp == nil, message.change == nil, message.flags.isDisjoint(with: [.essential, .data]) {
            self.firstTimestamp = message.timestamp
        }
        if message.flags.contains(.video) { self.hasVideo = true }
        if !message.flags.isDisjoint(with: .split) { self.splitMessages += 1 }
        // A Multitrack keyframe follows the default track's, where joiners begin.
        if message.flags.contains(.keyframe), !message.flags.contains(.tracks) {
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

    /// Removes the oldest messages until the ring is within its bound.
    package mutating func bound() {
        while self.totalBytes > self.bounds.totalBytes, self.messages.count > 1 { self.removeFirst() }
    }

    /// Replaces the headers and metadata in force; joiners get them from the next message on.
    package mutating func setPrelude(_ frames: [Frame]) {
        self.livePrelude = frames
        // Neither do joiners get the headers of a kind that has none in force and no frames among the cached pictures.
        for (kind, flag) in [(Frame.Kind.audio, EncodedMessage.Flags.audio), (.video, .video)] {
            guard self.gopPrelude.contains(where: { $0.kind == kind }), !frames.contains(where: { $0.kind == kind }),
                !self.cachesCoded(flag)
            else { continue }
            self.gopPrelude.removeAll { $0.kind == kind }
        }
    }

    /// Whether there are frames of this kind among the cached pictures.
    private func cachesCoded(_ kind: EncodedMessage.Flags) -> Bool {
        guard let start = self.gopStart else { return false }
        return (start..<self.head).contains { self[$0].flags.isSuperset(of: kind) && !self[$0].flags.contains(.essential) }
    }

    /// Drops the cached pictures, since the next pictures do not continue them. Joiners wait for the next keyframe.
    package mutating func dropGOP() {
        self.gopStart = nil
        self.gopPrelude = []
        self.gopBytes = 0
    }

    /// Ends the stream: later joiners get nothing of it.
    package mutating func endStream() {
        self.dropGOP()
        self.livePrelude = []
        self.hasVideo = false
    }

    /// Removes messages below `sequence`, the slowest viewer's position, unless joiners need them.
    package mutating func trim(below sequence: Int) {
        let limit = min(sequence, self.gopStart ?? self.head)
        while self.base < limit, !self.messages.isEmpty { self.removeFirst() }
    }

    /// The newest keyframe at or after `sequence`, if the ring still has it.
    package func lastKeyframe(from sequence: Int) -> Int? {
        guard let start = self.gopStart, start >= sequence else { return nil }
        return start
    }

    private mutating func removeFirst() {
        guard let first = self.messages.popFirst() else { return }
        self.totalBytes -= Self.cost(first)
        if !first.flags.isDisjoint(with: .split) { self.splitMessages -= 1 }
        if let start = self.gopStart, start <= self.base { self.dropGOP() }
        self.base += 1
    }
}
