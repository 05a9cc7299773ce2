package import NIOCore

/// The container format of the media.
package enum MediaContainer: Sendable, Equatable {
    /// One moof and mdat per part, and an initialization section.
    case fragmentedMP4
    /// Whole TS packets. Every part should start with PAT and PMT: any part may become a segment's first.
    case mpegTS

    /// File name extension of segments and parts.
    var mediaExtension: String { self == .fragmentedMP4 ? "m4s" : "ts" }
}

extension MediaWindow {
    /// Limits on what a window holds, and for how long. Values out of range are clamped.
    package struct Configuration: Sendable, Equatable {
        package var container: MediaContainer
        /// Whether parts are listed. Otherwise playlists change once per segment and hold no tags about parts.
        package var isLowLatency: Bool
        /// Target duration of parts, in milliseconds: 50…2,000. The first segment sets the part target in playlists.
        package var partMs: Int
        /// Milliseconds after which the next keyframe starts a segment: 500…10,000.
        package var segmentMs: Int
        /// Milliseconds after which a segment ends without a keyframe: from `segmentMs` to 30,000.
        package var maxSegmentMs: Int
        /// Milliseconds of ended segments to list, up to 24 h. Never fewer than three target durations.
        package var windowMs: Int
        /// Bytes of all media held, whether listed or not. A segment holds at most a quarter of it.
        package var maxBytes: Int
        /// Minimum milliseconds that media stays reachable after leaving the playlist: up to 10 min.
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

        /// A copy with every value clamped to its range.
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

    /// Fixed limits, not configurable.
    enum Limits {
        /// Bytes of an initialization section.
        static let initializationBytes = 1 << 20
        /// Characters of a CODECS attribute.
        static let codecsLength = 256
        /// Parts in one segment, after which it ends.
        static let partsPerSegment = 512
        /// Segments listed at once: enough for 24 h of the shortest.
        static let listedSegments = 1 << 18
        /// Highest first sequence number of a window.
        static let firstSequence = 1 << 60
    }
}

/// The format of a publisher's media, from one `begin` to the next.
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
    /// Milliseconds between keyframes, if the caller has seen some. The target duration is then right from the start.
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

    /// Whether a decoder can continue from the other format without a new initialization.
    func continues(_ other: MediaFormat) -> Bool {
        self.initialization == other.initialization && self.codecs == other.codecs && self.hasVideo == other.hasVideo
            && self.width == other.width && self.height == other.height
    }
}

/// One piece of media from the muxer, to add to the open segment.
package struct MediaPart: Sendable, Equatable {
    package var bytes: ByteBuffer
    /// Microseconds. Clamped to at least 1, and at most a segment's maximum.
    package var durationMicros: Int64
    /// Whether it contains an independent frame, anywhere in it. Without video: true.
    package var isIndependent: Bool
    /// Whether its first video frame is a keyframe, so that a segment may start with it. Without video: true.
    package var beginsWithKeyframe: Bool
    /// Whether it has video frames. A piece of sound alone may come before a keyframe.
    package var holdsPictures: Bool
    /// Time of its first frame, in milliseconds since 1970.
    package var programDateTimeMs: Int64?
    /// Whether it ended because no frame came for a while.
    package var isCutShort: Bool

    package init(
        bytes: ByteBuffer, durationMicros: Int64, isIndependent: Bool, beginsWithKeyframe: Bool, holdsPictures: Bool = true,
        programDateTimeMs: Int64? = nil, isCutShort: Bool = false
    ) {
        self.bytes = bytes
        self.durationMicros = durationMicros
        self.isIndependent = isIndependent
        self.beginsWithKeyframe = beginsWithKeyframe
        self.holdsPictures = holdsPictures
        self.programDateTimeMs = programDateTimeMs
        self.isCutShort = isCutShort
    }
}
