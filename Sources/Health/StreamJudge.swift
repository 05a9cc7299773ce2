package import Media

/// Judges one publisher's stream by its arrivals, second by second. A value without a clock; a few KiB.
///
/// A reason begins when its rule has held for some seconds, and ends when it has not held for some more (``Patience``), so that the verdict does not
/// flap. The rules are in ``StreamJudge``'s extensions, one for each concern.
package struct StreamJudge: Sendable {
    /// The present verdict.
    package private(set) var health = StreamHealth.good

    /// The last seconds, oldest first.
    private(set) var seconds: [ArrivalSecond] = []
    /// Seconds since the first media.
    private(set) var age = 0
    private(set) var totals = Totals()
    private(set) var usual = UsualPictures()
    private(set) var jumps = JumpRecord()
    private(set) var announced = AnnouncedFigures()
    private(set) var videoCodec: VideoCodec?
    private(set) var audioCodec: AudioCodec?
    private var reasons: [ReasonState] = []

    /// Most seconds kept.
    static let window = 12
    /// Seconds at the start that the rules about stalls, jitter, jumps and rates leave out: a stream may begin with a burst, as from another server's
    /// cache.
    static let beginning = 2

    /// Totals since the publisher began.
    struct Totals: Sendable {
        var videoFrames = 0
        var audioFrames = 0
        /// Seconds in which media arrived.
        var busySeconds = 0
        /// Seconds since the first picture.
        var videoSeconds = 0
        /// Sequence headers of video that were made from its frames.
        var headersMade = 0
    }

    package init() {}

    /// Judges the stream with one more second. Returns whether the verdict or a reason's presence changed.
    @discardableResult
    package mutating func judge(
        _ second: ArrivalSecond, announced: AnnouncedFigures = AnnouncedFigures(), videoCodec: VideoCodec? = nil,
        audioCodec: AudioCodec? = nil
    ) -> Bool {
        self.announced = announced
        self.videoCodec = videoCodec
        self.audioCodec = audioCodec
        // Without media there is nothing to judge.
        guard second.hasMedia || self.age > 0 else { return false }
        if self.seconds.count >= Self.window { self.seconds.removeFirst() }
        self.seconds.append(second)
        self.age += 1
        self.totals.videoFrames += second.video.frames
        self.totals.audioFrames += second.audio.frames
        self.totals.headersMade += second.video.flaws.headersMade
        if second.hasMedia { self.totals.busySeconds += 1 }
        if self.totals.videoFrames > 0 { self.totals.videoSeconds += 1 }
        self.jumps.note(second, isBeginning: self.age <= Self.beginning)
        let found = self.formReasons() + self.timingReasons() + self.trackReasons() + self.pictureReasons()
        self.usual.note(self)
        return self.settle(found)
    }

    /// Discards all earlier seconds, for a new publisher or one that announced a pause.
    package mutating func restart() { self = StreamJudge() }

    /// Whether the publisher has sent media.
    package var hasMedia: Bool { self.age > 0 }

    /// The newest seconds, oldest first.
    func last(_ count: Int) -> ArraySlice<ArrivalSecond> { self.seconds.suffix(count) }

    /// Carries each rule's result over to the reasons shown.
    private mutating func settle(_ found: [HealthReason]) -> Bool {
        for reason in found where !self.reasons.contains(where: { $0.code == reason.code }) {
            self.reasons.append(ReasonState(code: reason.code))
        }
        for index in self.reasons.indices {
            self.reasons[index].note(found.first { $0.code == self.reasons[index].code })
        }
        self.reasons.removeAll(where: \.isOver)
        let before = self.health
        self.health = StreamHealth(self.reasons.compactMap(\.shown))
        return before.verdict != self.health.verdict || before.reasons.map(\.code) != self.health.reasons.map(\.code)
    }
}
