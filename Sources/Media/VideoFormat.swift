/// The known properties of a video track, for the console, the API and players' manifests.
///
/// A plain value.
package struct VideoFormat: Sendable, Equatable {
    /// Maximum pixels on either side; a header with more is rejected.
    package static let maxDimension = 16_384

    package var codec: VideoCodec
    /// Pixels as shown; nil if the header does not give them.
    package var width: Int?
    package var height: Int?
    /// Frames per second; nil if the header does not give them.
    package var frameRate: Double?
    /// In its usual form: "High", "Main 10".
    package var profile: String?
    /// In its usual form: "4.0", "1b".
    package var level: String?

    package init(
        codec: VideoCodec, width: Int? = nil, height: Int? = nil, frameRate: Double? = nil, profile: String? = nil, level: String? = nil
    ) {
        self.codec = codec
        self.width = width
        self.height = height
        self.frameRate = frameRate
        self.profile = profile
        self.level = level
    }

    /// Returns the frame rate; nil unless above 0 and at most 1,000 frames per second.
    static func frameRate(timeScale: Double, ticksPerFrame: Double) -> Double? {
        guard ticksPerFrame > 0 else { return nil }
        let rate = timeScale / ticksPerFrame
        return rate > 0 && rate <= 1_000 ? rate : nil
    }
}
