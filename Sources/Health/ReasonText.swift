/// Explains reasons to people: their meaning, and advice.
extension HealthReason {
    package var message: String { "\(self.meaning) \(self.advice)" }

    /// One sentence with the measured value.
    package var meaning: String {
        switch self.code {
        case .mediaBehindClock:
            "Only \(self.decimal(self.value, 2)) s of media arrive per second: the uplink or the encoder is too slow, so viewers stall and fall behind."
        case .uplinkStalls where (self.value ?? 0) > Double(StreamJudge.stallWindowMs):
            "Nothing has arrived for \(self.seconds(self.value)): viewers see the picture stand."
        case .uplinkStalls:
            "Nothing arrived for \(self.seconds(self.value)) of the last ten seconds though the media went on: viewers see the picture stand."
        case .uplinkJitter:
            "Messages arrive \(self.whole(self.value)) ms early or late on average: players need a long buffer, or stutter."
        case .timestampJump:
            "The timestamps jumped \((self.value ?? 0) < 0 ? "back" : "ahead") by \(self.seconds(self.value.map(abs))): players and recordings may break off or lose the match of sound and picture."
        case .avSkew:
            "Audio arrives with timestamps \(self.seconds(self.value.map(abs))) \((self.value ?? 0) < 0 ? "behind" : "ahead of") video: players wait for the later one, or play them apart."
        case .avStartGap:
            "Audio began \(self.seconds(self.value.map(abs))) \((self.value ?? 0) < 0 ? "before" : "after") video: nothing to mind if one of them was switched on later."
        case .fpsLow:
            "The video has \(self.decimal(self.value, 1)) frames per second where \(self.decimal(self.expected, 1)) are usual: motion looks jerky."
        case .keyframeIntervalLong:
            "\(self.seconds(self.value)) passed without a keyframe: after a loss viewers wait that long for a picture, and HLS has segments as long."
        case .keyframeIntervalUnbounded:
            "There has been no keyframe for \(self.seconds(self.value)): new viewers may get no picture, and HLS cannot cut segments."
        case .keyframeMissing: "No keyframe has come in \(self.seconds(self.value)): nobody can decode the video."
        case .audioMissing: "The metadata announces audio, but none has come: viewers hear nothing."
        case .audioStopped: "Audio stopped \(self.whole(self.value)) s ago while video goes on: viewers hear nothing."
        case .audioSilent: "The audio has been digital silence for \(self.whole(self.value)) s or more: viewers hear nothing."
        case .videoMissing: "The metadata announces video, but none has come: viewers see nothing."
        case .videoStopped: "Video stopped \(self.whole(self.value)) s ago while audio goes on: the picture stands."
        case .videoBitrateMismatch:
            "The video has \(self.kilobits(self.value)) where the metadata announces \(self.kilobits(self.expected)): \(self.isHigh ? "the uplink and viewers may not carry it" : "the picture is probably poorer than meant")."
        case .audioBitrateMismatch:
            "The audio has \(self.kilobits(self.value)) where the metadata announces \(self.kilobits(self.expected)): the uplink and viewers may not carry it."
        case .bFrames:
            "The video has B-frames, which add up to \(self.whole(self.value)) ms of delay: low-latency HLS and MP4 viewers are that much further behind."
        case .videoCodecNotCarried:
            "HLS, MP4, recordings and pictures cannot carry \(self.detail ?? "this codec"): only RTMP and FLV viewers see the video."
        case .audioCodecNotCarried:
            "HLS, MP4 and recordings cannot carry \(self.detail ?? "this codec"): only RTMP and FLV viewers hear the sound."
        case .keyframeFlagsWrong:
            "\(self.share) of the pictures are flagged wrongly, as keyframes or as none: the server flags them by what they are, so viewers notice nothing."
        case .videoStartCodes:
            "\(self.share) of the pictures have start codes where FLV wants lengths: the server converts them, so viewers notice nothing."
        case .videoStrayBytes:
            "\(self.share) of the pictures have stray bytes behind their last NAL unit: the server cuts these off, so viewers notice nothing."
        case .videoHeaderMade:
            "The video came without a sequence header in FLV's form: the server made one from its parameter sets, so viewers notice nothing."
        case .videoBroken:
            "\(self.share) of the pictures are not made of NAL units, since their lengths do not add up, or depend on such a picture: HLS, MP4 and recordings leave them out, and most players cannot decode them."
        case .videoHeaderMissing:
            "The video has no readable sequence header, and no parameter sets in its frames: nobody can decode it. HLS, MP4 and recordings leave it out, and so do RTMP and FLV beside sound that can be decoded."
        case .audioADTS:
            "\(self.share) of the AAC frames have an ADTS header, which FLV does not allow: the server takes it off, so listeners notice nothing."
        case .audioBroken:
            "\(self.share) of the AAC frames have an ADTS header whose length does not fit: HLS, MP4 and recordings leave them out, and many players are silent."
        case .audioHeaderMissing:
            "The audio has no readable AAC sequence header: nobody can decode it. HLS, MP4 and recordings leave it out, and so do RTMP and FLV beside pictures that can be decoded."
        case .videoRefused:
            "An output leaves out \(self.share) of the pictures: \(self.detail ?? "it does not take them")."
        case .audioRefused:
            "An output leaves out \(self.share) of the audio: \(self.detail ?? "it does not take it")."
        }
    }

    /// One sentence of advice for the device's operator.
    package var advice: String {
        switch self.code {
        case .mediaBehindClock: "Lower the bit rate, use a better network, or look at the encoder's load."
        case .uplinkStalls: "Look at the publisher's network, above all radio; lower the bit rate if it goes on."
        case .uplinkJitter: "Look at the publisher's network, or have the encoder send frames as they are made and not in batches."
        case .timestampJump: "Have the encoder stamp from one steady clock; restart it if it goes on."
        case .avSkew: "Restart the publisher, or set its audio offset; check that one clock stamps both."
        case .avStartGap: "If sound and picture are apart, set the encoder's audio offset."
        case .fpsLow: "Look at the encoder's load and dropped frames; lower resolution or preset."
        case .keyframeIntervalLong, .keyframeIntervalUnbounded:
            "Set the encoder's keyframe interval to 2 s (OBS: Keyframe Interval; ffmpeg: -g twice the frame rate)."
        case .keyframeMissing: "Restart the encoder; set its keyframe interval to 2 s."
        case .audioMissing, .audioStopped: "Check the microphone or mixer, its permission, and the encoder's audio track."
        case .audioSilent: "Check for a muted or unplugged source in the encoder."
        case .videoMissing, .videoStopped: "Check the camera, its permission, and the encoder's video track."
        case .videoBitrateMismatch, .audioBitrateMismatch: "Compare the encoder's bit rate setting and rate control with what it sends."
        case .bFrames: "For low delay set B-frames to 0 (x264: tune zerolatency or bframes=0); otherwise nothing needs doing."
        case .videoCodecNotCarried: "Encode H.264, HEVC or AV1."
        case .audioCodecNotCarried: "Encode AAC or Opus."
        case .keyframeFlagsWrong, .videoStartCodes, .videoStrayBytes, .videoHeaderMade, .audioADTS:
            "Nothing needs doing here; a newer version of the encoder may be right for other servers too."
        case .videoBroken, .audioBroken: "Update the encoder or its firmware, or push with another one, such as ffmpeg or OBS."
        case .videoHeaderMissing, .audioHeaderMissing: "Restart the encoder; if it goes on, update it or push with another one."
        case .videoRefused: "Restart the encoder; if it goes on, encode H.264 and look at the encoder's settings."
        case .audioRefused: "Restart the encoder; if it goes on, encode AAC and look at the encoder's settings."
        }
    }

    private var isHigh: Bool { (self.value ?? 0) > (self.expected ?? 0) }

    /// The value as a share, "4.2 %".
    private var share: String { "\(self.decimal(self.value, 1)) %" }

    private func whole(_ value: Double?) -> String { self.decimal(value, 0) }

    /// Milliseconds as "2.5 s".
    private func seconds(_ ms: Double?) -> String { "\(self.decimal(ms.map { $0 / 1_000 }, 1)) s" }

    private func kilobits(_ bits: Double?) -> String { "\(self.decimal(bits.map { $0 / 1_000 }, 0)) kbit/s" }

    private func decimal(_ value: Double?, _ digits: Int) -> String {
        guard let value, value.isFinite, abs(value) < 1e12 else { return "?" }
        let factor = (0..<digits).reduce(1.0) { power, _ in power * 10 }
        let rounded = (value * factor).rounded() / factor
        return rounded == rounded.rounded() ? "\(Int64(rounded))" : "\(rounded)"
    }
}

extension HealthReason.Code {
    /// The unit of ``HealthReason/value`` and ``HealthReason/expected``; nil for reasons without values.
    package var unit: String? {
        switch self {
        case .mediaBehindClock: "s/s"
        case .uplinkStalls, .uplinkJitter, .timestampJump, .avSkew, .avStartGap, .keyframeIntervalLong, .keyframeIntervalUnbounded,
            .keyframeMissing, .bFrames:
            "ms"
        case .fpsLow: "fps"
        case .audioStopped, .audioSilent, .videoStopped: "s"
        case .videoBitrateMismatch, .audioBitrateMismatch: "bit/s"
        case .keyframeFlagsWrong, .videoStartCodes, .videoStrayBytes, .videoBroken, .audioADTS, .audioBroken, .videoRefused, .audioRefused:
            "%"
        case .audioMissing, .videoMissing, .videoCodecNotCarried, .audioCodecNotCarried, .videoHeaderMade, .videoHeaderMissing,
            .audioHeaderMissing:
            nil
        }
    }
}
