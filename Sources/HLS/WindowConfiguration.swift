package import NIOCore

/// How media comes packed.
package enum MediaContainer: Sendable, Equatable {
    /// One moof and mdat per part, and an initialization section.
    case fragmentedMP4
    /// Whole TS packets. Every part should start with PAT and PMT: any part may become a segment's first.
    case mpegTS

    /// Ending of the names of segments and parts.
    var mediaExtension: String { self == .fragmentedMP4 ? "m4s" : "ts" }
}

extension MediaWindow {
    /// What a window holds, and for how long. Values out of range are taken as the nearest in range.
    package struct Configuration: Sendable, Equatable {
        package var container: MediaContainer
        /// Whether parts are listed. Without, playlists change once per segment, and hold no tag that a plain player would not know.
        package var isLowLatency: Bool
        /// Milliseconds that a part aims at: 50…2,000. The part target that playlists tell is learnt from the first segment.
        package var partMs: Int
        /// Milliseconds after which the next keyframe starts a segment: 500…10,000.
        package var segmentMs: Int
        /// Milliseconds after which a segment ends without a keyframe: from `segmentMs` to 30,000.
        package var maxSegmentMs: Int
        /// Milliseconds of ended segments that playlists list, never fewer than three target durations: up to 24 h.
        package var windowMs: Int
        /// Bytes of all media held, whether listed or not. No segment is longer than a quarter of it.
        package var maxBytes: Int
        /// Milliseconds, at least, that media stays reachable after it left the playlist: up to 10 min.
        package var lingerMs: Int

        package init(
            container: MediaContainer = .fragmentedMP4, isLowLatency: Bool = true, partMs: Int = 200, segmentMs: Int = 2_000,
            maxSegmentMs: Int = 12_000, windowMs: Int = 12_000, maxBytes: Int = 64 << 20, lingerMs: Int = 10_000
        ) {
            self.container = container
            self.isLowLatency = isLowLatency
            self.partMs = partMs
            self.segmentMs = segmentMs
            self.maxSegmentMs = maxSegmentMs
            self.windowMs = windowMs
            self.maxBytes = maxBytes
            self.lingerMs = lingerMs
        }

        /// The same with every value in its range.
        func clamped() -> Configuration {
            var clamped = self
            clamped.partMs = min(max(self.partMs, 50), 2_000)
            clamped.segmentMs = min(max(self.segmentMs, 500), 10_000)
            clamped.maxSegmentMs = min(max(self.maxSegmentMs, clamped.segmentMs), 30_000)
            clamped.windowMs = min(max(self.windowMs, clamped.segmentMs), 24 * 3_600_000)
            clamped.maxBytes = max(self.maxBytes, 1 << 20)
            clamped.lingerMs = min(max(self.lingerMs, 0), 600_000)
            return clamped
        }
    }

    /// Fixed limits, which no configuration moves.
    enum Limits {
        /// Bytes of an initialization section.
        static let initializationBytes = 1 << 20
        /// Characters of a CODECS attribute.
        static let codecsLength = 256
        /// Parts in one segment: more, and the segment ends.
        static let partsPerSegment = 512
        /// Segments listed at once: 24 h of the shortest.
        static let listedSegments = 1 << 18
        /// Highest number that a window may start at.
        static let firstSequence = 1 << 60
    }
}

/// What the media of a publisher is, from one `begin` to the next.
package struct MediaFormat: Sendable, Equatable {
    package var initialization: ByteBuffer
    /// RFC 6381, as in `avc1.64001f,mp4a.40.2`.
    package var codecs: String
    package var hasVideo: Bool
    /// Pixels.
    package var width: Int?
    package var height: Int?
    /// Frames per second.
    package var frameRate: Double?
    /// Milliseconds between keyframes, when the caller has seen some: the target duration is then right from the start.
    package var keyframeIntervalMs: Int?

    /// `initialization` is empty for MPEG-TS.
    package init(
        initialization: ByteBuffer = ByteBuffer(), codecs: String, hasVideo: Bool, width: Int? = nil, height: Int? = nil,
        frameRate: Double? = nil, keyframeIntervalMs: Int? = nil
    ) {
        self.initialization = initialization
        self.codecs = codecs
        self.hasVideo = hasVideo
        self.width = width
        self.height = height
        self.frameRate = frameRate
        self.keyframeIntervalMs = keyframeIntervalMs
    }

    /// Whether a decoder that plays the one plays the other with no new initialization.
    func continues(_ other: MediaFormat) -> Bool {
        self.initialization == other.initialization && self.codecs == other.codecs && self.hasVideo == other.hasVideo
            && self.width == other.width && self.height == other.height
    }
}

/// One piece of media as the muxer cut it: what the window adds to its open segment.
package struct MediaPart: Sendable, Equatable {
    package var bytes: ByteBuffer
    /// Microseconds. Less than 1, or more than a segment may be, is taken as the nearest allowed.
    package var durationMicros: Int64
    /// Whether an independent frame is in it, at its start or later. Without video: true.
    package var isIndependent: Bool
    /// Whether its first video frame is a keyframe, so that a segment may start with it. Without video: true.
    package var beginsWithKeyframe: Bool
    /// Starts a segment whatever the window's own rule says.
    package var startsSegment: Bool
    /// Milliseconds since 1970 of its first frame.
    package var programDateTimeMs: Int64?

    package init(
        bytes: ByteBuffer, durationMicros: Int64, isIndependent: Bool, beginsWithKeyframe: Bool, startsSegment: Bool = false,
        programDateTimeMs: Int64? = nil
    ) {
        self.bytes = bytes
        self.durationMicros = durationMicros
        self.isIndependent = isIndependent
        self.beginsWithKeyframe = beginsWithKeyframe
        self.startsSegment = startsSegment
        self.programDateTimeMs = programDateTimeMs
    }
}
