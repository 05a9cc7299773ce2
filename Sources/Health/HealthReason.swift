/// The quality of a stream. Ordered from good to bad.
package enum StreamVerdict: String, Sendable, CaseIterable, Comparable {
    /// Nothing to do. Reasons, if any, are notes.
    case good
    /// Viewers get the stream, but not as well as they could.
    case degraded
    /// Viewers see pictures freeze, or hear nothing.
    case bad

    package static func < (left: StreamVerdict, right: StreamVerdict) -> Bool { left.rank < right.rank }

    private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

/// One reason for a verdict: the measured and the expected value. A value.
package struct HealthReason: Sendable, Equatable {
    /// A stable word for programs.
    package enum Code: String, Sendable, CaseIterable {
        /// The timestamps advance more slowly than the clock.
        case mediaBehindClock = "media_behind_clock"
        /// Arrival pauses, though the timestamps go on.
        case uplinkStalls = "uplink_stalls"
        /// Messages arrive unevenly.
        case uplinkJitter = "uplink_jitter"
        case timestampJump = "timestamp_jump"
        /// Sound and pictures with the same timestamps arrive at different times.
        case avSkew = "av_skew"
        /// Sound and pictures began at different times.
        case avStartGap = "av_start_gap"
        case fpsLow = "fps_low"
        case keyframeIntervalLong = "keyframe_interval_long"
        /// No keyframe for so long that none is expected any more.
        case keyframeIntervalUnbounded = "keyframe_interval_unbounded"
        /// There has been no keyframe at all.
        case keyframeMissing = "keyframe_missing"
        /// The metadata announces audio, but none comes.
        case audioMissing = "audio_missing"
        case audioStopped = "audio_stopped"
        case audioSilent = "audio_silent"
        case videoMissing = "video_missing"
        case videoStopped = "video_stopped"
        case videoBitrateMismatch = "video_bitrate_mismatch"
        case audioBitrateMismatch = "audio_bitrate_mismatch"
        case bFrames = "b_frames"
        case videoCodecNotCarried = "video_codec_not_carried"
        case audioCodecNotCarried = "audio_codec_not_carried"
        /// Keyframes are flagged as inter frames, or the other way round. Set right.
        case keyframeFlagsWrong = "keyframe_flags_wrong"
        /// NAL units after start codes. Converted.
        case videoStartCodes = "video_start_codes"
        /// Bytes behind a picture's last NAL unit. Cut off.
        case videoStrayBytes = "video_stray_bytes"
        /// The sequence header was made from the parameter sets in the frames.
        case videoHeaderMade = "video_header_made"
        /// Frames whose NAL units cannot be told apart.
        case videoBroken = "video_broken"
        case videoHeaderMissing = "video_header_missing"
        /// AAC with ADTS headers. Converted.
        case audioADTS = "audio_adts"
        /// AAC with ADTS headers that cannot be taken off.
        case audioBroken = "audio_broken"
        case audioHeaderMissing = "audio_header_missing"
        /// An output that runs left out frames.
        case videoRefused = "video_refused"
        case audioRefused = "audio_refused"
    }

    package let code: Code
    /// The verdict that this reason alone would give. `good` for a note.
    package let severity: StreamVerdict
    /// The measured value, in ``Code/unit``; nil when there is nothing to measure.
    package let value: Double?
    /// The bound or the usual value, in the same unit.
    package let expected: Double?
    /// A codec's name, or why an output refuses frames, for the message.
    package let detail: String?

    package init(_ code: Code, _ severity: StreamVerdict, _ value: Double? = nil, expected: Double? = nil, detail: String? = nil) {
        self.code = code
        self.severity = severity
        self.value = value
        self.expected = expected
        self.detail = detail
    }
}

/// A verdict with its reasons, the worst first. A value.
package struct StreamHealth: Sendable, Equatable {
    package let verdict: StreamVerdict
    package let reasons: [HealthReason]

    package static let good = StreamHealth([])

    /// The verdict is that of the worst reason.
    package init(_ reasons: [HealthReason]) {
        self.reasons = reasons.enumerated().sorted { ($1.element.severity, $0.offset) < ($0.element.severity, $1.offset) }.map(\.element)
        self.verdict = self.reasons.first?.severity ?? .good
    }
}
