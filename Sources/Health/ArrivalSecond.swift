package import Media

/// One kind of media that arrived in a second. A value; headers are not counted.
package struct TrackSecond: Sendable, Equatable {
    package var frames = 0
    /// Bytes of coded frames, FLV tag headers included.
    package var bytes = 0
    package var keyframes = 0
    package var keyframeBytes = 0
    /// Bytes of the largest frame without its tag header.
    package var largestBytes = 0
    /// The smallest arrival time minus timestamp, with the timestamps' jumps taken out. Milliseconds; nil without frames. It grows when media falls
    /// behind the clock.
    package var transitMs: Int64?
    /// The sum of all jumps so far that are excluded from ``transitMs``. Milliseconds.
    package var jumpedMs: Int64 = 0
    /// How far the timestamps advanced since the previous second, without jumps. Milliseconds.
    package var mediaMs: Int64 = 0
    /// Sum over the frames of the absolute difference between arrival interval and timestamp interval. Milliseconds.
    package var jitterMs: Int64 = 0
    package var jumps = 0
    /// The newest jump in milliseconds; negative for a jump back.
    package var jumpMs: Int64 = 0
    /// Frames that came in a form of their own.
    package var flaws = FrameFlaws()
    /// What an output that runs left out of it.
    package var refusal: TrackRefusal?

    package init() {}

    /// Arrival time minus timestamp as sent.
    var rawTransitMs: Int64? { self.transitMs.map { $0 - self.jumpedMs } }
}

/// Frames of one kind that an output left out, and why, in plain words. A value.
package struct TrackRefusal: Sendable, Equatable {
    package var frames: Int
    package var cause: String

    package init(frames: Int, cause: String) {
        self.frames = frames
        self.cause = cause
    }
}

/// A stream's media of about one second. A value, made by the relay; times are in milliseconds.
package struct ArrivalSecond: Sendable, Equatable {
    package var lengthMs: Int64
    /// Lateness of the server itself. The publisher is not to blame for media that this delayed.
    package var lateMs: Int64 = 0
    package var video = TrackSecond()
    package var audio = TrackSecond()
    /// Time in which nothing arrived, beyond what timestamps explain, summed over the stalls that ended in this second.
    package var stalledMs: Int64 = 0
    package var stalls = 0
    /// The longest gap without messages that the timestamps explain, such as one picture each second.
    package var plannedGapMs: Int64 = 0
    /// Time since the newest message, at the second's end.
    package var silentMs: Int64 = 0
    /// Time between the newest two keyframes, by timestamp.
    package var keyframeIntervalMs: Int64?
    /// Time from the newest keyframe to the newest picture, by timestamp; nil before the first keyframe.
    package var keyframeAgeMs: Int64?
    /// The spread of the pictures' composition times. Above 0, pictures are sent in another order than shown.
    package var reorderMs: Int64 = 0
    /// The first audio's timestamp minus the first video's; nil before both have come.
    package var startGapMs: Int64?
    /// The largest body, in bytes, of a silent frame in the audio codec; 0 when it is unknown.
    package var silentBytes = 0

    package init(lengthMs: Int64) { self.lengthMs = lengthMs }

    enum Kind { case audio, video }

    subscript(kind: Kind) -> TrackSecond { kind == .audio ? self.audio : self.video }

    package var hasMedia: Bool { self.video.frames > 0 || self.audio.frames > 0 }
}

/// The figures that a publisher's metadata announces. A value.
package struct AnnouncedFigures: Sendable, Equatable {
    package var hasVideo = false
    package var hasAudio = false
    /// Bits per second; nil when unknown.
    package var videoBitsPerSecond: Double?
    package var audioBitsPerSecond: Double?
    package var framesPerSecond: Double?

    package init() {}
}
