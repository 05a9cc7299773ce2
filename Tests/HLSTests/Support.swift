import HLS
import HLSCheck
import NIOCore

/// A seeded generator (SplitMix64).
struct Seeded: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { self.state = seed }

    mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = self.state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func chance(_ probability: Double) -> Bool { Double.random(in: 0..<1, using: &self) < probability }
}

/// A format with video, or with audio only.
func format(_ initialization: String = "init", hasVideo: Bool = true, keyframeIntervalMs: Int? = nil) -> MediaFormat {
    hasVideo
        ? MediaFormat(
            initialization: ByteBuffer(string: initialization), codecs: "avc1.64001f,mp4a.40.2", hasVideo: true, width: 1_280, height: 720,
            frameRate: 30, keyframeIntervalMs: keyframeIntervalMs)
        : MediaFormat(initialization: ByteBuffer(string: initialization), codecs: "mp4a.40.2", hasVideo: false)
}

extension MediaWindow {
    /// Appends one part. `key`: whether it starts with a keyframe.
    mutating func add(
        _ text: String = "media", ms: Double = 200, key: Bool = false, dateMs: Int64? = nil, nowMs: Int64 = 0
    ) throws(HLSError) {
        try self.append(
            MediaPart(
                bytes: ByteBuffer(string: text), durationMicros: Int64(ms * 1_000), isIndependent: key, beginsWithKeyframe: key,
                programDateTimeMs: dateMs), nowMs: nowMs)
    }

    /// Appends a group of pictures, by default ten parts of 200 ms.
    mutating func addGroup(parts: Int = 10, ms: Double = 200, dateMs: Int64? = nil, nowMs: Int64 = 0) throws(HLSError) {
        for index in 0..<parts { try self.add(ms: ms, key: index == 0, dateMs: index == 0 ? dateMs : nil, nowMs: nowMs) }
    }

    /// The playlist of this kind as text; empty when there is none.
    mutating func text(lowLatency: Bool = true, skips: Bool = false) -> String {
        self.mediaPlaylist(PlaylistKind(isLowLatency: lowLatency, skips: skips))?.text ?? ""
    }
}

extension ResourceLookup {
    /// The found bytes as text; nil if nothing was found.
    var text: String? {
        guard case .found(let resource) = self else { return nil }
        return resource.pieces.map { String(buffer: $0) }.joined()
    }
}
