import Support

/// What a push, or a file of a recording, carries. A value; nil where it is not known, or of a kind that is not there.
package struct MediaSummary: Sendable, Equatable {
    /// Pixels.
    package var width: Int?
    package var height: Int?
    package var videoCodec: String?
    package var audioCodec: String?

    package init(width: Int? = nil, height: Int? = nil, videoCodec: String? = nil, audioCodec: String? = nil) {
        self.width = width
        self.height = height
        self.videoCodec = videoCodec
        self.audioCodec = audioCodec
    }

    var members: [JSONValue.Member] {
        var data: [JSONValue.Member] = []
        data.add("width", self.width)
        data.add("height", self.height)
        data.add("videoCodec", self.videoCodec)
        data.add("audioCodec", self.audioCodec)
        return data
    }
}
