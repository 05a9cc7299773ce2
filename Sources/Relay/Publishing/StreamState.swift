package import Media
import NIOCore
package import Support

/// Identifies a publisher in takeovers: its credential, or its address when it has none. Never logged.
package struct PublisherIdentity: Hashable, Sendable {
    @ExactText package var rawValue: String
    /// Orders claims of one identity. The lower one is outdated, such as an older signed URL.
    package let rank: Int64

    package init(_ rawValue: String, rank: Int64 = 0) {
        self._rawValue = rawValue.exact
        self.rank = rank
    }

    /// Whether this caller acts for the publisher `owner`: it is the same one, by a credential that is not older. Every door asks this.
    package func actsFor(_ owner: PublisherIdentity) -> Bool { self.rawValue.exact == owner.rawValue.exact && self.rank >= owner.rank }
}

/// Which publishers may take over a name that is being published.
package enum TakeoverRule: Sendable {
    case sameIdentity, nobody, anybody
}

/// The reason a publisher does not get a name.
package enum ClaimRefusal: Error, Sendable, Equatable {
    /// Another identity publishes there.
    case nameTaken
    /// The same identity took the name over too often in a short time: two devices fight for it.
    case flapping
}

/// The pure part of a stream: its publisher, timeline and headers, and each frame's fate.
///
/// ```
/// idle --claim--> live --leave / media idle--> grace --claim--> live
///                                              grace --deadline--> idle (viewers are notified)
/// ```
/// Owned by the stream's home loop. No clock: `nowMs` is the server's monotonic time in milliseconds.
package struct StreamState: Sendable {
    package typealias Token = Int

    /// An instruction to the relay; performed in order.
    package enum Item: Sendable {
        case frame(Frame)
        case change(StreamChange, timestamp: Int64)
        /// Nothing has arrived for a while: see ``Flush``.
        case flush(timestamp: Int64)
        /// Headers and metadata for joiners, from here on.
        case prelude([Frame])
        /// The next pictures do not continue the earlier ones.
        case dropGOP
        /// The stream is over; later joiners get nothing of it.
        case end
        /// Media arrives: for the first time from this publisher, or again.
        case active
        /// Media has stopped, though the publisher is connected.
        case quiet
    }

    /// Whether media arrives from the present publisher.
    private enum Activity: Equatable {
        case none, active, quiet
        case paused(sinceMs: Int64)
    }

    package enum Phase: Sendable, Equatable {
        case idle
        case live(token: Token, identity: PublisherIdentity)
        case grace(deadlineMs: Int64)
    }

    package private(set) var phase = Phase.idle
    /// When the present run of publishing began; kept through the grace period.
    package private(set) var liveSinceMs: Int64?
    /// Inter frames dropped after a publisher's return, before its first keyframe.
    package private(set) var framesBeforeKeyframe = 0

    private var grace: GracePeriods
    private var activity = Activity.none
    private var timeline = Timeline()
    private var soundTimes = SoundTimes()
    /// Whether times of sound that the device stamps unevenly are put right.
    private var evensSound = true
    private var headers = HeaderTable()
    private var presence = MediaPresence()
    private(set) var tracks = DefaultTracks()
    /// The publisher has come back and sent no coded frame of the kind since: its headers may be those that players already have.
    private var resumesVideo = false
    private var resumesAudio = false
    private var changedPictures = ChangedPictures()
    private var heldEnd: [Frame] = []
    private var awaitsKeyframe = false
    private var hasVideo = false
    private var hasAudio = false
    /// Set from a publisher's return until its first frames are out.
    private var returnOrder: ReturnOrder?
    private var lastToken: Token = 0
    private var takeoversMs: [Int64] = []
    private var lastMediaMs: Int64 = 0
    private var isDry = false
    private var isFlushed = false
    private var flushedMs = Int64.min / 2
    /// The stream waits for its publisher at least until then, whatever the grace periods.
    private var waitsUntilMs: Int64?

    private static let takeoverLimit = 3
    private static let takeoverWindowMs: Int64 = 30_000
    /// Media this long after an announced pause ends the pause; earlier media is its tail.
    package static let pauseTailMs: Int64 = 1_000

    package init(grace: GracePeriods = GracePeriods()) {
        self.grace = grace
    }

    /// The publisher has announced that it sends nothing for a while.
    var isPaused: Bool { if case .paused = self.activity { true } else { false } }

    package var publisherToken: Token? {
        if case .live(let token, _) = self.phase { token } else { nil }
    }

    /// Grants the publisher slot to `identity`, or throws the refusal. `replaced` is the ghost whose slot it takes over. `grace` replaces the
    /// stream's grace periods from now on.
    package mutating func claim(
        _ identity: PublisherIdentity, takeover: TakeoverRule = .sameIdentity, grace: GracePeriods? = nil, evensSound: Bool = true,
        nowMs: Int64,
        items: inout [Item]
    ) throws(ClaimRefusal) -> (token: Token, replaced: Token?) {
        var replaced: Token?
        if case .live(let token, let owner) = self.phase {
            switch takeover {
            case .nobody: throw .nameTaken
            case .anybody: break
            case .sameIdentity:
                guard identity.actsFor(owner) else { throw .nameTaken }
            }
            self.takeoversMs.removeAll { nowMs - $0 > Self.takeoverWindowMs }
            guard self.takeoversMs.count < Self.takeoverLimit else { throw .flapping }
            self.takeoversMs.append(nowMs)
            replaced = token
        }
        if case .idle = self.phase {
            self.liveSinceMs = nowMs
            items.append(.change(.arrived, timestamp: self.timeline.lastTimestamp ?? 0))
        }
        self.lastToken += 1
        self.phase = .live(token: self.lastToken, identity: identity)
        self.timeline.publisherChanged()
        self.soundTimes.publisherChanged()
        self.evensSound = evensSound
        // Those who joined while a kind was absent do not have its header.
        let (lacksVideo, lacksAudio) = (self.presence.isAbsent(.video), self.presence.isAbsent(.audio))
        self.resumesVideo = !self.headers.isEmpty && !lacksVideo
        self.resumesAudio = !self.headers.isEmpty && !lacksAudio
        self.presence.publisherChanged()
        self.releaseHeld(items: &items)
        if self.hasVideo, self.hasAudio { self.returnOrder = ReturnOrder() }
        self.tracks = DefaultTracks()
        if lacksVideo || lacksAudio { items.append(.prelude(self.joinerHeaders)) }
        // The old encoder's end of sequence is void: the new encoder's pictures do not refer to the old ones.
        self.heldEnd = []
        self.awaitsKeyframe = self.hasVideo
        items.append(.dropGOP)
        self.lastMediaMs = nowMs
        self.isDry = false
        self.isFlushed = true
        self.activity = .none
        if let grace { self.grace = grace }
        return (self.lastToken, replaced)
    }

    /// Handles one frame of the publisher with this token; frames of any other are ignored.
    package mutating func ingest(_ frame: Frame, token: Token, nowMs: Int64, items: inout [Item]) {
        var frame = frame
        if self.receive(&frame, token: token, nowMs: nowMs, items: &items) { items.append(.frame(frame)) }
    }

    /// The same. Returns whether the frame itself, on the stream's timeline now, goes out behind the items: most do, alone.
    mutating func receive(_ frame: inout Frame, token: Token, nowMs: Int64, items: inout [Item]) -> Bool {
        guard self.publisherToken == token else { return false }
        if frame.kind == .data, frame.tag.flags.contains(.notForPlayers) { return false }
        let isCoded = frame.tag.flags.contains(.coded)
        // Empty messages are keep-alives, not media.
        if frame.kind != .data, frame.payload.readableBytes > 0 {
            self.lastMediaMs = nowMs
            self.isDry = false
            self.isFlushed = false
            if isCoded { self.mediaCame(nowMs: nowMs, items: &items) }
        }
        // Until then its header may come, and an early frame does no harm.
        let isHeadless = frame.tag.flags.contains(.headless)
        if isHeadless, self.presence.isAbsent(frame.kind) { return false }
        if self.awaitsKeyframe, frame.kind == .video, isCoded {
            guard frame.isKeyframe else {
                self.framesBeforeKeyframe += 1
                return false
            }
            self.awaitsKeyframe = false
        }
        if frame.isSequenceHeader {
            self.tracks.note(frame)
            // FFmpeg's muxers write a header that comes again in mid-stream behind the pictures, and damage the file.
            if frame.kind == .video ? self.resumesVideo : self.resumesAudio, self.headers.has(frame) { return false }
        } else if isCoded, self.resumesVideo || self.resumesAudio {
            if frame.kind == .video { self.resumesVideo = false } else { self.resumesAudio = false }
        }
        if isCoded, frame.isKeyframe { self.changedPictures.complete(&frame) }
        if frame.kind == .data, TimestampUnwrapper.wrap(frame.timestamp) == 0 { frame.tag.flags.insert(.untimed) }
        frame.timestamp = self.timeline.map(frame.timestamp, frame.kind, isCoded: isCoded, nowMs: nowMs)
        if isCoded, frame.kind == .audio, self.evensSound { self.soundTimes.even(&frame) }
        if frame.tag.flags.contains(.endOfSequence) {
            // Held: if the publisher comes back, players never see an end.
            if self.heldEnd.count < 8 { self.heldEnd.append(frame.copied) }
            return false
        }
        if frame.kind == .video { self.hasVideo = true } else if frame.kind == .audio { self.hasAudio = true }
        if !self.heldEnd.isEmpty {
            items.append(contentsOf: self.heldEnd.map(Item.frame))
            self.heldEnd = []
        }
        if isCoded, !isHeadless { self.noteKind(of: frame, nowMs: nowMs, items: &items) }
        guard isCoded, self.returnOrder != nil else {
            if frame.tag.flags.isDisjoint(with: .headerOrTracks) { return true }
            self.append(frame, items: &items)
            return false
        }
        if case .released(let frames)? = self.returnOrder?.receive(frame, nowMs: nowMs) {
            self.returnOrder = nil
            for frame in frames { self.append(frame, items: &items) }
        }
        return false
    }

    /// Puts a frame out, in both forms if it is Multitrack. Mutating, as the whole state would be copied otherwise.
    private mutating func send(_ frame: Frame, items: inout [Item]) {
        guard frame.tag.flags.contains(.multitrack) else { return items.append(.frame(frame)) }
        let (single, whole) = self.tracks.split(frame)
        if let single { items.append(.frame(single)) }
        items.append(.frame(whole))
    }

    private mutating func append(_ mapped: Frame, items: inout [Item]) {
        self.send(mapped, items: &items)
        guard self.headers.keep(mapped) else { return }
        self.changedPictures.headerCame(mapped)
        self.soundTimes.headerCame(mapped)
        items.append(.prelude(self.joinerHeaders))
    }

    /// The headers and metadata for joiners: those of kinds that come, or may come yet.
    private var joinerHeaders: [Frame] { self.headers.frames(self.tracks).filter { !self.presence.isAbsent($0.kind) } }

    /// Joiners' headers for those who chose this track.
    func headers(_ frames: [Frame], ofTrack track: UInt8) -> [Frame] {
        let tracks = self.tracks.completed(by: frames)
        return frames.compactMap { tracks.chosen($0, track) }
    }

    /// Whether frames of this kind have not come for so long that it is no track.
    package func isAbsent(_ kind: Frame.Kind) -> Bool { self.presence.isAbsent(kind) }

    /// Keeps joiners' headers in step with the kinds of media that come.
    private mutating func noteKind(of frame: Frame, nowMs: Int64, items: inout [Item]) {
        switch self.presence.came(frame.kind, nowMs: nowMs) {
        case .unchanged: return
        case .otherIsAbsent: guard self.headers.contains(frame.kind == .video ? .audio : .video) else { return }
        case .isBack:
            guard self.headers.contains(frame.kind) else { return }
            // Whoever joined meanwhile has not got them.
            for var header in self.headers.frames where header.kind == frame.kind {
                header.timestamp = frame.timestamp
                self.send(header, items: &items)
            }
        }
        items.append(.prelude(self.joinerHeaders))
    }

    /// Releases frames that wait for the other kind's first frame, unchanged.
    private mutating func releaseHeld(items: inout [Item]) {
        guard let frames = self.returnOrder?.rest else { return }
        self.returnOrder = nil
        for frame in frames { self.append(frame, items: &items) }
    }

    private mutating func mediaCame(nowMs: Int64, items: inout [Item]) {
        switch self.activity {
        case .active: return
        case .paused(let sinceMs) where nowMs - sinceMs < Self.pauseTailMs: return
        case .none, .quiet, .paused:
            self.activity = .active
            self.waitsUntilMs = nil
            items.append(.active)
        }
    }

    /// Records an announced pause. Media still in flight does not end it.
    package mutating func announcePause(nowMs: Int64) {
        guard self.publisherToken != nil else { return }
        self.activity = .paused(sinceMs: nowMs)
    }

    /// Forgets the metadata, for `@clearDataFrame`.
    package mutating func clearMetadata(token: Token, items: inout [Item]) {
        guard self.publisherToken == token, self.headers.clearMetadata() else { return }
        items.append(.prelude(self.joinerHeaders))
    }

    /// The publisher with this token is gone; `clean` when it announced that.
    package mutating func leave(token: Token, clean: Bool, nowMs: Int64) {
        guard self.publisherToken == token else { return }
        let deadlineMs = nowMs + (clean ? self.grace.cleanStopMs : self.grace.brokenPipeMs)
        self.phase = .grace(deadlineMs: max(deadlineMs, self.waitsUntilMs ?? deadlineMs))
    }

    /// Sets how long to wait for the publisher: exactly until then for one that is gone, at least until then for one that is connected and silent.
    /// Arriving media cancels this.
    package mutating func wait(untilMs: Int64) {
        switch self.phase {
        case .idle: return
        case .live: break
        case .grace: self.phase = .grace(deadlineMs: untilMs)
        }
        self.waitsUntilMs = untilMs
    }

    /// Replaces the grace periods, unless idle; a wait that has begun keeps its end.
    package mutating func change(to grace: GracePeriods) {
        guard self.phase != .idle else { return }
        self.grace = grace
    }

    /// Evicts the publisher, as if its connection had broken. Returns its token; nil when nobody was publishing.
    package mutating func evict(nowMs: Int64) -> Token? {
        guard let token = self.publisherToken else { return nil }
        self.leave(token: token, clean: false, nowMs: nowMs)
        return token
    }

    /// Ends the stream now, even while somebody publishes. Returns false when it was already over.
    package mutating func endNow(items: inout [Item]) -> Bool {
        guard self.phase != .idle else { return false }
        self.end(items: &items)
        return true
    }

    package enum TickResult: Sendable, Equatable {
        case nothing
        /// The publisher with this token has sent nothing for too long and was dropped.
        case publisherIdle(Token)
        /// The grace period is over; the stream is idle now.
        case ended
    }

    /// Applies deadlines that have passed.
    package mutating func tick(nowMs: Int64, items: inout [Item]) -> TickResult {
        self.flush(nowMs: nowMs, items: &items)
        if self.returnOrder?.isOverdue(nowMs: nowMs) == true { self.releaseHeld(items: &items) }
        switch self.phase {
        case .idle:
            return .nothing
        case .live(let token, _):
            let silentMs = nowMs - self.lastMediaMs
            var limitMs = self.grace.mediaIdleMs
            if case .paused = self.activity { limitMs = self.grace.pausedMs }
            if silentMs >= limitMs, nowMs >= self.waitsUntilMs ?? nowMs {
                self.phase = .grace(deadlineMs: nowMs)
                return .publisherIdle(token)
            }
            if silentMs >= self.grace.dryMs, !self.isDry, self.timeline.lastTimestamp != nil {
                self.isDry = true
                items.append(.change(.dried, timestamp: self.timeline.lastTimestamp ?? 0))
            }
            if silentMs >= self.grace.quietMs, self.activity == .active {
                self.activity = .quiet
                items.append(.quiet)
            }
            return .nothing
        case .grace(let deadlineMs):
            guard nowMs >= deadlineMs else { return .nothing }
            self.end(items: &items)
            return .ended
        }
    }

    /// Sends one flush per silence, at most one every ten seconds: pictures may be seconds apart on purpose.
    private mutating func flush(nowMs: Int64, items: inout [Item]) {
        guard let flushMs = self.grace.flushMs, !self.isFlushed, self.phase != .idle, nowMs - self.lastMediaMs >= flushMs,
            nowMs - self.flushedMs >= Flush.leastIntervalMs, let last = self.timeline.lastTimestamp
        else { return }
        self.isFlushed = true
        self.flushedMs = nowMs
        items.append(.flush(timestamp: last))
    }

    private mutating func end(items: inout [Item]) {
        self.releaseHeld(items: &items)
        items.append(contentsOf: self.heldEnd.map(Item.frame))
        items.append(.change(.left, timestamp: self.timeline.lastTimestamp ?? 0))
        items.append(.end)
        self.phase = .idle
        self.liveSinceMs = nil
        self.waitsUntilMs = nil
        self.heldEnd = []
        self.headers.removeAll()
        self.presence.publisherChanged()
        self.tracks = DefaultTracks()
        self.resumesVideo = false
        self.resumesAudio = false
        self.changedPictures = ChangedPictures()
        self.soundTimes = SoundTimes()
        self.hasVideo = false
        self.hasAudio = false
        self.awaitsKeyframe = false
        self.takeoversMs = []
        self.activity = .none
    }
}
