/// Decides which messages a viewer gets: all, unless it asked for less or fell behind. A pure value.
///
/// ```
/// open --behind / joined without a keyframe / video switched on again--> waiting for a keyframe --keyframe--> open
/// ```
package struct ViewerGate: Sendable, Equatable {
    package private(set) var wantsAudio = true
    package private(set) var wantsVideo = true
    package private(set) var waitsForKeyframe: Bool
    /// Video messages skipped because the viewer was behind or had no keyframe yet.
    package private(set) var skippedFrames = 0
    /// Keyframes below this sequence number do not end the wait, since a newer one is known.
    private var earliestKeyframe = 0

    package init(waitsForKeyframe: Bool = false) {
        self.waitsForKeyframe = waitsForKeyframe
    }

    /// Whether every message passes, so that runs of them can be sent unchecked.
    package var isOpen: Bool { !self.waitsForKeyframe && self.wantsAudio && self.wantsVideo }

    package mutating func setAudio(_ wanted: Bool) {
        self.wantsAudio = wanted
    }

    package mutating func setVideo(_ wanted: Bool) {
        if wanted && !self.wantsVideo { self.waitsForKeyframe = true }
        self.wantsVideo = wanted
    }

    /// Skips video up to the next keyframe at or after `sequence`. Audio and headers continue.
    package mutating func skipVideo(untilKeyframeFrom sequence: Int) {
        self.waitsForKeyframe = true
        self.earliestKeyframe = max(self.earliestKeyframe, sequence)
    }

    /// Whether this message is sent. Updates the gate accordingly.
    package mutating func passes(_ flags: EncodedMessage.Flags, sequence: Int) -> Bool {
        if flags.contains(.essential) { return true }
        if flags.contains(.audio) { return self.wantsAudio }
        guard flags.contains(.video) else { return true }
        guard self.wantsVideo else { return false }
        guard self.waitsForKeyframe else { return true }
        guard flags.contains(.keyframe), sequence >= self.earliestKeyframe else {
            self.skippedFrames += 1
            return false
        }
        self.waitsForKeyframe = false
        return true
    }
}
